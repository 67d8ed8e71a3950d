// Debian's libonnx-testdata: the ONNX backend tests. Each case is compiled and run once in an own process.
// expected_failures.txt lists those that do not pass and why; it may only shrink.
//   RELAXC_ONNX_TESTDATA=DIR  where the suites are, instead of the Debian package's folder
//   RELAXC_ONNX_CASES=TEXT    only the cases whose name contains TEXT, with each result printed
//   RELAXC_UPDATE=1           take cases that pass from the list; =add: also list the ones that fail now
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "codegen/compile.h"
#include "frontend/onnx/test_data.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "tests/onnx/wrong_data.h"
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

// ---- Cases whose results are random numbers: their expected data say only of which shape and dtype they are. What
// holds for each run is checked, and that frequencies are within five standard deviations of their mean.

bool is_likely(double found, double mean, double variance) {
  return std::abs(found - mean) <= 5 * std::sqrt(variance) + 1e-6;
}
// The input has the probabilities of ones. The body that the older standard gives for the operator has those of zeros.
std::string check_flags(const std::string& name, Session& session, const std::vector<Tensor>& inputs,
                        const Tensor& expected) {
  constexpr int kRuns = 400;
  bool is_seeded = name.find("seed") != std::string::npos, is_body = name.find("expanded") != std::string::npos;
  std::vector<Tensor> runs;
  for (int run = 0; run < kRuns; ++run) {
    runs.push_back(session.run(inputs).at(0));
    if (describe(runs.back()) != describe(expected)) return describe(runs.back()) + " is not " + describe(expected);
  }
  bool varies = std::any_of(runs.begin(), runs.end(), [&](const Tensor& y) { return !same_contents(y, runs[0]); });
  if (varies == is_seeded) return fmt::format("{} runs {}", kRuns, varies ? "differ" : "are all alike");
  double sum = 0, mean = 0, variance = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    double p = is_body ? 1 - inputs.at(0).as_double(i) : inputs.at(0).as_double(i), ones = 0;
    for (const Tensor& y : runs) {
      if (y.as_double(i) != 0 && y.as_double(i) != 1) return fmt::format("element {} is {}", i, y.as_double(i));
      ones += y.as_double(i);
    }
    if (!is_seeded && !is_likely(ones, kRuns * p, kRuns * p * (1 - p)))
      return fmt::format("element {} is 1 in {} of {} runs, its probability is {}", i, ones, kRuns, p);
    sum += runs[0].as_double(i);
    mean += p;
    variance += p * (1 - p);
  }
  return is_likely(sum, mean, variance) ? "" : fmt::format("{} ones of {}", sum, expected.size());
}
// An element is dropped, or scaled up by what is dropped on average.
std::string check_dropped(const std::vector<Tensor>& inputs, const std::vector<Tensor>& actual,
                          const std::vector<Tensor>& expected) {
  for (size_t k = 0; k < expected.size(); ++k) {
    if (describe(actual[k]) != describe(expected[k])) return describe(actual[k]) + " is not " + describe(expected[k]);
  }
  const Tensor& x = inputs.at(0);
  double ratio = inputs.at(1).as_double(0), dropped = 0, size = static_cast<double>(x.size());
  for (int64_t i = 0; i < x.size(); ++i) {
    double y = actual[0].as_double(i), kept = x.as_double(i) / (1 - ratio);
    bool is_kept = y != 0;
    if (is_kept && std::abs(y - kept) > 1e-5 * std::abs(kept))
      return fmt::format("element {} is {}, expected 0 or {}", i, y, kept);
    if (actual.size() > 1 && (actual[1].as_int(i) != 0) != is_kept)
      return fmt::format("element {} of the mask is {}", i, actual[1].as_int(i));
    dropped += is_kept ? 0 : 1;
  }
  return is_likely(dropped, size * ratio, size * ratio * (1 - ratio)) ? "" : fmt::format("{} are dropped", dropped);
}

// Why the case does not pass; empty when it does.
std::string run_case(const fs::path& dir) {
  std::string model = (dir / "model.onnx").string();
  CompileSettings settings;
  settings.jobs = 1;
  Session session(compile_file(model, settings).load(), {.threads = 1});
  fs::path data = dir / "test_data_set_0";
  const std::string name = dir.filename().string();
  test::CaseData mended{read_all(data, "input", session.program().inputs()),
                        read_all(data, "output", session.program().outputs())};
  std::string unproven = test::mend_wrong_data(name, session.program().inputs(), mended);
  if (!unproven.empty()) return unproven;
  const auto& [inputs, expected] = mended;
  std::vector<tools::NamedValue> actual = tools::flat_results(session.run_values(inputs), session.program().outputs());
  if (actual.size() != expected.size()) return fmt::format("{} outputs, expected {}", actual.size(), expected.size());
  auto tensors = [](const std::vector<vm::Value>& values) {
    return map_each(values, [](const vm::Value& value) { return value.tensor(); });
  };
  if (name.starts_with("test_bernoulli")) return check_flags(name, session, tensors(inputs), expected.at(0).tensor());
  bool has_drops = name.find("zero_ratio") == std::string::npos;
  if (name.starts_with("test_training_dropout") && has_drops) {
    auto results = map_each(actual, [](const tools::NamedValue& result) { return result.value.tensor(); });
    return check_dropped(tensors(inputs), results, tensors(expected));
  }
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
