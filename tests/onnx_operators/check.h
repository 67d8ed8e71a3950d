// The results of one drawn model, compared between machine code, the interpreter, the row's reference and ONNX Runtime.
#pragma once
#include <string>
#include <vector>

namespace relaxc::test::onnx_operators {

enum class Kind : uint8_t { kRight, kUnsupported, kRefused, kRefusedByAll, kWrong, kCrashed };

struct Verdict {
  Kind kind = Kind::kRight;
  std::string about;      // the draw, on one line
  std::string text = {};  // what is wrong; each difference begins with kCompared
  // what it was compared with, beside the interpreter
  bool by_ort = false, by_reference = false, by_formula = false;
  bool is_finding() const { return kind == Kind::kRefused || kind == Kind::kWrong || kind == Kind::kCrashed; }
};

inline constexpr const char* kCompared = "compared with ";

// Judges the models in these folders (draw.py writes them), each in a process of its own. ONNX Runtime has run them
// before, if it is there.
std::vector<Verdict> judge(const std::vector<std::string>& folders);

}  // namespace relaxc::test::onnx_operators
