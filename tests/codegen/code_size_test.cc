// How much a compile writes, which decides how long it takes: bytecode linear in the tensors, and a tile's epilogue not
// once more for each number of rows that may be left.
#include <fmt/format.h>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "vm/disassembler.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

CompiledModule compiled(const std::string& params, const std::string& body) {
  std::string text = fmt::format(
      "@I.ir_module\nclass Module:\n    @R.function\n    def main({}):\n        with R.dataflow():\n{}", params, body);
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "code_size.py", op_table(), diagnostics);
  INFO(text);
  REQUIRE_FALSE(diagnostics.has_errors());
  return compile(std::move(module));
}

// Tensors that all live at the same time and of which none is known to be as large as another.
CompiledModule unlike_tensors(int count) {
  std::string params, made, used, results;
  for (int i = 0; i < count; ++i) {
    params += fmt::format("x{0}: R.Tensor((\"n{0}\", 16, \"m{0}\"), \"float32\"), ", i);
    made += fmt::format("            s{0} = R.nn.softmax(x{0})\n", i);
    used += fmt::format("            y{0} = R.matmul(x{0}, R.permute_dims(s{0}, [0, 2, 1]))\n", i);
    results += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
  }
  return compiled(params,
                  fmt::format("{}{}            R.output({})\n        return ({})\n", made, used, results, results));
}

int count_calls(const CompiledModule& module, std::string_view name) {
  int result = 0;
  for (const auto& [kernel, program] : module.kernels()) {
    walk(program->body, [&](const Ref<Call>& node) { result += op_name(node) == name; });
  }
  return result;
}

size_t count_nodes(const CompiledModule& module) {
  size_t result = 0;
  for (const auto& [kernel, program] : module.kernels()) {
    walk_nodes(program->body, [&](const NodeRef&) {
      ++result;
      return true;
    });
  }
  return result;
}

}  // namespace

TEST_CASE("bytecode is linear in the slots of the arena", "[codegen]") {
  auto length = [](int count) { return vm::disassemble(unlike_tensors(count).executable()).size(); };
  size_t small = length(12), large = length(48);
  INFO(small << " characters for 12 tensors, " << large << " for 48");
  CHECK(large < 6 * small);  // quadratic: nearly 16 times
}

TEST_CASE("a long epilogue is written once for each number of rows that may be left", "[codegen]") {
  // A tile has at most 31 rows or pixels. All of them in each tail would be some hundreds.
  constexpr int kMost = 128;
  CompiledModule product = compiled(
      "x: R.Tensor((\"m\", 64), \"float32\"), w: R.Tensor((64, 256), \"float32\")",
      "            h = R.matmul(x, w)\n            y = R.sigmoid(h)\n            R.output(y)\n        return y\n");
  int calls = count_calls(product, "tir.sigmoid");
  CHECK(calls > 0);
  CHECK(calls <= kMost);
  CompiledModule image = compiled(
      "x: R.Tensor((\"n\", 32, \"h\", \"w\"), \"float32\")",
      "            k = R.full(R.shape([32, 32, 1, 1]), R.const(0.5, \"float32\"), dtype=\"float32\")\n"
      "            c = R.nn.conv2d(x, k)\n            y = R.sigmoid(c)\n            R.output(y)\n        return y\n");
  calls = count_calls(image, "tir.sigmoid");
  CHECK(calls > 0);
  CHECK(calls <= kMost);
}

TEST_CASE("a convolution of symbolic images has short tails", "[codegen]") {
  // A tile of all registers would have 29 pixels of 16 filters, and the tails of such a tile 406 pixels in all.
  CompiledModule image =
      compiled("x: R.Tensor((\"n\", 16, \"h\", \"w\"), \"float32\")",
               "            k = R.full(R.shape([16, 16, 1, 1]), R.const(0.5, \"float32\"), dtype=\"float32\")\n"
               "            y = R.nn.conv2d(x, k)\n            R.output(y)\n        return y\n");
  CHECK(count_nodes(image) < 2000);
}

TEST_CASE("resampling along many axes computes each weight once", "[codegen]") {
  CompiledModule resize = compiled(
      "x: R.Tensor((2, 3, 8, 8), \"float32\"), scales: R.Tensor((4,), \"float32\"), s: R.Shape([\"a\", \"b\", \"c\", "
      "\"d\"])",
      "            y = R.image.resize(x, R.shape([a, b, c, d]), scales, axes=[0, 1, 2, 3], scales=[], roi=[], "
      "method=\"cubic\", exclude_outside=True)\n            R.output(y)\n        return y\n");
  // 256 products of four weights and an element at four clamped positions; each weight has some hundred nodes itself.
  CHECK(count_nodes(resize) < 60000);
}

}  // namespace relaxc::test
