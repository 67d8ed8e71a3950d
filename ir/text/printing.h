// The printer's state, shared by its parts: types and expressions (print_expr.cc), tensor programs
// (print_prim_func.cc), graph functions and modules (print_function.cc). Internal to ir/text/.
#pragma once
#include <fmt/format.h>

#include <algorithm>

#include "ir/text/names.h"
#include "ir/text/printer.h"
#include "ir/text/syntax.h"
#include "ir/visit.h"
#include "support/joined.h"

namespace relaxc::text {

inline std::string dtype_literal(DType dtype) { return string_literal(to_string(dtype)); }
// Prints the elements as nested lists.
std::string tensor_items(const Tensor& data);
// Returns "T.int64".
std::string scalar_type_name(DType dtype);
// Returns "I.vdevice(\"llvm\", 0, \"global\")".
std::string global_info(const GlobalInfo& info);
// Returns the end of a range as it is written, from which Parser::extent_of() finds the extent again.
Expr range_end(const Range& range);
// Returns the variables of scalar type (dims) in a type or expression that nothing inside binds, in order of first use.
std::vector<VarRef> free_scalars(const NodeRef& node);

class Printer {
 public:
  // Inside tensor programs bare integers are int32, elsewhere int64.
  explicit Printer(const PrintOptions& options, DType default_int = kInt64)
      : options_(options), default_int_(default_int) {}
  std::string take() { return std::move(out_); }
  // Returns the name in the dialect that is printed: "T.sblock" for "T.block".
  std::string_view spelled(std::string_view name) const;
  // Returns the constants that were too large to write out, in the order of their numbers.
  const std::vector<Tensor>& elided() const { return elided_; }

  void module(const IRModule& module);
  void function(const std::string& name, const Expr& function);
  // kLast: no statement of the same block follows, so a statement may hold for the rest of it without `with`.
  enum class Place : uint8_t { kMiddle, kLast };
  void stmt(const Stmt& s) { stmt(s, Place::kMiddle); }
  std::string expr(const Expr& expr, int level);
  std::string expr(const Expr& e) { return expr(e, kLowest); }
  std::string type(const Type& type);

 private:
  // Prints each item, with commas between.
  template <class Items, class T, class Item>
  std::string printed(const Items& items, T (Printer::*print)(const Item&)) {
    return joined(items, [&](const Item& item) { return (this->*print)(item); });
  }

  // ---- print_expr.cc
  std::string attribute(const AttrValue& value);
  // Prints attributes of a function, with keys in the dialect that is printed.
  std::string dictionary(const Attrs& attrs);
  const std::string& name(const VarRef& var);
  std::string defined(const VarRef& var) { return names_.define(var); }
  std::string list(const std::vector<Expr>& items);
  std::string shape(const std::vector<Expr>& dims);
  std::string dim(const Expr& dim);
  std::string integer(int64_t value, DType dtype);
  std::string binary(const Binary& node, int level);
  std::string constant(const Tensor& data);
  std::string extern_func(const Expr& e, const ExternFunc& node);
  std::string let(const Let& node);
  std::string lambda(const Lambda& node);
  std::string call(const Expr& expr, const Call& node);
  std::string call_tir(const Call& node, std::string_view op, std::string spelling, std::vector<std::string> items);
  std::string scalar_call(const Expr& expr, const Call& node);
  std::string arguments(const Call& node, size_t first, std::vector<std::string> before = {});
  std::string argument(const Expr& arg);
  std::string element(const Buffer& buffer, const std::vector<Expr>& indices);
  std::string index(const Expr& index);
  std::string range(const Range& range);
  std::string region(const BufferRegion& region);
  std::string mesh(const DeviceMesh& mesh);
  std::string dtensor_type(const DTensorType& type);
  std::string buffer_args(const BufferType& type);
  std::string tensor_type(const TensorType& type);
  std::string func_type(const FuncType& type);

  // ---- print_prim_func.cc
  void prim_func(const std::string& name, const PrimFunc& function);
  void body(const Stmt& stmt);  // indented; `pass` when empty
  void stmt(const Stmt& stmt, Place place);
  void held(const std::string& head, const std::string& target, const Stmt& inner, Place place);
  void evaluate(const Evaluate& node);
  void assertion(const Assert& node);
  void alloc_buffer(const AllocBuffer& node);
  void find_pointers(const PrimFunc& function);
  void if_then_else(const IfThenElse& node);
  void for_loop(const Stmt& stmt);
  void block(const Block& node);
  void block_body(const Block& node);
  void block_axes(const Block& node);

  // ---- print_function.cc
  // Prints "@T.prim_func(flag)" and so on, and returns the attributes that the head does not imply.
  Attrs decorator(const char* form, const std::string& name, const Attrs& attrs, std::string_view flag, bool nested);
  void graph_function(const std::string& name, const Function& function, bool nested);
  void sequence(const Expr& seq, const VarRef* target);
  void binding(const Binding& binding);
  void if_binding(const Binding& binding, const If& node);
  void declare_scalars(const std::vector<VarRef>& vars);
  std::string target_name(const VarRef& var);

  bool is_marked(const void* payload) const {
    return std::ranges::find(options_.marked, payload) != options_.marked.end();
  }
  const char* mark(const void* payload) const { return is_marked(payload) ? "  # <-- here" : ""; }
  void line(std::string_view text);
  template <class... Args>
    requires(sizeof...(Args) > 0)
  void line(fmt::format_string<Args...> format, Args&&... args) {
    line(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
  }

  PrintOptions options_;
  const IRModule* module_ = nullptr;  // null: a function alone
  std::string out_;
  int depth_ = 0;
  DType default_int_;
  bool quote_dims_ = false;  // in signatures compound dims are strings
  std::vector<Tensor> elided_;
  NameTable names_;
  std::unordered_map<const NodeHeader*, Range> loops_;  // live loop variables
  std::unordered_set<const NodeHeader*> pointers_;      // allocations of which only the pointer is used
  std::unordered_set<const NodeHeader*> dims_;          // variables of the graph that are dims
  std::unordered_set<const NodeHeader*> used_;          // variables that the function uses
  bool calls_module_ = false;                           // the function names functions of the module
};

}  // namespace relaxc::text
