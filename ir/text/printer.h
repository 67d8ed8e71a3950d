// <relaxc/printer.h>: the text form of modules: TVMScript in the dialect of TVM up to 0.23, printed without Python.
// A printed module reads back (ir/text/parser.h) as a structurally equal one, unless constants are elided. The bytes
// depend on the module alone: not on addresses, the locale or the order of construction.
//
// Spelling, where TVM leaves a choice: tensor programs write int32 constants bare and others as T.int64(3); graph
// functions write int64 bare. A flat allocation (AllocBuffer) is `T.decl_buffer(shape, dtype)` without data=, an
// allocation of a block `T.alloc_buffer`. Attributes of operators have the order of TVM's declaration.
#pragma once
#include "ir/module.h"

namespace relaxc {

// The version of TVM whose spellings are used for forms that have changed since.
enum class Dialect : uint8_t { kTvm23, kTvm26 };

struct PrintOptions {
  // Constants of at most this many elements are written out; larger ones print as `metadata["relax.expr.Constant"][k]`,
  // and such a text cannot be read back unless they go to a side file.
  int64_t inline_elements = 16;
  // The safetensors file to which print_module writes the larger constants, as constant_0, constant_1, ... A reader
  // looks for it in the text's folder. Throws CompileError when it cannot be written.
  std::string constants_file = {};
  Dialect dialect = Dialect::kTvm23;
  // Payloads of loops and blocks whose first line ends in `# <-- here`.
  std::vector<const void*> marked = {};
};

std::string print_module(const IRModule& module, const PrintOptions& options = {});
// Prints one function with its decorator, outside a class.
std::string print_function(const std::string& name, const Expr& function, const PrintOptions& options = {});
// Prints "4 * m" or "R.nn.relu(x)" for messages, with int64 constants bare and variables by their hints.
std::string print_expr(const Expr& expr);
// The same, with int32 constants bare, too: "8" for T.int32(8), as in messages about indices.
std::string print_plain(const Expr& expr);
std::string print_stmt(const Stmt& stmt);
// Prints "R.Tensor((n, 4), dtype=\"float32\")".
std::string print_type(const Type& type);
// Prints a type, a statement or an expression as above.
std::string print_node(const NodeRef& node);

}  // namespace relaxc
