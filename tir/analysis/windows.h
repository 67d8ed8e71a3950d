// Windows: buffers that stand for a part of another one (T.match_buffer, and the params of tensor intrinsics).
#pragma once
#include <optional>
#include <string>

#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// The strides of the buffer's memory, in elements, as int64; row-major where the type has none.
std::vector<Expr> strides_of(const BufferType& type);
// Whether a window asks to begin at multiples of some elements or bytes.
bool asks_place(const BufferType& type);
// The variables that the windows define, dims, strides and the offset of the source's memory, as what they are.
VarMap window_numbers(const std::vector<MatchBuffer>& windows);
// Why the body may not use the window on its source; nullopt: it may. A window with strides asks for those (of
// variables, `numbers`). Without, its elements are found by their indices, wherever they lie, unless the body takes
// their address or a vector runs over the end of a dim into the next row: then rows are to lie side by side. Its scope,
// elem_offset, offset_factor and align (bytes; the default asks nothing) must be known of its place in `function`.
std::optional<std::string> misfit(const MatchBuffer& window, const Stmt& body, const PrimFuncRef& function,
                                  const VarMap& numbers, const Analyzer& facts);

}  // namespace relaxc
