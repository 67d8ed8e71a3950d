// The source location of a piece of IR: a place in a text file, or a node of an ONNX model. Every IR node carries one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace relaxc {

// The text or node that a span points into. There is one Origin per text file, and one per node of an imported model.
struct Origin {
  std::string file;                         // the text file or the model's path
  std::string node;                         // the ONNX node's name; empty for text
  std::string op_type;                      // the ONNX operator; empty for text
  std::shared_ptr<const std::string> text;  // the file's content, for the source line in messages; null for models
  std::vector<std::string> others = {};  // nodes that the value comes from as well, where one kernel computes several
};

struct Span {
  std::shared_ptr<const Origin> origin;  // null: made by the compiler itself
  uint32_t line = 0;                     // 1-based; 0 when the origin is a model node
  uint32_t column = 0;                   // 1-based, in bytes
  uint32_t length = 0;                   // bytes underlined on that line

  explicit operator bool() const { return origin != nullptr; }
};

// Returns the place of a whole file.
Span span_of_file(std::string file);

// Returns the place of a value that is computed together with others: that of `main`, with their nodes besides.
Span span_of_nodes(const Span& main, const std::vector<Span>& all);
// Returns the nodes of the model that the value comes from, "/conv1/Conv, /relu/Relu"; empty where there is none.
std::string nodes_of(const Span& span);

// Returns "file.py:3:7" or "model.onnx: node 'Conv_12' (Conv)"; empty for an unknown place.
std::string to_string(const Span& span);

}  // namespace relaxc
