// Every operator that takes a tuple of tensors takes a tuple value (here a parameter) as it takes a written tuple.
#include <algorithm>

#include "codegen/compile.h"
#include "ir/visit.h"
#include "ops/ops.h"
#include "tests/ops/samples.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

IRModule kernels(const IRModule& module) {
  CompileSettings settings;
  settings.passes = "simplify,kernels";
  return run_pipeline(module, settings);
}

std::vector<PrimFuncRef> programs(const IRModule& module) {
  std::vector<PrimFuncRef> result;
  for (const auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) result.push_back(*program);
  }
  return result;
}

}  // namespace

TEST_CASE("operators take tuple values", "[ops]") {
  const OpTable& ops = op_table();
  int tried = 0;
  for (const OpRow& row : ops.rows()) {
    std::optional<OpSample> sample = row.legalize ? sample_call(ops, row, 0) : std::nullopt;
    if (!sample) continue;
    OpSample by_value = *sample;
    bool found = false;
    for (Expr& arg : by_value.call.args) {
      const Tuple* items = arg.as<Tuple>();
      bool of_tensors = items && std::all_of(items->items.begin(), items->items.end(),
                                             [](const Expr& item) { return item.type().is<TensorType>(); });
      if (!of_tensors) continue;
      VarRef value = make_var("several", arg.type());
      by_value.params.push_back(value);
      arg = value;
      found = true;
    }
    if (!found) continue;
    INFO(row.name);
    ++tried;
    std::vector<PrimFuncRef> wanted = programs(kernels(sample_module(ops, row, *sample)));
    std::vector<PrimFuncRef> got = programs(kernels(sample_module(ops, row, by_value)));
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(structural_equal(got[i], wanted[i]));
  }
  CHECK(tried >= 3);  // concat, stack, einsum
}

}  // namespace relaxc::test
