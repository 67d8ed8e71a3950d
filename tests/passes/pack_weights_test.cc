// Weights of a module that is compiled for a machine of another architecture.
#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/kernel_call.h"
#include "ir/layout.h"
#include "ir/sequence.h"
#include "ir/text/parser.h"
#include "ops/common.h"
#include "passes/runner.h"
#include "tests/constants.h"
#include "tests/ops/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// Filters that fill no block, groups of half a block, one channel per group, a picture; columns that fill no panel, and
// products of bytes in fours.
constexpr const char* kText = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 3, 64, 64), "float32"), first: R.Tensor((30, 3, 3, 3), "float32"), bias: R.Tensor((1, 30, 1, 1), "float32"), wise: R.Tensor((30, 1, 3, 3), "float32"), wide: R.Tensor((64, 30, 5, 5), "float32"), groups: R.Tensor((64, 8, 3, 3), "float32"), last: R.Tensor((64, 61), "float32"), bytes: R.Tensor((64, 48), "int8")):
        with R.dataflow():
            a = R.add(R.nn.conv2d(x, first, padding=[1, 1, 1, 1], strides=[2, 2]), bias)
            b = R.nn.conv2d(a, wise, groups=30, padding=[1, 1, 1, 1])
            c = R.nn.conv2d(b, wide, padding=[2, 2, 2, 2])
            d = R.nn.conv2d(c, groups, groups=8, strides=[2, 2], padding=[1, 1, 1, 1])
            e = R.mean(d, axis=[2, 3])
            y = R.matmul(e, last)
            z = R.matmul(R.astype(e, dtype="int8"), bytes, out_dtype="int32")
            R.output(y, z)
        return (y, z)
)";

std::vector<Tensor> weights() {
  return {values({30, 3, 3, 3}), values({1, 30, 1, 1}), values({30, 1, 3, 3}),           values({64, 30, 5, 5}),
          values({64, 8, 3, 3}), values({64, 61}),      values({64, 48}, DType::int_(8))};
}

// Returns whether the packed tensor holds the plain one, and zeros else.
bool holds(const Tensor& packed, const Layout& layout, const Tensor& plain) {
  Tensor wanted = Tensor::empty(packed.shape(), packed.dtype());
  for (int64_t i = 0; i < wanted.size(); ++i) wanted.set_double(i, 0);
  for_each_index(plain.shape(), [&](const Shape& index) {
    std::vector<Expr> at = layout.from_plain_index(int_imms(index));
    Shape place;
    for (const Expr& part : at) place.push_back(*as_int(simplify(part)));
    wanted.set_double(flat(place, packed.shape()), element(plain, index));
  });
  for (int64_t i = 0; i < wanted.size(); ++i) {
    if (wanted.as_double(i) != packed.as_double(i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("weights are packed without running code, for any target", "[passes]") {
  struct Machine {
    const char* target;
    int64_t lanes;
  };
  for (const Machine& machine : {Machine{"triple=aarch64-linux-gnu,cpu=generic,+dotprod", 4}, Machine{"x86-64-v3", 8},
                                 Machine{"cpu=znver4", 16}}) {
    CAPTURE(machine.target);
    Diagnostics diagnostics;
    IRModule module = parse_module(kText, "net.py", op_table(), diagnostics);
    REQUIRE(diagnostics.all().empty());
    const std::vector<Tensor> plain = weights();
    PassContext context(op_table(), codegen::parse_target(machine.target));
    int runs = 0;
    context.evaluate = [&](const IRModule&) {
      ++runs;
      return std::vector<Tensor>();
    };
    module = run_passes(with_constants(std::move(module), plain),
                        parse_passes("choose_layouts,remove_dead_code,pack_weights,fold_constants,remove_dead_code"),
                        context, {});
    CHECK(runs == 0);
    const std::string block = std::to_string(machine.lanes);
    int found = 0;
    for_each_binding(module.graph_function("main")->body, [&](const Binding& binding) {
      const Call* call = binding.value.as<Call>();
      if (call && call->attrs.has("kernel_layout")) {
        const Layout layout = *Layout::parse(call->attrs.get_string("kernel_layout", ""));
        const Constant* weight = call->args[1].as<Constant>();
        REQUIRE(weight);
        ++found;
        // Merged groups are tested by what they compute (choose_layouts_test.cc).
        const Tensor& original = plain[found == 1 ? 0 : static_cast<size_t>(found)];
        if (found != 4 || call->attrs.get_int("groups", 1) == 8) CHECK(holds(weight->data, layout, original));
        CHECK(layout.block_of(0) == machine.lanes);
      }
      std::optional<KernelCall> kernel = as_kernel_call(binding.value, module);
      if (!kernel || kernel->tensors.size() != 2) return;
      const Constant* panels = kernel->tensors[1].as<Constant>();
      REQUIRE(panels);
      ++found;
      const bool is_bytes = panels->data.dtype() == DType::int_(8);
      const int64_t columns = panels->data.shape()[2];
      const Layout layout = *Layout::parse(fmt::format("NK{}n{}", columns, panels->data.ndim() == 4 ? "4k" : ""), "KN");
      CHECK(holds(panels->data, layout, plain[is_bytes ? 6 : 5]));
    });
    CHECK(found >= 5);
  }
}

}  // namespace relaxc::test
