// Which parallel loops are known to overwrite their own results.
#include "tir/analysis/races.h"

#include "tests/tir/written_program.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// Returns the warnings about a program with this body.
std::string races_in(const std::string& body) {
  return text_of(racing_loops(written_program("race.py", R"(
@T.prim_func
def main(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), at: T.Buffer((64,), "int32")):
)",
                                              body)));
}

}  // namespace

TEST_CASE("two iterations that store one element are found", "[tir]") {
  CHECK_THAT(races_in("for k in T.parallel(64):\n    y[0] = y[0] + x[k]"),
             Catch::Contains("race.py:5:9: warning: several iterations of T.parallel loop 'k' write y[0]: "));
  for (const char* body : {
           "for k in T.parallel(64):\n    y[k // 2] = x[k]",
           "for k in T.parallel(64):\n    y[k % 4] = x[k]",
           "for k in T.parallel(64):\n    v = k // 2\n    y[v + 1] = x[k]",
           "for k in T.parallel(64):\n    for j in range(8):\n        y[j] = y[j] + x[k]",
           "for k in T.parallel(64):\n    for j in range(8):\n        y[j * 4 + k % 4] = x[k]",
           "for k in T.parallel(64):\n    if x[0] > T.float32(0):\n        y[0] = x[k]",
           "for i, k in T.grid(2, 1):\n    for l in T.parallel(64):\n        y[i + k] = y[i + k] + x[l]",
           "for k in T.parallel(64):\n    with T.block(\"s\"):\n        vk = T.axis.reduce(64, k)\n"
           "        with T.init():\n            y[0] = T.float32(0)\n        y[0] = y[0] + x[vk]",
       })
    CHECK(races_in(body) != "");
}

TEST_CASE("iterations that read what others store are found", "[tir]") {
  CHECK_THAT(races_in("for j in T.parallel(63):\n    y[j + 1] = y[j] + x[j]"),
             Catch::Contains("warning: an iteration of T.parallel loop 'j' reads y[j], the element that an "
                             "earlier one writes as y[j + 1]: "));
  CHECK_THAT(races_in("for j in T.vectorized(63):\n    y[j + 1] = y[j] + x[j]"),
             Catch::Contains("an iteration of T.vectorized loop 'j' reads y[j], the element that an earlier one"));
  for (const char* body : {
           "for j in T.parallel(63):\n    y[j] = y[j + 1]",  // a later one
           "for j in T.vectorized(8):\n    y[j * 2 + 2] = y[j * 2]",
           "for j in T.vectorized(63):\n    y[j] = x[j]\n    y[j] = y[j + 1]",
           "for j in T.vectorized(63):\n    with T.block(\"sum\"):\n        vj = T.axis.spatial(63, j)\n"
           "        y[vj + 1] = y[vj] + x[vj]",
       })
    CHECK(races_in(body) != "");
}

TEST_CASE("nothing is said of vectors whose statements keep the order", "[tir]") {
  for (const char* body : {
           "for j in T.vectorized(63):\n    y[j] = y[j + 1]",                   // all are read before they are stored
           "for j in T.vectorized(62):\n    y[j + 1] = x[j]\n    y[j] = y[j]",  // all are stored before
           "for j in T.vectorized(8):\n    y[j + 8] = y[j]",
           "for j in T.vectorized(8):\n    y[j * 2 + 1] = y[j * 2]",
           "for j in T.vectorized(63):\n    if j > 3:\n        y[j + 1] = y[j]",
           "for j in T.vectorized(64):\n    y[0] = y[0] + x[j]",
       })
    CHECK(races_in(body) == "");
}

TEST_CASE("nothing is said of loops that may be right", "[tir]") {
  for (const char* body : {
           "for k in T.parallel(64):\n    y[k] = x[k]",
           "for k in range(64):\n    y[0] = y[0] + x[k]",
           "for k in T.parallel(1):\n    y[0] = y[0] + x[k]",
           "for k in T.parallel(64):\n    y[0] = T.float32(1)",
           "for k in T.parallel(64):\n    y[0] = T.exp(x[0])",
           "for k in T.parallel(64):\n    y[at[k]] = x[k]",
           "for k in T.parallel(64):\n    y[k // 4] = x[k // 4 + 1]",
           "for k in T.parallel(64):\n    if k == 0:\n        y[0] = x[k]",
           "for k in T.parallel(32):\n    for j in range(2):\n        y[k * 2 + j] = x[k]",
           "for k in T.parallel(64):\n    for j in range(k, k + 1):\n        y[j] = x[k]",
           "for k in T.parallel(3):\n    y[k % 4] = x[k]",
           "t = T.alloc_buffer((1,), \"float32\")\nfor k in T.parallel(64):\n    t[0] = x[k]\n    y[k] = t[0]",
           "for k in T.parallel(64):\n    with T.block(\"s\"):\n        vk = T.axis.spatial(64, k)\n"
           "        T.where(k < 1)\n        y[0] = x[vk]",
       })
    CHECK(races_in(body) == "");
  // Memory that is read behind the loop is shared.
  CHECK(races_in("t = T.alloc_buffer((1,), \"float32\")\nfor k in T.parallel(64):\n    t[0] = x[k]\ny[0] = t[0]") !=
        "");
}

}  // namespace relaxc::test
