// A scheduled matmul becomes what one would write by hand: accumulators of one tile, full tiles without conditions,
// exact tails, the next panel prefetched; in machine code the accumulators stay in registers.
#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "ir/text/printer.h"
#include "passes/pass.h"
#include "tests/lowering.h"
#include "tir/compute.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

PrimFuncRef scheduled_matmul(const Expr& m, const std::string& more) {
  ComputeBuilder b;
  Expr n = int_imm(1024);
  Buffer x = b.input("A", kFloat32, {m, n});
  Buffer y = b.input("B", kFloat32, {int_imm(32), n, int_imm(32)});  // packed: panels of 32 columns
  Buffer product = b.reduce("C", kFloat32, {m, n}, {n}, zero(kFloat32), combine_sum, [&](Axes i, Axes r) {
    return load(x, {i[0], r[0]}) * load(y, {floor_div(i[1], 32), r[0], floor_mod(i[1], 32)});
  });
  Buffer out = b.compute("out", kFloat32, {m, n}, [&](Axes i) { return max(at(product, i), float_imm(0)); });
  Schedule schedule(b.finish({out}));
  run_schedule_text(schedule, R"(
def tile(sch):
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    b, t, ii = sch.split(i, [None, 20, 13])
    jo, ji = sch.split(j, [None, 32])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(b, jo, t, k0, k1, ii, ji)
    sch.parallel(b)
    sch.reverse_compute_at(sch.get_block("out"), t)
    init = sch.decompose_reduction(c, k0)
    sch.unroll(k1)
    for block in [c, init, sch.get_block("out")]:
        loops = sch.get_loops(block)
        sch.unroll(loops[-2])
        sch.vectorize(loops[-1])
    sch.annotate(jo, "prefetch", ["B"])
)" + more,
                    "tile.py");
  return schedule.function();
}

struct Counts {
  int branches = 0, branches_in_tiles = 0, tiles = 0, prefetches = 0;
};
Counts count(const PrimFuncRef& function) {
  Counts counts;
  walk(
      function->body, [&](const IfThenElse&) { ++counts.branches; },
      [&](const AllocBuffer& alloc) {
        ++counts.tiles;
        CHECK(as_int(buffer_type(alloc.buffer).shape[0]) == 13 * 32);
      },
      [&](const Call& call) {
        const OpRef* op = call.callee.as<OpRef>();
        counts.prefetches += op && op->name == "tir.prefetch";
      },
      [&](const For& loop) {
        if (loop.kind == ForKind::kUnrolled) walk(loop.body, [&](const IfThenElse&) { ++counts.branches_in_tiles; });
      });
  return counts;
}

}  // namespace

TEST_CASE("a scheduled matmul is lowered to the form written by hand") {
  PrimFuncRef lowered = lower_program(scheduled_matmul(int_imm(1024), ""));
  INFO(print_function("main", lowered));
  Counts counts = count(lowered);
  CHECK(counts.branches == 1);  // full blocks of rows, or the last
  CHECK(counts.branches_in_tiles == 0);
  CHECK(counts.tiles == 3);
  CHECK(counts.prefetches == 2);
  Target target = codegen::parse_target("x86-64-v4");
  std::string text = codegen::to_assembly({{"main", lowered}}, target);
  size_t products = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
    products += line.find("vfmadd") != std::string_view::npos;
    bool on_stack = line.find("%rsp)") != std::string_view::npos, wide = line.find("%zmm") != std::string_view::npos;
    if (on_stack && wide) FAIL_CHECK("spilled: " << line);
  }
  CHECK(products == 2 * 8 * (13 + 13 + 10));
}

TEST_CASE("a matmul of unknown size has one tile for each rest") {
  PrimFuncRef lowered = lower_program(scheduled_matmul(make_dim("m"), "    sch.annotate(t, \"exact_tails\", True)\n"));
  INFO(print_function("main", lowered));
  Counts counts = count(lowered);
  CHECK(counts.branches == 14);  // full blocks; whether there is a rest; which
  CHECK(counts.branches_in_tiles == 0);
  CHECK(counts.tiles == 2 + 12);
}

}  // namespace relaxc::test
