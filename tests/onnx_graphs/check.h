// The results of one random graph, compared between the interpreter at three levels, machine code and ONNX Runtime.
#pragma once
#include <string>
#include <vector>

#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

enum class Kind : uint8_t { kRight, kUnsupported, kRejected, kRejectedByAll, kWrong, kCrashed };

struct Verdict {
  Kind kind = Kind::kRight;
  std::string text = {};
  bool interpreted = false;  // compared with the interpreter
  bool by_ort = false;       // compared with ONNX Runtime
  bool finding() const { return kind == Kind::kRejected || kind == Kind::kWrong || kind == Kind::kCrashed; }
};

// Runs the graphs in forked processes, each in a folder of its own below `folder`, and says what became of them.
// `runtime` is the folder of npm's onnxruntime-node; empty: there is none.
std::vector<Verdict> check_graphs(const std::vector<Graph>& graphs, const std::string& folder,
                                  const std::string& runtime);

// Writes a smaller model with the same kind of verdict, and its inputs, to a folder below `folder`, as relaxc reduce
// finds it (frontend/onnx/reduce.h), and returns it as text.
std::string shrink(const Graph& graph, const Verdict& verdict, const std::string& folder, const std::string& runtime);

}  // namespace relaxc::test::onnx_graphs
