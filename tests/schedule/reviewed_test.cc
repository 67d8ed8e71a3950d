// Schedules that reviewers found to change results, or programs to be taken for what they are not.
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "tests/schedule/chains.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

struct Reviewed {
  const char* what;
  const char* program;
  const char* steps;
  const char* refusal;  // empty: the result stays as it is
};

constexpr const char* kTriangle = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, n))
    C = T.match_buffer(c, (n,))
    B = T.alloc_buffer((n,))
    for i in range(n):
        with T.block("start"):
            vi = T.axis.spatial(n, i)
            B[vi] = T.float32(0)
    for i in range(n):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                B[vi] = B[vi] + A[vi, vj]
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = B[vi] * T.float32(2)
)";
constexpr const char* kNestedScan = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n, m))
    for i in range(n):
        with T.block("row"):
            vi = T.axis.spatial(n, i)
            for j in range(m):
                with T.block("C"):
                    vj = T.axis.spatial(m, j)
                    C[vi, vj] = A[vi, vj] - T.if_then_else(0 < vi, C[vi - 1, vj], T.float32(0))
)";
constexpr const char* kProduct = R"(@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    k = T.int64()
    A = T.match_buffer(a, (n, k))
    B = T.match_buffer(b, (k, m))
    C = T.match_buffer(c, (n, m))
    for i, j, l in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
)";

constexpr const char* kStencil = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n + 2, m))
    C = T.match_buffer(c, (n, m))
    B = T.alloc_buffer((n + 2, m))
    for i, j in T.grid(n + 2, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] - B[vi + 2, vj]
)";
constexpr const char* kSumInParts = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 8))
    C = T.match_buffer(c, (n,))
    for i, k in T.grid(n, 3):
        with T.block("first"):
            vi = T.axis.spatial(n, i)
            vk = T.axis.reduce(8, k)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
    for i, k in T.grid(n, 5):
        with T.block("second"):
            vi = T.axis.spatial(n, i)
            vk = T.axis.reduce(8, k + 3)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)";
constexpr const char* kAnyTrue = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "bool")
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.bool(False)
            C[vi] = T.Cast("bool", T.Cast("int32", C[vi]) + A[vi, vj])
)";
constexpr const char* kCompacted = R"(@T.prim_func
def main(a: T.handle, c: T.handle, count: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n, m + 1))
    N = T.match_buffer(count, (n,), "int64")
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            C[vi, N[vi]] = C[vi, N[vi]] + A[vi, vj]
            N[vi] = N[vi] + T.int64(1)
)";
constexpr const char* kSumThenMax = R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n,))
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vj]
            C[vi] = T.max(C[vi], A[vi, vj])
)";

constexpr Reviewed kReviewed[] = {
    {"a digit that a loop inside turns", R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n, m))
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)
)",
     R"(i, j = sch.get_loops("C")
j0, j1 = sch.split(j, [None, 5])
f0, f1 = sch.split(sch.fuse(i, j0), [None, 8])
sch.parallel(f0))",
     ""},
    {"exact tails where the rest does something", R"(@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (m,))
    B = T.match_buffer(b, (n,))
    C = T.match_buffer(c, (4 * n,))
    for i in range(4 * n):
        with T.block("C"):
            vi = T.axis.spatial(4 * n, i)
            C[vi] = T.if_then_else(vi < m, A[T.min(vi, m - 1)], B[vi // 4])
)",
     R"(i0, i1 = sch.split(sch.get_loops("C")[0], [None, 4])
sch.annotate(i0, "exact_tails", True))",
     ""},
    {"padding of a loop that begins elsewhere", R"(@T.prim_func
def main(A: T.Buffer((30,), "float32"), C: T.Buffer((26,), "float32")):
    for i in range(4, 30):
        with T.block("C"):
            vi = T.axis.spatial(26, i - 4)
            C[vi] = T.if_then_else(vi < 20, A[vi + 3], T.float32(0))
)",
     R"(sch.decompose_padding("C", sch.get_loops("C")[0]))", ""},
    {"indices of several widths", R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    C = T.match_buffer(c, (n, 2))
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi, 0] = A[vi]
            C[vi, 1] = A[vi] + T.float32(1)
)",
     R"(copy = sch.cache_write("C", 0, "local")
