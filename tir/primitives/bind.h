#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

// Bind is a statement.
struct BindThread {
  LoopRV loop;
  ThreadAxis thread_axis;

  static constexpr PrimitiveInfo kInfo{"bind", "runs each iteration on a thread of the axis"};
  static constexpr auto fields() {
    return list(required<&BindThread::loop>("drives spatial axes only; a threadIdx may reduce"),
                required<&BindThread::thread_axis>("\"blockIdx.x\", \"threadIdx.y\""));
  }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kThreadBinding, thread_axis); }
};

}  // namespace relaxc
