// Tensor intrinsics (tensor_intrin.h) that a file of schedules declares, and the tensor programs that they are made of.
// Internal to tir/schedule/script*.cc.
#pragma once
#include "ir/text/syntax.h"
#include "support/diagnostic.h"
#include "tir/intrin/tensor_intrin.h"

namespace relaxc {

// A tensor program, or S.intrin(...).
bool declares_intrin(const text::Line& line);
// A line of a module that schedules stand beside.
bool is_of_module(const text::Line& line);
std::shared_ptr<const TensorIntrins> read_intrins(const std::shared_ptr<const Origin>& origin, const text::Lines& lines,
                                                  const std::string& filename, Diagnostics& diagnostics);

}  // namespace relaxc
