// Windows: buffers that stand for a part of another one (T.match_buffer, and the params of tensor intrinsics).
#pragma once
#include <optional>
#include <string>

#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// The strides of the buffer's memory, in elements; row-major where the type has none.
std::vector<Expr> strides_of(const BufferType& type);
// The position of the window's first element in its source.
Expr window_start(const MatchBuffer& window);
// Why the body may not use the window on its source; nullopt: it may. A window with strides asks for those (variables
// that it defines take any). Without, its elements are found by their indices, wherever they lie, unless the body
// takes their address or a vector runs over the end of a dim into the next row: then rows are to lie side by side.
// Its scope, offset_factor and align (bytes; the default asks nothing) must be known of its place in `function`.
std::optional<std::string> misfit(const MatchBuffer& window, const Stmt& body, const PrimFuncRef& function,
                                  const Analyzer& facts);

}  // namespace relaxc
