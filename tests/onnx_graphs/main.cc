// Random ONNX graphs at every level of the compiler, with ONNX Runtime as another judge where it is installed
// (./dev graphs installs it). Findings are shrunk and printed; the exit code is 1 when there are any.
//
// usage: onnx_graphs [COUNT [FIRST_SEED]]
//   RELAXC_ORT=DIR   the folder of npm's onnxruntime-node, instead of the one below bench/ort
#include <filesystem>
#include <fstream>

#include "tests/onnx_graphs/check.h"
#include "tests/onnx_graphs/runtime.h"
#include "tests/report.h"

namespace {

using namespace relaxc::test::onnx_graphs;

struct Totals {
  std::map<Kind, uint64_t> kinds;
  uint64_t interpreted = 0, by_ort = 0, findings = 0;
};

// A batch shares one process of ONNX Runtime.
void run_batch(uint64_t begin, uint64_t end, std::ostream& refused, Totals& totals) {
  const std::string folder = RELAXC_BINARY_DIR "/onnx_graphs", runtime = relaxc::test::find_onnx_runtime();
  std::vector<Graph> graphs;
  for (uint64_t seed = begin; seed < end; ++seed) graphs.push_back(make_graph(seed));
  std::vector<Verdict> verdicts = check_graphs(graphs, folder, runtime);
  for (size_t i = 0; i < graphs.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    ++totals.kinds[verdict.kind];
    totals.findings += verdict.finding();
    totals.interpreted += verdict.interpreted && verdict.kind == Kind::kRight;
    totals.by_ort += verdict.by_ort && verdict.kind == Kind::kRight;
    if (!verdict.finding()) {
      if (!verdict.text.empty()) refused << fmt::format("seed {}: {}\n", graphs[i].seed, verdict.text);
      continue;
    }
    Graph small = shrink(graphs[i], verdict, folder + "/small", runtime);
    fmt::print("seed {}: {}\n{}  the shrunk model: {}/small/{}\n  again: build/tests/onnx_graphs/onnx_graphs 1 {}\n\n",
               small.seed, verdict.text, small.print(), folder, small.seed, small.seed);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr uint64_t kBatch = 50;
  uint64_t count = argc > 1 ? std::stoull(argv[1]) : 100, first = argc > 2 ? std::stoull(argv[2]) : 1;
  std::ofstream refused(RELAXC_BINARY_DIR "/onnx-graphs-refused.txt");
  Totals totals;
  for (uint64_t begin = first; begin < first + count; begin += kBatch)
    run_batch(begin, std::min(begin + kBatch, first + count), refused, totals);
  relaxc::test::write_report(
      "onnx_graphs",
      fmt::format("Random ONNX graphs: {} right ({} compared with the interpreter, {} with ONNX Runtime), {} not "
                  "supported, {} refused by ONNX Runtime too, {} findings\n",
                  totals.kinds[Kind::kRight], totals.interpreted, totals.by_ort, totals.kinds[Kind::kUnsupported],
                  totals.kinds[Kind::kRejectedByAll], totals.findings));
  // Most of the graphs that the generator draws must compile.
  bool mostly_compiled = count < 100 || totals.kinds[Kind::kRight] + totals.findings >= count * 8 / 10;
  if (!mostly_compiled) fmt::print("fewer than 80 % of the graphs compile: see build/onnx-graphs-refused.txt\n");
  return totals.findings == 0 && mostly_compiled ? 0 : 1;
}
