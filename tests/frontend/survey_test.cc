// The forms of ./dev bench operators: the tables hold enough of them, and every one compiles as far as to kernels.
#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "codegen/compile.h"
#include "frontend/onnx/import.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
namespace fs = std::filesystem;

namespace {

// Larger constants take time to write, and nothing but the numbers in these forms would be new.
constexpr const char* kMostBytes = "300000";
constexpr size_t kLeastForms = 400;

// Writes the models and returns their files; none where Python has no onnx.
std::vector<fs::path> survey_models(const fs::path& folder) {
  fs::remove_all(folder);
  test::Outcome exported = test::run_program({"/usr/bin/python3", "-B", RELAXC_SOURCE_DIR "/bench/operators/export.py",
                                              folder.string(), "--most-bytes", kMostBytes},
                                             300);
  if (exported.exit_code == 127 || exported.err.find("ModuleNotFoundError") != std::string::npos) return {};
  INFO(exported.err);
  REQUIRE(exported.exit_code == 0);
  std::vector<fs::path> models;
  for (const char* kind : {"static", "dims"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / kind)) models.push_back(entry.path());
  }
  return models;
}

}  // namespace

TEST_CASE("every form of the survey compiles to kernels, static and with symbolic dims", "[frontend]") {
  const fs::path folder = fs::path(RELAXC_BINARY_DIR) / "survey_forms";
  const std::vector<fs::path> models = survey_models(folder);
  if (models.empty()) {
    WARN("test skipped: python3 with onnx is not installed");
    return;
  }
  CompileSettings settings;
  settings.passes = "simplify,kernels";
  std::set<std::string> names;
  for (const fs::path& model : models) {
    INFO(model.string());
    CHECK_NOTHROW(run_pipeline(import_onnx(model.string(), op_table()), settings));
    names.insert(model.filename().string());
  }
  CHECK(names.size() >= kLeastForms);
  CHECK(models.size() > 2 * kLeastForms);
  fs::remove_all(folder);
}
