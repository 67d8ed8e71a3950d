// Windows: buffers that are views of a part of another one (T.match_buffer, and the params of tensor intrinsics).
#pragma once
#include <optional>
#include <string>

#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// Returns the position of the window's first element in its source's memory, as int64.
Expr window_start(const MatchBuffer& window);

// Returns the strides of the buffer's memory, in elements, as int64; they are row-major where the type has none.
std::vector<Expr> strides_of(const BufferType& type);
// Returns whether a window must begin at a multiple of some number of elements or bytes.
bool requires_alignment(const BufferType& type);
// Maps the variables that the windows define (dims, strides and the offset of the source's memory) to their values.
VarMap window_numbers(const std::vector<MatchBuffer>& windows);
// Returns why the body may not use the window on its source, or nullopt when it may. A window with strides requires
// exactly these strides (`numbers` maps variables among them to their values). Rows of a window without strides may lie
// anywhere, unless the body takes an element's address or a vector runs over the end of a dim into the next row: then
// the rows must be contiguous. The window's scope, elem_offset, offset_factor and align (in bytes; the default requires
// nothing) must be known to hold for its place in `function`.
std::optional<std::string> misfit(const MatchBuffer& window, const Stmt& body, const PrimFuncRef& function,
                                  const VarMap& numbers, const Analyzer& facts);

}  // namespace relaxc
