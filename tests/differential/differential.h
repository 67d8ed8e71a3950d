// Differential tests: one graph, run at every level of the compiler on the same inputs, must give the same results:
//   the reference interpreter on the legalized, unscheduled programs (what the others are compared with), the
//   interpreter on the fused and scheduled programs, the same after lowering, and machine code for several targets.
//
// A graph is written once, by a function over `Graph`, and built three times: with numbers for its dims, with symbolic
// dims that several sizes then share one compile of, and with some of each.
#pragma once
#include <map>
#include <random>

#include "codegen/compile.h"
#include "ir/builder.h"

namespace relaxc::test {

// Random contents of an input.
struct Contents {
  double low = -4, high = 4;
  bool special = false;     // floats: some NaN, infinities, zeros of both signs, subnormal and huge values
  std::string extent = {};  // integers in [-extent, extent), for indices
};

using Sizes = std::map<std::string, int64_t>;

class Graph {
 public:
  // Dims with a fixed size are numbers; the others are variables.
  Graph(Sizes fixed, uint32_t seed);
  // A new parameter. Dims are written "n, 4*m, n+1, 16".
  Expr input(const std::string& dims, DType dtype = kFloat32, Contents contents = {});
  // A constant with random contents; its dims are numbers.
  Expr weights(const std::string& dims, DType dtype = kFloat32, Contents contents = {});
  Expr dim(const std::string& text);
  Expr shape(const std::string& dims);
  Expr op(const std::string& name, std::vector<Expr> args, Attrs attrs = {}) {
    return builder.op(name, std::move(args), std::move(attrs));
  }
  Expr item(const Expr& tuple, int64_t index) { return builder.emit(tuple_get(tuple, index)); }
  IRModule finish(const Expr& result);
  std::vector<Tensor> make_inputs(const Sizes& sizes, uint32_t seed) const;
  int64_t count_elements(const Sizes& sizes) const;  // of all inputs
  const std::map<std::string, Expr>& dims() const { return dims_; }

  Builder builder;

 private:
  struct Input {
    VarRef var;
    std::string dims;
    DType dtype;
    Contents contents;
  };
  Expr parse(const std::string& text);
  Sizes fixed_;
  std::map<std::string, Expr> dims_;
  std::vector<Input> inputs_;
  std::mt19937 random_;
};

struct Case {
  std::string name;
  std::function<Expr(Graph&)> build;
  Sizes least = {};               // of dims that may not be 0
  double tolerance = -1;          // relative to 1 + |expected|; -1: exact for integers, a few ulp for floats
  int64_t most = 1 << 15;         // elements of all inputs together
  std::vector<Sizes> sizes = {};  // tried besides random ones
  bool has_reference = false;     // the graph is one call of an operator that has a reference (references.h)
};

// Runs the case at all levels; failures are Catch2 failures. RELAXC_DIFFERENTIAL=N in the environment multiplies the
// number of sizes and compiles.
void check_case(const Case& test);

}  // namespace relaxc::test
