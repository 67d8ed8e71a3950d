// Blocks whose reduction cannot give what it is meant to.
#include "tir/analysis/reductions.h"

#include "tests/tir/written_program.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// Returns what is said of a block with these statements, whose axes i and k have these kinds.
std::string reductions_in(const std::string& kinds, const std::string& body, Results results = Results::kParams) {
  const std::string text = R"(
@T.prim_func
def main(x: T.Buffer((8, 16), "float32"), y: T.Buffer((8,), "float32")):
    s = T.alloc_buffer((8,), "float32")
    for i, k in T.grid(8, 16):
        with T.block("sum"):
            vi, vk = T.axis.remap(")";
  constexpr size_t kColumns = 12;
  return text_of(wrong_reductions(written_program("sum.py", text + kinds + "\", [i, k])\n", body, kColumns), results));
}

constexpr const char* kInit = "with T.init():\n    y[vi] = T.float32(0)\n";
constexpr const char* kSum = "y[vi] = y[vi] + x[vi, vk]";

}  // namespace

TEST_CASE("an axis that is spatial and should be a reduce axis is an error", "[tir]") {
  CHECK_THAT(reductions_in("SS", std::string(kInit) + kSum),
             Catch::Contains("error: block 'sum' starts y[vi] again in each iteration of axis 'vk'") &&
                 Catch::Contains("declare 'vk' a reduce axis: 'R' in T.axis.remap, or T.axis.reduce"));
  CHECK(reductions_in("SR", std::string(kInit) + kSum).empty());
  // One iteration may be all.
  CHECK(reductions_in("SS", "T.where(k == 3)\n" + std::string(kInit) + kSum).empty());
}

TEST_CASE("a sum without T.init gets a warning where nothing else stores to it", "[tir]") {
  CHECK_THAT(reductions_in("SR", kSum),
             Catch::Contains("warning: y[vi] is read before the program stores anything to 'y', so that its first "
                             "value is not known; begin the block with T.init(): y[vi] = ..."));
  CHECK_THAT(reductions_in("SR", "s[vi] = s[vi] + x[vi, vk]", Results::kAllocated), Catch::Contains("s[vi] is read"));
  // Of a module's program, params may have values.
  CHECK(reductions_in("SR", kSum, Results::kAllocated).empty());
  for (const char* body :
       {"if vk == 0:\n    y[vi] = T.float32(0)\ny[vi] = y[vi] + x[vi, vk]", "y[vi] = x[vi, vk] + T.float32(1)",
        "y[vi] = T.if_then_else(vk == 0, T.float32(0), y[vi]) + x[vi, vk]"})
    CHECK(reductions_in("SR", body).empty());
}

}  // namespace relaxc::test
