// Models of single operators, drawn within the specification (draw.py), compared between machine code, the interpreter,
// the rows' references and ONNX Runtime where it is installed (./dev operators installs it). Differences that
// explained.txt does not explain are printed; the exit code is 1 when there are any.
//
// usage: onnx_operators [COUNT [SEED [OPERATOR...]]]   COUNT draws of each
//   RELAXC_ORT=DIR   the folder of npm's onnxruntime-node, instead of the one below bench/ort
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/onnx_graphs/runtime.h"
#include "tests/onnx_operators/check.h"
#include "tests/process.h"
#include "tests/report.h"

namespace {

using namespace relaxc::test;
using namespace relaxc::test::onnx_operators;
namespace fs = std::filesystem;

constexpr const char* kScript = RELAXC_SOURCE_DIR "/tests/onnx_operators/draw.py";
constexpr size_t kShown = 4;  // findings of an operator

// A line of explained.txt: "Operator or its beginning* | pattern of the draw's line and the verdict | the reason".
struct Explained {
  std::string op, reason;
  std::regex pattern;
};

std::vector<Explained> read_explained() {
  std::vector<Explained> result;
  std::ifstream file(RELAXC_SOURCE_DIR "/tests/onnx_operators/explained.txt");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(" | "), second = line.find(" | ", first + 3);
    if (line.empty() || line[0] == '#' || second == std::string::npos) continue;
    result.push_back(
        {line.substr(0, first), line.substr(second + 3), std::regex(line.substr(first + 3, second - first - 3))});
  }
  return result;
}

bool is_explained(const std::vector<Explained>& all, const std::string& op, std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return std::any_of(all.begin(), all.end(), [&](const Explained& row) {
    const bool is_prefix = row.op.ends_with('*');
    const bool is_meant = is_prefix ? op.starts_with(row.op.substr(0, row.op.size() - 1)) : row.op == op;
    return is_meant && std::regex_search(text, row.pattern);
  });
}

// A difference from ONNX Runtime that is explained says nothing of one from the reference: each needs its own reason.
bool is_explained(const std::vector<Explained>& all, const std::string& op, const Verdict& verdict) {
  const std::string next = "\n" + std::string(kCompared);
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = verdict.text.find(next, begin + 1);
    if (!is_explained(all, op, verdict.about + " " + verdict.text.substr(begin, end - begin))) return false;
  }
  return true;
}

struct Totals {
  std::map<Kind, uint64_t> kinds;
  uint64_t draws = 0, by_ort = 0, by_reference = 0, by_formula = 0, by_none = 0, explained = 0, findings = 0;
  std::string line() const {
    auto count = [&](Kind kind) { return kinds.contains(kind) ? kinds.at(kind) : 0; };
    return fmt::format(
        "{} draws: {} right ({} draws compared with ONNX Runtime, {} with a reference, {} with a formula, {} with the "
        "interpreter only), {} not supported, {} refused by all, {} differences explained, {} findings",
        draws, count(Kind::kRight), by_ort, by_reference, by_formula, by_none, count(Kind::kUnsupported),
        count(Kind::kRefusedByAll), explained, findings);
  }
  void add(const Totals& other) {
    for (auto [kind, count] : other.kinds) kinds[kind] += count;
    draws += other.draws, by_ort += other.by_ort, by_reference += other.by_reference;
    by_formula += other.by_formula, by_none += other.by_none;
    explained += other.explained, findings += other.findings;
  }
};

class Sweep {
 public:
  Sweep(std::string count, std::string seed) : count_(std::move(count)), seed_(std::move(seed)) {}

  // Operators share one process of Python and one of ONNX Runtime, because these take long to start.
  Totals run(const std::vector<std::string>& ops) {
    const std::string folder = RELAXC_BINARY_DIR "/onnx_operators";
    std::vector<std::string> command = {"python3", kScript, folder, count_, seed_}, folders;
    for (const std::string& op : ops) {
      fs::remove_all(folder + "/" + op);
      command.push_back(op);
      for (int i = 0; i < std::stoi(count_); ++i) folders.push_back(fmt::format("{}/{}/{}", folder, op, i));
    }
    Outcome drawn = run_program(command, 600);
    if (drawn.exit_code != 0) {
      fmt::print("draw.py failed: {}\n{}\n", drawn.how_it_ended(), drawn.err);
      Totals failed;
      failed.findings = 1;
      return failed;
    }
    if (!runtime_.empty()) run_onnx_runtime(folders, runtime_, 600);
    std::vector<Verdict> verdicts = judge(folders);
    Totals all;
    for (size_t k = 0; k < ops.size(); ++k) {
      Totals totals;
      size_t count = verdicts.size() / ops.size();
      for (size_t i = k * count; i < (k + 1) * count; ++i) count_one(ops[k], folders[i], verdicts[i], totals);
      fmt::print("{}: {}\n", ops[k], totals.line());
      std::fflush(stdout);
      all.add(totals);
    }
    return all;
  }

 private:
  void count_one(const std::string& op, const std::string& folder, const Verdict& verdict, Totals& totals) {
    ++totals.draws;
    totals.by_ort += verdict.by_ort;
    totals.by_reference += verdict.by_reference;
    totals.by_formula += verdict.by_formula;
    const bool is_judged = verdict.by_ort || verdict.by_reference || verdict.by_formula;
    totals.by_none += !is_judged && verdict.kind == Kind::kRight;
    const bool has_reason = verdict.is_finding() && is_explained(explained_, op, verdict);
    totals.explained += has_reason;
    if (!verdict.is_finding()) ++totals.kinds[verdict.kind];
    if (!verdict.text.empty()) log_ << fmt::format("{}: {}\n  {}\n\n", folder, verdict.about, verdict.text);
    log_.flush();
    if (!verdict.is_finding() || has_reason) return fs::remove_all(folder), void();
    if (++totals.findings <= kShown)
      fmt::print("{}\n  {}\n  the model and its inputs: {}\n\n", verdict.about, verdict.text, folder);
  }

  std::string count_, seed_, runtime_ = find_onnx_runtime();
  std::vector<Explained> explained_ = read_explained();
  std::ofstream log_{RELAXC_BINARY_DIR "/onnx-operators.txt"};
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc), ops;
  if (args.size() > 2) ops.assign(args.begin() + 2, args.end());
  if (ops.empty()) {
    std::stringstream names(run_program({"python3", kScript, "--list"}, 60).out);
    for (std::string name; names >> name;) ops.push_back(name);
  }
  Sweep sweep(args.empty() ? "2" : args[0], args.size() > 1 ? args[1] : "1");
  Totals all;
  constexpr size_t kTogether = 300;  // draws
  size_t group = std::max<size_t>(kTogether / std::stoul(args.empty() ? "2" : args[0]), 1);
  for (size_t begin = 0; begin < ops.size(); begin += group)
    all.add(sweep.run({ops.begin() + static_cast<ptrdiff_t>(begin),
                       ops.begin() + static_cast<ptrdiff_t>(std::min(begin + group, ops.size()))}));
  write_report("onnx_operators", fmt::format("Single operators: {} operators, {}\n", ops.size(), all.line()));
  return all.findings == 0 && all.draws > 0 ? 0 : 1;
}
