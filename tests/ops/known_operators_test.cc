// Facts that must hold for every row, or every constant that stands for one.
#include <set>

#include "codegen/compile.h"
#include "frontend/onnx/import.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/visit.h"
#include "tests/ops/samples.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// The type with less known: no shape, no dtype, or neither.
Type weaker(const Type& type, bool without_shape, bool without_dtype) {
  if (!type.is<TensorType>()) return type;
  std::optional<DType> dtype = without_dtype ? std::nullopt : tensor_dtype(type);
  return without_shape ? tensor_type_of_rank(-1, dtype) : tensor_type(*known_shape(type), dtype);
}

}  // namespace

TEST_CASE("each operator and intrinsic that code recognizes has a row", "[ops]") {
  std::set<std::string_view> names;
  for (OpName op : ops::kKnownOps) {
    INFO(op.text);
    CHECK(op_table().find(op.text));
    CHECK(names.insert(op.text).second);
  }
  for (OpName op : ops::kKnownIntrinsics) {
    INFO(op.text);
    CHECK((find_builtin(op.text) || find_intrinsic(op.text) || op.text == ops::kIfThenElse));  // which has no row
    CHECK(names.insert(op.text).second);
  }
}

TEST_CASE("operators that the importer takes over as they are have the ONNX name", "[ops]") {
  std::set<std::string> onnx;
  for (const OnnxOperator& op : onnx_operators()) onnx.insert(op.name);
  int count = 0;
  for (const OpRow& row : op_table().rows()) {
    if (row.onnx.empty()) continue;
    INFO(row.name);
    ++count;
    CHECK(onnx.contains(row.onnx));
  }
  CHECK(count > 40);
}

TEST_CASE("an operator says why a function of the runtime does its work, and only such a one does", "[ops]") {
  const std::set<std::string> kHosts = {"relax.call_builtin_with_ctx", "relax.call_inplace_packed",
                                        "relax.call_py_func"};
  int by_runtime = 0;
  for (const OpRow& row : op_table().rows()) {
    if (!row.decompose || kHosts.contains(row.name)) continue;  // those call what the module says
    INFO(row.name);
    bool calls_runtime = false;
    for (uint64_t seed : {0, 1, 2}) {
      std::optional<OpSample> sample = sample_call(op_table(), row, seed);
      REQUIRE(sample.has_value());
      CompileSettings settings;
      settings.passes = "lambda_lift,inline_calls,spread_tuples,decompose";
      try {
        for (const auto& [_, function] : run_pipeline(sample_module(op_table(), row, *sample), settings).functions) {
          walk(function, [&](const ExternFunc& callee) {
            calls_runtime =
                calls_runtime || callee.symbol.starts_with("vm.builtin.") || callee.symbol.starts_with("relaxc.");
          });
        }
      } catch (const CompileError&) {  // an unknown rank or dtype may be refused
      }
    }
    // The number of elements is an expression where the shape is known.
    if (row.name != "relax.size") CHECK(calls_runtime == !row.why_runtime.empty());
    by_runtime += calls_runtime;
  }
  CHECK(by_runtime > 20);
}

TEST_CASE("a type inferred from less is never at odds with that of the whole call", "[ops]") {
  for (const OpRow& row : op_table().rows()) {
    std::optional<OpSample> sample = sample_call(op_table(), row, 0);
    if (!sample) continue;
    Type whole = infer_call_type(sample->call, {}, op_table());
    for (size_t i = 0; i < sample->call.args.size(); ++i) {
      const Type& type = sample->call.args[i].type();
      if (!type.is<TensorType>() || !known_shape(type)) continue;
      for (int what = 1; what < 4; ++what) {
        Call call = sample->call;
        call.args[i] = make_var("x", weaker(type, (what & 1) != 0, (what & 2) != 0));
        Type partial = infer_call_type(call, {}, op_table());
        INFO(row.name << ", argument " << i << ": " << debug_print(partial) << " for " << debug_print(whole));
        CHECK(structural_equal(common_type(partial, whole), partial));
      }
    }
  }
}

}  // namespace relaxc::test
