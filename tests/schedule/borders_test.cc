// Steps at the borders of loops whose extents are not known or not divided.
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

std::string scheduled(const char* program, const char* steps) {
  Diagnostics diagnostics;
  IRModule module = parse_module(program, "case.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  Schedule schedule(module.prim_func("main"));
  run_schedule_text(schedule, steps, "steps.py");
  return print_function("main", schedule.function());
}

}  // namespace

TEST_CASE("axes are sums with symbolic strides", "[schedule]") {
  const char* program = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n * (m // 2),))
    for i, j in T.grid(n, m // 2):
        with T.block("C"):
            v = T.axis.spatial(n * (m // 2), i * (m // 2) + j)
            C[v] = A[0, 0]
)";
  std::string text = scheduled(program, R"(i, j = sch.get_loops(sch.get_block("C"))
j0, j1 = sch.split(j, [None, 8])
sch.reorder(j0, i, j1)
sch.parallel(j0))");
  INFO(text);
  CHECK(text.find("for j_0 in T.parallel") < text.find("for i"));
}

TEST_CASE("loops inside of one that repeats elements are reordered", "[schedule]") {
  const char* program = R"(@T.prim_func
def main(A: T.Buffer((18, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((18, 8))
    for i, j in T.grid(18, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 2, vj]
)";
  std::string text = scheduled(program, R"(i0, i1 = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4])
b = sch.get_block("B")
sch.compute_at(b, i0)
i, j = sch.get_loops(b)[1:]
sch.reorder(j, i))");
  INFO(text);
  CHECK(text.find("for ax1, ax0 in T.grid(8, 6)") != std::string::npos);
}

TEST_CASE("compute_at makes all of few values, also at a border", "[schedule]") {
  const char* program = R"(@T.prim_func
def main(A: T.Buffer((4, 3), "float32"), C: T.Buffer((10,), "float32")):
    B = T.alloc_buffer((4, 3))
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi % 4, vi // 4]
)";
  std::string text = scheduled(program, R"(i0, i1 = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4])
sch.compute_at(sch.get_block("B"), i0))");
  INFO(text);
  size_t condition = text.find("T.where");
  CHECK(condition > text.find("\"C\""));
  CHECK(text.find("T.where", condition + 1) == std::string::npos);
}

}  // namespace relaxc::test