sch.reverse_compute_at(copy, sch.get_loops("C")[0]))",
     ""},
    {"a fused loop that is empty", kProduct, R"(i, j, l = sch.get_loops("C")
sch.fuse(j, l))",
     ""},
    {"a fused loop that is empty inside of loops with tails", kProduct, R"(i, j, l = sch.get_loops("C")
i0, i1 = sch.split(i, [None, 4])
sch.reorder(i0, i1, j, l)
sch.fuse(j, l))",
     ""},
    {"a fused loop in parts that is empty", kProduct, R"(i, j, l = sch.get_loops("C")
sch.split(sch.fuse(i, j, l), [None, 8]))",
     ""},
    {"an aligned buffer without elements", R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    k = T.int64()
    A = T.match_buffer(a, (k, k))
    C = T.match_buffer(c, (k, k))
    B = T.alloc_buffer((k, k))
    for i, j in T.grid(k, k):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(k, k):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi]
)",
     R"(sch.storage_align("B", 0, 0, 8, 3))", ""},
    {"a triangle is no box", kTriangle, R"(sch.compute_at("B", sch.get_loops("C")[0]))", "not over all"},
    {"a triangle has no other axes", kTriangle, R"(sch.transform_block_layout("B", lambda i, j: (j, i)))",
     "not over all"},
    {"blocks in blocks that read what others made", kNestedScan, R"(sch.parallel(sch.get_loops("row")[0]))",
     "an earlier iteration made"},
    {"a loop that does not begin at 0", R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, n))
    C = T.match_buffer(c, (n, n))
    for i in T.serial(1, n):
        for j in range(n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
)",
     R"(i, j = sch.get_loops("C")
sch.reorder(j, i))",
     "i is a loop from 1, not from 0"},
    {"a prefetch of what the loop does not use", kTriangle,
     R"(sch.annotate(sch.get_loops("B")[0], "prefetch_own", ["C"]))", "reads or writes no buffer \"C\""},
    {"a prefetch without a list", kTriangle, R"(sch.annotate(sch.get_loops("B")[0], "prefetch", "A"))",
     "takes a loop and a list of buffers"},
    {"a prefetch of what is loaded in the same iteration", kProduct, R"(i, j, l = sch.get_loops("C")
sch.annotate(l, "prefetch_own", ["C", "A", "A"])
sch.annotate(j, "prefetch_own", ["B", "B"]))",
     ""},
    {"a prefetch of a buffer that lives inside of the loop", kProduct, R"(copy = sch.cache_write("C", 0, "local")
i, j, l = sch.get_loops("C")
sch.reverse_compute_at(copy, j)
sch.annotate(i, "prefetch_own", ["C_local"]))",
     ""},
    {"a prefetch of what a condition guards", R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    C = T.match_buffer(c, (n,))
    X = T.alloc_buffer((n,), "int64")
    for i in range(n):
        with T.block("X"):
            vi = T.axis.spatial(n, i)
            X[vi] = n - vi - T.int64(1)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = A[X[vi]]
)",
     R"(i, = sch.get_loops("C")
