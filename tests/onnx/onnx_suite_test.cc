// Debian's libonnx-testdata: the ONNX backend tests. Each case is compiled and run once in an own process.
// expected_failures.txt lists those that do not pass and why; it may only shrink.
//   RELAXC_ONNX_TESTDATA=DIR  where the suites are, instead of the Debian package's folder
//   RELAXC_ONNX_CASES=TEXT    only the cases whose name contains TEXT, with each result printed
//   RELAXC_UPDATE=1           take cases that pass from the list; =add: also list the ones that fail now
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "codegen/compile.h"
#include "frontend/onnx/test_data.h"
#include "support/diagnostic.h"
#include "tests/process.h"
#include "tests/report.h"
#include "tools/compare.h"
#include "tools/values.h"

#include "tests/catch.h"

using namespace relaxc;
namespace fs = std::filesystem;

namespace {

struct Suite {
  const char* name;
  int minimum;  // that many cases pass at least
};
constexpr Suite kSuites[] = {{"node", 700}, {"simple", 15}, {"pytorch-converted", 82}, {"pytorch-operator", 35}};
constexpr double kLimitSeconds = 60;

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// "suite/case" -> why it does not pass. Comments and their order stay with update().
class ExpectedFailures {
 public:
  ExpectedFailures() {
    std::ifstream file(path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with('#') || line.empty()) {
        head_ += line + '\n';
        continue;
      }
      size_t colon = line.find(": ");
      REQUIRE(colon != std::string::npos);
      CHECK(reasons_.emplace(line.substr(0, colon), line.substr(colon + 2)).second);
    }
  }
  const std::map<std::string, std::string>& reasons() const { return reasons_; }
  void remove(const std::string& name) { reasons_.erase(name); }
  void add(const std::string& name, const std::string& reason) { reasons_.emplace(name, reason); }
  void write() const {
    std::ofstream file(path());
    file << head_;
    for (const auto& [name, reason] : reasons_) file << name << ": " << reason << '\n';
  }

 private:
  static std::string path() { return RELAXC_SOURCE_DIR "/tests/onnx/expected_failures.txt"; }
  std::string head_;
  std::map<std::string, std::string> reasons_;
};

// prefix_0.pb, prefix_1.pb, ... as values of the declared types.
std::vector<vm::Value> read_all(const fs::path& dir, const std::string& prefix,
                                const std::vector<vm::ValueInfo>& infos) {
  std::vector<vm::Value> result;
  for (size_t i = 0;; ++i) {
    std::string path = dir / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(path)) return result;
    result.push_back(read_value_pb(path, i < infos.size() ? infos[i] : vm::ValueInfo{}));
  }
}

// Why the case does not pass; empty when it does.
std::string run_case(const fs::path& dir) {
  std::string model = (dir / "model.onnx").string();
  CompileSettings settings;
  settings.jobs = 1;
  Session session(compile_file(model, settings).load(), {.threads = 1});
  fs::path data = dir / "test_data_set_0";
  std::vector<vm::Value> inputs = read_all(data, "input", session.program().inputs());
  std::vector<vm::Value> expected = read_all(data, "output", session.program().outputs());
  std::vector<tools::NamedValue> actual = tools::flat_results(session.run_values(inputs), session.program().outputs());
  if (actual.size() != expected.size()) return fmt::format("{} outputs, expected {}", actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    std::string difference =
        tools::compare_values(fmt::format("output {}", i), actual[i].value, expected[i], 1e-3, 1e-7);
    if (!difference.empty()) return difference;
  }
  return {};
}

std::string without_place(std::string text, const std::string& place) {
  for (size_t at; (at = text.find(place)) != std::string::npos;) text.erase(at, place.size());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string run_guarded(const fs::path& dir) {
  try {
    return run_case(dir);
  } catch (const CompileError& error) {
    return error.diagnostics().empty() ? error.what() : to_string(error.diagnostics().front());
  } catch (const std::exception& error) {
    return error.what();
  }
}

struct Case {
  std::string suite, name;  // "node", "node/test_abs"
  fs::path dir;
};

std::vector<Case> find_cases(const fs::path& root, const std::string& filter) {
  std::vector<Case> result;
  for (const Suite& suite : kSuites) {
    if (!fs::is_directory(root / suite.name)) continue;
    std::vector<fs::path> dirs;
    for (const auto& entry : fs::directory_iterator(root / suite.name)) dirs.push_back(entry.path());
    std::sort(dirs.begin(), dirs.end());
    for (const fs::path& dir : dirs) {
      std::string name = fmt::format("{}/{}", suite.name, dir.filename().string());
      if (!fs::exists(dir / "model.onnx") || name.find(filter) == std::string::npos) continue;
      result.push_back({suite.name, name, dir});
    }
  }
  return result;
}

}  // namespace

