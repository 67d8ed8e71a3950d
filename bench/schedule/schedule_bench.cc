// Measures schedules: primitives per second on a fused convolution, and the time of a whole schedule with the
// lowering behind it (without LLVM). One thread, medians.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>

#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/lowering.h"
#include "tir/compute.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/cache_read.h"
#include "tir/primitives/compute_at.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/reverse_compute_at.h"
#include "tir/primitives/split.h"
#include "tir/primitives/storage_align.h"
#include "tir/primitives/unroll.h"
#include "tir/primitives/vectorize.h"
#include "tir/schedule/schedule.h"

namespace relaxc {

namespace {

// Of the processor: other programs on the machine do not count.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
double seconds(const std::function<void()>& work) {
  double start = now();
  work();
  return now() - start;
}

double median(int rounds, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) times.push_back(seconds(work));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// pad, conv2d 64x56x56 3x3, bias, residual, relu.
PrimFuncRef fused_conv2d() {
  ComputeBuilder b;
  auto dims = [](std::initializer_list<int64_t> numbers) {
    std::vector<Expr> result;
    for (int64_t number : numbers) result.push_back(int_imm(number));
    return result;
  };
  Expr zero_f = zero(kFloat32);
  Buffer x = b.input("x", kFloat32, dims({1, 64, 56, 56})), w = b.input("w", kFloat32, dims({2, 64, 3, 3, 32}));
  Buffer bias = b.input("bias", kFloat32, dims({64})), skip = b.input("skip", kFloat32, dims({1, 64, 56, 56}));
  Buffer pad = b.compute("pad", kFloat32, dims({1, 64, 58, 58}), [&](Axes i) {
    Expr inside = i[2] >= int_imm(1) && i[2] < int_imm(57) && i[3] >= int_imm(1) && i[3] < int_imm(57);
    return if_then_else(inside, load(x, {i[0], i[1], i[2] - 1, i[3] - 1}), zero_f);
  });
  Buffer conv =
      b.reduce("conv", kFloat32, dims({1, 64, 56, 56}), dims({64, 3, 3}), zero_f, combine_sum, [&](Axes i, Axes r) {
        return load(pad, {i[0], r[0], i[2] + r[1], i[3] + r[2]}) *
               load(w, {floor_div(i[1], 32), r[0], r[1], r[2], floor_mod(i[1], 32)});
      });
  Buffer sum =
      b.compute("sum", kFloat32, dims({1, 64, 56, 56}), [&](Axes i) { return at(conv, i) + load(bias, {i[1]}); });
  Buffer add = b.compute("add", kFloat32, dims({1, 64, 56, 56}), [&](Axes i) { return at(sum, i) + at(skip, i); });
  Buffer out = b.compute("relu", kFloat32, dims({1, 64, 56, 56}), [&](Axes i) { return max(at(add, i), zero_f); });
  return b.finish({out});
}

// A schedule of 40 steps.
void tile(Schedule& sch) {
  BlockRV conv = sch.apply(GetBlock{"conv"}), pad = sch.apply(GetBlock{"pad"}), relu = sch.apply(GetBlock{"relu"});
  sch.apply(ComputeInline{sch.apply(GetBlock{"sum"})});
  sch.apply(ComputeInline{sch.apply(GetBlock{"add"})});
  Loops l = sch.apply(GetLoops{conv});
  Loops f = sch.apply(Split{l[1], {std::nullopt, 2, 16}});
  Loops x = sch.apply(Split{l[3], {std::nullopt, 14}});
  Loops c = sch.apply(Split{l[4], {std::nullopt, 16}});
  sch.apply(Reorder{{l[0], f[0], l[2], x[0], c[0], l[5], l[6], c[1], x[1], f[1], f[2]}});
  // The weights of a tile's filters, close together for each block of channels.
  BlockRV panel = sch.apply(CacheRead{conv, "w", "global"});
  sch.apply(ComputeAt{panel, c[0]});
  Loops copy = sch.apply(GetLoops{panel});
  sch.apply(Vectorize{copy.back()});
  sch.apply(Annotate{copy[copy.size() - 2], "pragma_unroll", true});
  sch.apply(StorageAlign{panel, 0, 2, 32, 16});
  sch.apply(ReverseComputeAt{relu, x[0]});
  sch.apply(Unroll{x[1]});
  sch.apply(Unroll{f[1]});
  sch.apply(Vectorize{f[2]});
  Loops last = sch.apply(GetLoops{relu});
  Loops parts = sch.apply(Split{last[last.size() - 2], {2, 16}});
  sch.apply(Reorder{{last.back(), parts[0], parts[1]}});
  sch.apply(Unroll{last.back()});
  sch.apply(Unroll{parts[0]});
  sch.apply(Vectorize{parts[1]});
  sch.apply(DecomposeReduction{conv, c[0]});
  LoopRV outer = sch.apply(Fuse{{l[0], f[0], l[2]}});
  sch.apply(Parallel{outer});
  Loops p = sch.apply(GetLoops{pad});
  Loops p2 = sch.apply(Split{p[2], {std::nullopt, 2}}), p3 = sch.apply(Split{p[3], {std::nullopt, 16}});
  sch.apply(Vectorize{p3[1]});
  sch.apply(Parallel{sch.apply(Fuse{{p[0], p[1], p2[0]}})});
  sch.apply(Unroll{p2[1]});
  sch.apply(Annotate{conv, "user.tile", "14 x 32"});
  sch.apply(Annotate{outer, "user.threads", 2});
}

int run() {
  PrimFuncRef conv = fused_conv2d();
  ScheduleOptions fast{.show_program = false};
  // Pairs of primitives that undo each other but for new loops, on one program.
  size_t steps = 0;
  double time = median(9, [&] {
    Schedule sch(conv, fast);
    for (int round = 0; round < 50; ++round) {
      Loops l = sch.apply(GetLoops{sch.apply(GetBlock{"conv"})});
      Loops parts = sch.apply(Split{l[1], {std::nullopt, 8}});
      sch.apply(Reorder{{parts[1], parts[0]}});
      sch.apply(Reorder{{parts[0], parts[1]}});
      sch.apply(Fuse{{parts[0], parts[1]}});
      Loops x = sch.apply(Split{l[3], {std::nullopt, 4}});
      sch.apply(Unroll{l[6]});
      sch.apply(Fuse{{x[0], x[1]}});
    }
    steps = sch.trace().steps.size();
  });
  fmt::print("{:.0f} primitives per second ({} steps on the fused convolution)\n", static_cast<double>(steps) / time,
             steps);
  size_t tile_steps = 0;
  double schedule_time = median(21, [&] {
    Schedule sch(conv, fast);
    tile(sch);
    tile_steps = sch.trace().steps.size();
  });
  double whole_time = median(21, [&] {
    Schedule sch(conv, fast);
    tile(sch);
    lower_program(sch.function());
  });
  fmt::print("a schedule of {} steps: {:.2f} ms; with lowering {:.2f} ms\n", tile_steps, schedule_time * 1e3,
             whole_time * 1e3);
  return 0;
}

}  // namespace

}  // namespace relaxc

int main() {
  try {
    return relaxc::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