sch.annotate(i, "prefetch", ["A"])
sch.annotate(i, "prefetch_own", ["A", "C"]))",
     ""},
    {"a prefetch ahead of what the loop does not use", kTriangle,
     R"(sch.annotate(sch.get_loops("B")[0], "prefetch_ahead", ["C", 4]))", "reads no buffer \"C\""},
    {"prefetches of what two loops read and one stores", kTriangle, R"(i, j = sch.get_loops("B")
sch.annotate(i, "prefetch", ["A"])
sch.annotate(i, "prefetch_own", ["B"])
sch.annotate(j, "prefetch", ["A"]))",
     ""},
    {"parts of a loop that are empty for few rows", kProduct, R"(i, j, k = sch.get_loops("C")
sch.fuse(i, j)
sch.loop_partition(sch.get_loops("C")[0], [5, None]))",
     ""},
    {"a map that divides by zero", kProduct, R"(sch.transform_layout("C", ("write", 0), lambda i, j: (i // 0, j)))",
     "divides by 0"},
    {"a map that divides by a negative number", kProduct,
     R"(sch.transform_block_layout("C", lambda i, j, k: (i // -3, j, k, i % -3)))", "divides by -3"},
    {"a padding with which extents overflow", kProduct, R"(sch.pad_einsum("C", [4, 4, 9223372036854775807]))",
     "too large a number"},
    {"the least number as padding", kTriangle,
     R"(sch.transform_layout("C", ("read", 0), lambda i: (i // 4, i % 4), pad_value=-9223372036854775807))", ""},
    {"factors whose product overflows", kProduct, R"(sch.split(sch.get_loops("C")[0], [None, 2147483647, 4]))",
     "too large"},
    {"arithmetic that overflows", kProduct, R"(x = 4611686018427387904 * 4)", "too large a number"},
    {"arithmetic of fractions", kProduct, R"(assert 0.5 * 3 == 1.5 and 7 / 2 > 3 and 7.0 // 2 < 3.5)", ""},
    {"elements that are vectors", kTriangle, R"(sch.unsafe_set_dtype("B", 0, "float32x4"))", "are numbers"},
    {"a sampled inner part of a symbolic loop", kTriangle,
     R"(a, b = sch.sample_partitioned_tile(sch.get_loops("C")[0], 2, 1, 4)
sch.split(sch.get_loops("C")[0], [a, b]))",
     ""},
    {"a note without its number", kTriangle, R"(sch.annotate(sch.get_loops("B")[0], "prefetch_ahead", ["A"]))",
     "a number of rows"},
    {"a note on what is not there", kTriangle, R"(sch.annotate(sch.get_block("B"), "double_buffer_scope", 7))",
     "position of one of the buffers"},
    {"parts of a loop, reduced and initialized one by one", kProduct, R"(i, j, k = sch.get_loops("C")
p, q = sch.loop_partition(j, [8, None])
b, = sch.get_child_blocks(p)
sch.decompose_reduction(b, sch.get_loops(b)[-1]))",
     ""},
    {"the init of the first part of a sum", kSumInParts,
     R"(sch.decompose_reduction("first", sch.get_loops("first")[1]))", ""},
    {"the init of a part that does not begin the sum", kSumInParts,
     R"(sch.decompose_reduction("second", sch.get_loops("second")[1]))", "begin with the first iteration"},
    {"columns of a ring side by side", kStencil, R"(i, j = sch.get_loops("C")
sch.compute_at("B", i)
sch.rolling_buffer("B", 0)
sch.vectorize(j)
sch.vectorize(sch.get_loops("B")[-1]))",
     ""},
    {"rows of a ring side by side", kStencil, R"(i, j = sch.get_loops("C")
sch.compute_at("B", i)
sch.rolling_buffer("B", 0)
sch.parallel(i))",
     "takes what an earlier iteration made"},
    {"the init of a part of a loop, laid out anew", kProduct, R"(i, j, k = sch.get_loops("C")
p, q = sch.loop_partition(i, [1, None])
b, = sch.get_child_blocks(q)
init = sch.decompose_reduction(b, q)
sch.transform_block_layout(init, lambda x, y: (x, y)))",
     "not over all of its axes' domains"},
    {"a truth value that sums set", kAnyTrue, R"(i, j = sch.get_loops("C")
j0, j1 = sch.split(j, [None, 4])
sch.reorder(j1, j0))",
     "depends on the order of its reduce loops"},
    {"places that a counter gives", kCompacted, R"(i, j = sch.get_loops("C")
j0, j1 = sch.split(j, [None, 4])
sch.reorder(j1, j0))",
     "order"},
    {"what the root block takes", kTriangle, R"(sch.get_producers("root")
sch.get_consumers("root")
sch.merge_epilogue("root"))",
     ""},
    {"a copy that nobody would read", kTriangle, R"(sch.cache_read("C", ("write", 0), "local"))", "no block reads 'C'"},
    {"a bound loop as a vector", kProduct, R"(i, j, k = sch.get_loops("C")
sch.bind(j, "threadIdx.x")
sch.vectorize(j))",
     ""},
    {"a sum that is a maximum, too, in another order", kSumThenMax, R"(i, j = sch.get_loops("C")
j0, j1 = sch.split(j, [None, 4])
sch.reorder(j1, j0))",
     "depends on the order of its reduce loops"},
    {"a sum for some iterations and a product for others", R"(@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n,))
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(1)
            C[vi] = T.Select(vj % 3 == 0, C[vi] + A[vi, vj], C[vi] * A[vi, vj])
)",
     R"(i, j = sch.get_loops("C")
j0, j1 = sch.split(j, [None, 4])
sch.reorder(j1, j0))",
     "depends on the order of its reduce loops"},
};

}  // namespace

TEST_CASE("schedules that reviewers tried", "[schedule]") {
  const std::vector<std::map<std::string, int64_t>> kSizes = {{{"n", 3}, {"m", 5}, {"k", 0}},
                                                              {{"n", 7}, {"m", 16}, {"k", 4}},
                                                              {{"n", 16}, {"m", 33}, {"k", 9}},
                                                              {{"n", 1}, {"m", 1}, {"k", 1}}};
  for (const Reviewed& row : kReviewed) {
    CAPTURE(row.what);
    Diagnostics diagnostics;
    IRModule module = parse_module(row.program, "program.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    Schedule schedule(module.prim_func("main"), {.show_program = false});
    std::string refusal;
    try {
      run_schedule_text(schedule, row.steps, "steps.py");
    } catch (const CompileError& error) {
      refusal = error.what();
    }
    INFO(refusal);
    if (*row.refusal) {
      CHECK(refusal.find(row.refusal) != std::string::npos);
      continue;
    }
    CHECK(refusal.empty());
    CHECK(compare_programs(module.prim_func("main"), schedule.function(), kSizes, 1, {.compile = true}) == "");
  }
}

}  // namespace relaxc::test
