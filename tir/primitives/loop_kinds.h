// The primitives that give a loop another kind.
#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Parallel {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"parallel", "runs the iterations on all threads"};
  static constexpr auto fields() { return list(required<&Parallel::loop>("drives spatial axes only")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kParallel); }
};

struct Vectorize {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"vectorize", "runs the iterations in the lanes of vectors"};
  static constexpr auto fields() { return list(required<&Vectorize::loop>("drives spatial axes only")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kVectorized); }
};

struct Unroll {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"unroll", "repeats the body in the code for each iteration"};
  static constexpr auto fields() { return list(required<&Unroll::loop>("has a constant extent")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kUnrolled); }
};

// Bind is a statement.
struct BindThread {
  LoopRV loop;
  ThreadAxis thread_axis;

  static constexpr PrimitiveInfo kInfo{"bind", "runs each iteration on a thread of the axis"};
  static constexpr auto fields() {
    return list(required<&BindThread::loop>("drives spatial axes only"),
                required<&BindThread::thread_axis>("\"blockIdx.x\", \"threadIdx.y\""));
  }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kThreadBinding, thread_axis); }
};

}  // namespace relaxc