TEST_CASE("the ONNX backend test suites pass, but for the listed cases", "[onnx]") {
  fs::path root = environment("RELAXC_ONNX_TESTDATA", "/usr/share/libonnx-testdata/data");
  std::string filter = environment("RELAXC_ONNX_CASES", ""), update = environment("RELAXC_UPDATE", "");
  std::vector<Case> cases = find_cases(root, filter);
  if (cases.empty() && !fs::exists(root)) {
    test::skip(fmt::format("no folder {}; apt-get install libonnx-testdata (./dev test does)", root.string()));
    return;
  }
  REQUIRE(!cases.empty());

  op_table();  // made once here, not in each child
  std::map<std::string, std::string> failures;
  std::map<std::string, double> slow;
  test::run_forked(
      static_cast<int>(cases.size()), 2, kLimitSeconds,
      [&](int i) { return run_guarded(cases[static_cast<size_t>(i)].dir); },
      [&](int i, const test::Outcome& outcome) {
        const Case& done = cases[static_cast<size_t>(i)];
        std::string reason = outcome.exit_code == 0 ? outcome.out : outcome.how_it_ended() + " " + outcome.err;
        if (!reason.empty()) failures[done.name] = without_place(reason.substr(0, 300), done.dir.string() + "/");
        if (outcome.seconds > 5) slow[done.name] = outcome.seconds;
        if (!filter.empty()) fmt::print("{}: {}\n", done.name, reason.empty() ? "ok" : failures[done.name]);
      });

  std::string summary = "ONNX backend tests (passed of all):\n", details;
  for (const Suite& suite : kSuites) {
    auto of_suite = [&](const Case& one) { return one.suite == suite.name; };
    auto total = std::count_if(cases.begin(), cases.end(), of_suite);
    auto passed = total - std::count_if(cases.begin(), cases.end(),
                                        [&](const Case& one) { return of_suite(one) && failures.contains(one.name); });
    summary += fmt::format("  {:18} {:4}/{}\n", suite.name, passed, total);
    INFO("suite " << suite.name << " needs at least " << suite.minimum);
    if (filter.empty()) CHECK(passed >= suite.minimum);
  }
  for (const auto& [name, reason] : failures) details += fmt::format("{}: {}\n", name, reason);
  for (const auto& [name, seconds] : slow) details += fmt::format("# slow: {} took {:.1f} s\n", name, seconds);
  std::ofstream(RELAXC_BINARY_DIR "/onnx-report.txt") << summary << details;
  if (filter.empty()) test::write_report("onnx", summary);

  ExpectedFailures expected;
  std::string must_leave, new_failures, unknown;
  for (const Case& one : cases) {
    bool listed = expected.reasons().contains(one.name), failed = failures.contains(one.name);
    if (listed && !failed) must_leave += "\n  " + one.name;
    if (!listed && failed) new_failures += "\n  " + one.name + ": " + failures[one.name];
    if (!update.empty() && listed && !failed) expected.remove(one.name);
    if (update == "add" && !listed && failed) expected.add(one.name, failures[one.name]);
  }
  if (filter.empty()) {
    for (const auto& [name, reason] : expected.reasons()) {
      bool known =
          std::any_of(cases.begin(), cases.end(), [&, wanted = name](const Case& one) { return one.name == wanted; });
      if (!known) unknown += "\n  " + name;
    }
  }
  if (!update.empty()) {
    expected.write();
    must_leave.clear();
    if (update == "add") new_failures.clear();
  }
  INFO("failing cases that tests/onnx/expected_failures.txt does not list:" << new_failures);
  CHECK(new_failures.empty());
  INFO("listed cases that pass now; take them from the list (./dev update 'onnx*'):" << must_leave);
  CHECK(must_leave.empty());
  INFO("listed cases that do not exist:" << unknown);
  CHECK(unknown.empty());
}
