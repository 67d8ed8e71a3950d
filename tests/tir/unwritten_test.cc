// Results of which a tensor program provably leaves elements out.
#include "tir/analysis/unwritten.h"

#include "tests/tir/written_program.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// Returns what is said of a program with this body.
std::string unwritten_in(const std::string& body) {
  const PrimFuncRef program = written_program("result.py", R"(
@T.prim_func
def main(x: T.Buffer(("n", 8), "float32"), at: T.Buffer((8,), "int32"), y: T.Buffer(("n", 8), "float32")):
)",
                                              body);
  return text_of(unwritten_results(program, likely_results(program)));
}

}  // namespace

TEST_CASE("a result that lacks elements for all dims is found", "[tir]") {
  CHECK_THAT(unwritten_in("for i, j in T.grid(n, 8):\n    T.evaluate(x[i, j])"),
             Catch::Contains("result.py:3:73: warning: the program stores nothing to its result 'y'"));
  CHECK_THAT(unwritten_in("for i, j in T.grid(n, 4):\n    y[i, j] = x[i, j]"),
             Catch::Contains("stores to [0, 4) of [0, 8) of dim 1 of its result 'y'"));
  CHECK_THAT(unwritten_in("for i, j in T.grid(n - 1, 8):\n    y[i, j] = x[i, j]"),
             Catch::Contains("stores to [0, n - 1) of [0, n) of dim 0 of its result 'y'"));
  for (const char* body : {
           "for i, j in T.grid(n, 7):\n    y[i, j + 1] = x[i, j]",
           "for i in range(n):\n    y[i, 0] = x[i, 0]\n    y[i, 1] = x[i, 1]",
           "for i in range(n):\n    for j in T.vectorized(4):\n        y[i, j] = x[i, j]",
           "for i, j in T.grid(n, 4):\n    with T.block(\"b\"):\n        vi, vj = T.axis.remap(\"SS\", [i, j])\n"
           "        y[vi, vj] = x[vi, vj]",
       })
    CHECK(unwritten_in(body) != "");
}

TEST_CASE("nothing is said of results that may be whole", "[tir]") {
  for (const char* body : {
           "for i, j in T.grid(n, 8):\n    y[i, j] = x[i, j]",
           "for i, j in T.grid(n, 4):\n    y[i, j] = x[i, j]\n    y[i, j + 4] = x[i, j + 4]",
           "for i, j in T.grid(n // 4 * 4, 8):\n    y[i, j] = x[i, j]",
           "for i, j in T.grid(n, 8):\n    y[i, at[j]] = x[i, j]",
           "for i, j in T.grid(n, 8):\n    if x[i, j] > T.float32(0):\n        y[i, j] = x[i, j]",
           "T.evaluate(T.call_extern(\"int32\", \"fill\", y.data))",
           "for i, j in T.grid(n, 4):\n    y[i, j] = y[i, j] + x[i, j]",
       })
    CHECK(unwritten_in(body) == "");
}

}  // namespace relaxc::test
