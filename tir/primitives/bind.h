#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

// Bind is a statement.
struct BindThread {
  LoopRV loop;
  ThreadAxis thread_axis;

  static constexpr std::string_view kName = "bind";
  static constexpr std::string_view kDoc = "makes the iterations threads of the axis";
  static constexpr auto fields() {
    return std::tuple(required("loop", &BindThread::loop, "binds spatial axes only"),
                      required("thread_axis", &BindThread::thread_axis, "\"blockIdx.x\", \"threadIdx.y\""));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
