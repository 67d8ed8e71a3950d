// Each operator that computes has something to be compared with other than itself: a case of the ONNX backend tests, or
// of onnx/cases (by NumPy), whose import has a call of it, a text with its results, a reference in C++, a test of its
// own in tests/ops, or a stated reason.
#include <filesystem>
#include <fstream>
#include <set>

#include "codegen/compile.h"
#include "frontend/onnx/import.h"
#include "ir/visit.h"
#include "tests/differential/references.h"
#include "tests/frontend/onnx_text.h"
#include "tests/report.h"
#include "tests/text/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Operators whose results a test in tests/ops compares with plain loops.
const std::map<std::string, const char*> kOwnTests = {
    {"relax.cumprod", "reduction_test.cc"},
    {"relax.variance", "reduction_test.cc"},
    {"relax.std", "reduction_test.cc"},
    {"relax.nn.lp_pool", "pooling_test.cc"},
    {"relax.nn.sum_pool1d", "pooling_test.cc"},
    {"relax.nn.sum_pool2d", "pooling_test.cc"},
    {"relax.nn.sum_pool3d", "pooling_test.cc"},
    {"relax.nn.adaptive_avg_pool1d", "pooling_test.cc"},
    {"relax.nn.adaptive_avg_pool2d", "pooling_test.cc"},
    {"relax.nn.adaptive_avg_pool3d", "pooling_test.cc"},
    {"relax.nn.group_norm", "normalization_test.cc"},
    {"relax.nn.rms_norm", "normalization_test.cc"},
};
// Operators without a formula of their own, and where they are tested.
const std::map<std::string, const char*> kReasons = {
    {"relax.print", "only writes text: tests/modules"},
    {"relax.call_tir", "the program that it calls has the formula"},
    {"relax.call_tir_with_grad", "the program that it calls has the formula"},
    {"relax.call_dps_packed", "the kernel that it calls has the formula: tests/vm"},
    {"relax.call_pure_packed", "the function that it calls has the formula: tests/vm"},
    {"relax.call_inplace_packed", "the function that it calls has the formula: tests/vm"},
    {"relax.invoke_closure", "the closure that it calls has the formula: tests/modules/closures.test"},
    {"relax.dist.annotate_sharding", "the tensor itself"},
    {"relax.builtin.alloc_tensor", "gives memory with undefined contents"},
    {"relax.memory.alloc_storage", "gives memory with undefined contents"},
    {"relax.memory.alloc_tensor", "gives memory with undefined contents"},
    {"relax.shape_of", "dims that the module's type already states: tests/modules"},
    {"relax.tensor_to_shape", "the elements of a list as they are: tests/modules"},
};

// The operators that the imports of the cases call which pass.
std::set<std::string> ops_of_onnx_cases(const fs::path& root) {
  std::set<std::string> result;
  auto add = [&](const IRModule& module) {
    for (const auto& [function, body] : module.functions) walk(body, [&](const OpRef& op) { result.insert(op.name); });
  };
  for (const auto& entry : fs::directory_iterator(RELAXC_SOURCE_DIR "/tests/onnx/cases"))
    add(import_onnx_text(read_text_test(entry.path()).input(), entry.path().filename().string()));
  std::string failures = read_file(RELAXC_SOURCE_DIR "/tests/onnx/expected_failures.txt");
  for (const char* suite : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    for (const auto& entry : fs::directory_iterator(root / suite)) {
      std::string name = fmt::format("\n{}/{}: ", suite, entry.path().filename().string());
      if (failures.find(name) != std::string::npos) continue;
      add(import_onnx(entry.path() / "model.onnx", op_table()));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("every operator that computes has an oracle", "[ops]") {
  const fs::path root = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(root)) return skip("no libonnx-testdata");
  std::set<std::string> imported = ops_of_onnx_cases(root), in_texts = ops_of_run_texts();
  CHECK(imported.size() > 100);
  for (const OpRow& row : op_table().rows()) {
    if (!has_lowering(row)) continue;
    INFO(row.name << " has no oracle: add tests/modules/<name>.test (test: run), which states its results, or a "
                     "`reference` in its row");
    CHECK((imported.contains(row.name) || in_texts.contains(row.name) || row.reference ||
           kOwnTests.contains(row.name) || kReasons.contains(row.name)));
  }
}

TEST_CASE("the stated oracles of operators exist", "[ops]") {
  for (const auto& [name, file] : kOwnTests) {
    INFO(name << " in " << file);
    CHECK(op_table().find(name));
    std::string text = read_file(fs::path(RELAXC_SOURCE_DIR "/tests/ops") / file);
    std::string family = name.substr(std::string("relax.").size());
    if (std::isdigit(static_cast<unsigned char>(family[family.size() - 2]))) family.resize(family.size() - 2);
    CHECK(text.find('"' + family) != std::string::npos);
  }
  for (const auto& [name, reason] : kReasons) {
    INFO(name);
    const OpRow* row = op_table().find(name);
    REQUIRE(row);
    CHECK((has_lowering(*row) && !row->legalize));  // an operator with a program has a formula
  }
}

}  // namespace relaxc::test
