// A function of TVM's topi that is made of several operators of the graph, and what it asks of its call. Internal to
// ir/text/.
#pragma once
#include <span>

#include "ir/expr.h"
#include "ir/type.h"

namespace relaxc::text {

class TopiCall {
 public:
  TopiCall() = default;
  TopiCall(const TopiCall&) = delete;
  TopiCall& operator=(const TopiCall&) = delete;
  virtual ~TopiCall() = default;

  // Returns whether the argument is given, and not None.
  virtual bool has(std::string_view name) const = 0;
  virtual Expr tensor(std::string_view name) = 0;
  virtual std::vector<Expr> tensors(std::string_view name) = 0;
  // Returns a number, text, flag or a list of them; none where it is left out.
  virtual AttrValue value(std::string_view name) = 0;
  virtual DType dtype(std::string_view name, DType otherwise) = 0;
  // Calls an operator of the graph. The result is a variable.
  virtual Expr op(const char* name, std::vector<Expr> args, Attrs attrs = {}) = 0;
  // Returns item i of a result that is a tuple.
  virtual Expr item(const Expr& several, size_t i) = 0;
  [[noreturn]] virtual void fail(const std::string& message) = 0;

  bool flag(std::string_view name, bool otherwise);
  int64_t whole(std::string_view name, int64_t otherwise);
  double real(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string otherwise);
  std::vector<int64_t> wholes(std::string_view name, std::vector<int64_t> otherwise = {});
  // Returns a list of this many numbers; one number stands for all.
  std::vector<int64_t> sizes(std::string_view name, size_t count, int64_t otherwise);
  // Returns the attributes of these names that are given, under the names behind '>' where there is one.
  Attrs attrs(std::string_view names);

  const std::vector<Expr>& shape(const Expr& tensor);
  int64_t rank(const Expr& tensor) { return static_cast<int64_t>(shape(tensor).size()); }
  int64_t dim(const Expr& tensor, int64_t axis);
  DType dtype_of(const Expr& tensor);
  int64_t axis(std::string_view name, int64_t otherwise, const Expr& tensor);
  Expr reshape(const Expr& tensor, std::vector<Expr> dims);
  Expr permute(const Expr& tensor, const std::vector<int64_t>& axes);
  Expr expand(const Expr& tensor, const std::vector<int64_t>& axes);
  Expr astype(const Expr& tensor, DType dtype);
  Expr number(double value, DType dtype);  // a tensor of rank 0
  // Brings a vector along an axis of a tensor of this rank.
  Expr along(const Expr& vector, int64_t axis, int64_t rank);
};

// One function: topi's params, in their order; names that they had in other versions stand behind '|'.
struct TopiComposition {
  std::string_view name, params;
  Expr (*make)(TopiCall& call);
};
std::span<const TopiComposition> topi_array_functions();  // topi_arrays.cc
std::span<const TopiComposition> topi_nn_functions();     // topi_nn.cc
std::span<const TopiComposition> topi_moves();            // topi_moves.cc

}  // namespace relaxc::text
