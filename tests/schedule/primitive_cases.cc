// Cases of each primitive: the program before and after, as text. Above 600 lines: it is a list of cases.
#include "tests/schedule/primitive_cases.h"

namespace relaxc::test {

namespace {

constexpr const char* kElementwiseParams = "A: T.Buffer((12, 8), \"float32\"), C: T.Buffer((12, 8), \"float32\")";
constexpr const char* kElementwise =
    R"(    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
)";
constexpr const char* kMatmulParams =
    "A: T.Buffer((8, 12), \"float32\"), B: T.Buffer((12, 6), \"float32\"), C: T.Buffer((8, 6), \"float32\")";
constexpr const char* kMatmul =
    R"(    for i, j, k in T.grid(8, 6, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
constexpr const char* kBiasParams =
    "A: T.Buffer((8, 12), \"float32\"), b: T.Buffer((8,), \"float32\"), D: T.Buffer((8,), \"float32\")";
constexpr const char* kBias =
    R"(    S = T.alloc_buffer((8,))
    for i, k in T.grid(8, 12):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = S[vi] + b[vi]
)";
constexpr const char* kPadParams = "A: T.Buffer((8,), \"float32\"), P: T.Buffer((10,), \"float32\")";
constexpr const char* kPad =
    R"(    for i in range(10):
        with T.block("P"):
            vi = T.axis.spatial(10, i)
            P[vi] = T.if_then_else(1 <= vi and vi < 9, A[vi - 1], T.float32(0))
)";
constexpr const char* kInPlaceParams = "A: T.Buffer((8,), \"float32\")";
constexpr const char* kInPlace =
    R"(    for i in range(8):
        with T.block("scale"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] * T.float32(2)
)";
constexpr const char* kStridedParams = "A: T.Buffer((17,), \"float32\"), B: T.Buffer((8,), \"float32\")";
constexpr const char* kStrided =
    R"(    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi * 2 + 1] + A[vi * 2 + 1]
)";
constexpr const char* kStencilParams = "A: T.Buffer((12, 8), \"float32\"), C: T.Buffer((10, 8), \"float32\")";
constexpr const char* kStencil =
    R"(    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(10, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 2, vj]
)";
constexpr const char* kFirstOfLargestParams =
    "A: T.Buffer((8, 4, 4), \"float32\"), at: T.Buffer((8,), \"int64\"), best: T.Buffer((8,), \"float32\")";
constexpr const char* kFirstOfLargest =
    R"(    for i, j, k in T.grid(8, 4, 4):
        with T.block("argmax"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                at[vi] = T.int64(0)
                best[vi] = T.float32(-100)
            at[vi] = T.Select(A[vi, vj, vk] > best[vi], T.Cast("int64", vj * 4 + vk), at[vi])
            best[vi] = T.Select(A[vi, vj, vk] > best[vi], A[vi, vj, vk], best[vi])
)";
constexpr const char* kLastOfLargest =
    R"(    for i, k in T.grid(8, 4):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                at[vi] = T.int64(0)
                best[vi] = T.float32(-100)
            at[vi] = T.Select(A[vi, vk, 0] >= best[vi], T.Cast("int64", vk), at[vi])
            best[vi] = T.max(A[vi, vk, 0], best[vi])
)";
constexpr const char* kElementwiseInTile =
    R"(    B = T.alloc_buffer((12, 8))
    for i in range(12):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1)
)";

constexpr const char* kSmallParams = "A: T.Buffer((2, 3, 4), \"float32\"), B: T.Buffer((2, 3, 4), \"float32\")";
constexpr const char* kSmall =
    R"(    for i, j, k in T.grid(2, 3, 4):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vi, vj, vk]
)";
constexpr const char* kReshapeParams = "A: T.Buffer((3, 4), \"float32\"), C: T.Buffer((12,), \"float32\")";
constexpr const char* kReshape =
    R"(    B = T.alloc_buffer((3, 4))
    for i, j in T.grid(3, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = B[vi // 4, vi % 4] + T.float32(1)
)";
constexpr const char* kSymbolicParams = "a: T.handle, b: T.handle";
constexpr const char* kSymbolic =
    R"(    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
)";
constexpr const char* kInlined =
    R"(    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
)";

const PrimitiveCase kCases[] = {
    {"blocks by name", kElementwiseParams, "", kElementwise,
     R"(sch.cache_read("C", 0, "local", consumer_blocks="C")
sch.compute_inline("B")
i, j = sch.get_loops("B_local"))",
     R"(    B_local = T.alloc_buffer((12, 8), scope="local")
    for ax0, ax1 in T.grid(12, 8):
        with T.block("B_local"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            B_local[v0, v1] = A[v0, v1] * T.float32(2)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B_local[vi, vj] + T.float32(1)
)",
     R"(sch.compute_inline("X"))", "get_block: there is no block 'X'; there are: root, B, C"},
    {"the only function is main, too", kElementwiseParams, "", kElementwise,
     R"(sch.compute_inline(sch.get_block("B", func_name="main")))", kInlined, R"(sch.cache_read("C", 0, "fast"))",
     "cache_read: there is no storage scope 'fast'; there are: global, shared, local, warp, wmma, m16n8k8, metal, "
     "texture"},
    {"a sampled place that means inlining", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
l = sch.sample_compute_location(b, decision=-2)
sch.compute_at(b, l, preserve_unit_loops=True))",
     kInlined, R"(sch.sample_compute_location("C", decision=-2))",
     "sample_compute_location: block 'C' writes an output"},
    {"a decision about other factors is adapted", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops("C")
a, b, c = sch.sample_perfect_tile(i, 3, decision=[1, 8, 5])
assert [sch.get(a), sch.get(b), sch.get(c)] == [3, 4, 1])",
     kElementwise, R"(i, j = sch.get_loops("C")
sch.sample_perfect_tile(i, 2, decision=[-3, -4]))",
     "sample_perfect_tile: decision [-3, -4] is no list of 2 positive factors"},
    {"the last factor decided has a limit", kElementwiseParams, "", kElementwise, "", kElementwise,
     R"(i, j = sch.get_loops("C")
sch.sample_perfect_tile(i, 2, 4, decision=[2, 6]))",
     "sample_perfect_tile: the last factor decided, 6, is above max_innermost_factor 4"},
    {"the inner part decided is a multiple", kElementwiseParams, "", kElementwise, "", kElementwise,
     R"(i, j = sch.get_loops("C")
sch.sample_partitioned_tile(i, 3, 1, 4, decision=[6, 2, 1]))",
     "sample_partitioned_tile: the factors decided make an inner part of 2, no multiple of 4"},
    {"probabilities", kElementwiseParams, "", kElementwise, "", kElementwise,
     "sch.sample_categorical([0, 16], [0.9, 0.9])",
     "sample_categorical: the probabilities are not from 0 on, or their sum, 1.8, is not 1"},
    {"unit loops of a split that no axis needs", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops("C")
outer, inner = sch.split(i, [None, 1], preserve_unit_iters=False))",
     R"(    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i_0, i_1, j in T.grid(12, 1, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i_0, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
)",
     R"(i, j = sch.get_loops("C")
sch.split(i, [5, 4], disable_predication=True))",
     "split: predication is disabled, and the extent of loop 'i' is not known to be a multiple of the factors (with "
     "it, tails are loops of their own: docs/schedules.md)"},
    {"a split by vscale that the user knows to divide", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops("C")
sch.split(j, [None, 4 * T.vscale()], disable_predication=True))",
     R"(    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j_0, j_1 in T.grid(12, 7 // (T.vscale() * 4) + 1, T.vscale() * 4):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            vj = T.axis.spatial(8, j_1 + j_0 * T.vscale() * 4)
            C[vi, vj] = B[vi, vj] + T.float32(1)
)",
     R"(i, j = sch.get_loops("C")
sch.split(i, [None, 8 * T.vscale()], disable_predication=True))",
     "split: predication is disabled, and the extent of loop 'i' is not known to be a multiple of the factors (with "
     "it, tails are loops of their own: docs/schedules.md)"},
    {"a layout by all positions, and typed constants", kElementwiseParams, "", kElementwise,
     R"(sch.transform_layout("B", ("write", 0), index_map=lambda *at: (T.int64(0), at[1], at[0])))",
     R"(    B = T.alloc_buffer((1, 8, 12))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[0, vj, vi] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[0, vj, vi] + T.float32(1)
)",
     R"(sch.split(sch.get_loops("B")[0], [None, 2], factors=[None, 3]))", "split: argument 'factors' is given twice"},
    {"padding of a typed value", kElementwiseParams, "", kElementwise,
     R"(sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 3, j % 3), pad_value=lambda i, j, k: T.float32(0.5)))",
     R"(    B = T.alloc_buffer((12, 3, 3))
    for ax0, ax1, ax2 in T.grid(12, 3, 3):
        with T.block("B"):
            v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            B[v0, v1, v2] = T.if_then_else(v1 * 3 + v2 < 8, A[v0, v1 * 3 + v2] * T.float32(2), T.float32(0.5))
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj // 3, vj % 3] + T.float32(1)
)",
     R"(a, b, c = sch.get_loops("B"))", "expected 3 values, get_loops gives 2"},
    {"transform_block_layout of three axes to one", kSmallParams, "", kSmall,
     R"(sch.transform_block_layout("B", lambda i, j, k: (T.int64(0), i * 12 + j * 4 + k)))",
     R"(    for ax0, ax1 in T.grid(1, 24):
        with T.block("B"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            B[v1 // 12, v1 // 4 % 3, v1 % 4] = A[v1 // 12, v1 // 4 % 3, v1 % 4]
)",
     R"(i, j, k = sch.get_loops("B")
sch.annotate(i, "prefetch", ["B"]))",
     "annotate: prefetch: loop 'i' reads no buffer \"B\""},
    {"an inlined consumer that reads at other positions", kReshapeParams, "", kReshape,
     R"(sch.reverse_compute_inline("C")
b = sch.get_block("B"))",
     R"(    for i, j in T.grid(3, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi * 4 + vj] = A[vi, vj] * T.float32(2) + T.float32(1)
)",
     R"(sch.bind(sch.get_loops("B")[0], "threadIdx.q"))",
     "bind: there is no thread axis 'threadIdx.q'; there are: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
     "threadIdx.y, threadIdx.z, vthread, vthread.x, vthread.y, vthread.z, cthread"},
    {"a split of fused symbolic loops", kSymbolicParams, "", kSymbolic,
     R"(f = sch.fuse(*sch.get_loops("B"))
f0, f1 = sch.split(f, [None, 8])
sch.parallel(f0)
sch.vectorize(f1))",
     R"(    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i_j_fused_0 in T.parallel((m * n + T.int64(7)) // T.int64(8)):
        for i_j_fused_1 in T.vectorized(T.int64(8)):
            with T.block("B"):
                vi = T.axis.spatial(n, (i_j_fused_0 * T.int64(8) + i_j_fused_1) // m)
                vj = T.axis.spatial(m, (i_j_fused_0 * T.int64(8) + i_j_fused_1) % m)
                T.where(i_j_fused_0 * T.int64(8) + i_j_fused_1 < m * n)
                B[vi, vj] = A[vi, vj]
)",
     R"(i, j = sch.get_loops("B")
sch.split(j, [None, 4], decision=[2, 4]))",
     "split has no argument 'decision'; it has: loop, factors, preserve_unit_iters, disable_predication"},
    {"parts beyond the end of a loop", kElementwiseParams, "", kElementwise, "", kElementwise,
     R"(i, j = sch.get_loops("C")
sch.loop_partition(i, [12, None]))",
     "loop_partition: the parts leave nothing of loop 'i' for the one left open"},
    {"rolling_buffer", kStencilParams, "", kStencil,
     R"(b = sch.get_block("B")
i, j = sch.get_loops(sch.get_block("C"))
sch.compute_at(b, i)
sch.rolling_buffer(b, 0))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((3, 8))
    for i in range(10):
        for ax0, ax1 in T.grid(3, 8):
            with T.block("B"):
                vi = T.axis.spatial(12, ax0 + i)
                vj = T.axis.spatial(8, ax1)
                T.where(i == 0 or ax0 >= 2)
                T.reads(A[vi, vj])
                T.writes(B[vi % 3, vj])
                B[vi % 3, vj] = A[vi, vj] * T.float32(2.0)
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[0:3, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi % 3, vj] + B[(vi + 2) % 3, vj]
)",
     R"(sch.rolling_buffer(sch.get_block("B"), 0))",
     "rolling_buffer: block 'B' and the readers of 'B' share no loop (compute_at makes one)"},
    {"rolling_buffer where nothing slides", kElementwiseParams, "", kElementwiseInTile, "", kElementwiseInTile,
     R"(sch.rolling_buffer(sch.get_block("B"), 0))",
     "rolling_buffer: what iterations of loop 'i' make of 'B' does not overlap: steps of 1, T.int32(1) rows"},
    {"reorder of spatial loops around a search for the first", kFirstOfLargestParams, "", kFirstOfLargest,
     R"(i, j, k = sch.get_loops(sch.get_block("argmax"))
sch.reorder(j, i, k))",
     R"(    for j, i, k in T.grid(4, 8, 4):
        with T.block("argmax"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                at[vi] = T.int64(0)
                best[vi] = T.float32(-100)
            at[vi] = T.Select(A[vi, vj, vk] > best[vi], T.Cast("int64", vj * 4 + vk), at[vi])
            best[vi] = T.Select(A[vi, vj, vk] > best[vi], A[vi, vj, vk], best[vi])
)",
     R"(i, j, k = sch.get_loops(sch.get_block("argmax"))
sch.reorder(k, j))",
     "reorder: the result of block 'argmax' depends on the order of its reduce loops (of equal elements the first "
     "counts, or the like)"},
    {"transform_layout", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
sch.transform_layout(b, ("write", 0), lambda i, j: (i // 4, j, i % 4)))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((3, 8, 4))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi // 4, vj, vi % 4])
            B[vi // 4, vj, vi % 4] = A[vi, vj] * T.float32(2.0)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi // 4, vj, vi % 4])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi // 4, vj, vi % 4] + T.float32(1.0)
)",
     R"(b = sch.get_block("B")
sch.transform_layout(b, ("write", 0), lambda i, j: (i // 4, j)))",
     "transform_layout: the map is not known to be one to one on 'B': iterations of 'i' repeat the same axis values"},
    {"transform_layout with padding", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
sch.transform_layout(b, "B", lambda i, j: (i, j // 3, j % 3), pad_value=0))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 3, 3))
    for ax0, ax1, ax2 in T.grid(12, 3, 3):
        with T.block("B"):
            v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            T.reads(A[v0, v1 * 3 + v2])
            T.writes(B[v0, v1, v2])
            B[v0, v1, v2] = T.if_then_else(v1 * 3 + v2 < 8, A[v0, v1 * 3 + v2] * T.float32(2.0), T.float32(0.0))
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj // 3, vj % 3])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj // 3, vj % 3] + T.float32(1.0)
)",
     R"(b = sch.get_block("C")
sch.transform_layout(b, "C", lambda i, j: (i, j // 3, j % 3)))",
     "transform_layout: param 'C' would get padding, which callers see; say by pad_value what it holds"},
    {"transform_layout of a param", kElementwiseParams,
     "A: T.Buffer((12, 8), \"float32\"), C: T.Buffer((8, 12), \"float32\")", kElementwise,
     R"(b = sch.get_block("C")
sch.transform_layout(b, "C", lambda i, j: (j, i)))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vj, vi])
            C[vj, vi] = B[vi, vj] + T.float32(1.0)
)",
     R"(b = sch.get_block("C")
sch.transform_layout(b, "C", lambda i: i))",
     "transform_layout: the map takes 1 positions, 'C' has 2 dims"},
    {"rfactor", kMatmulParams, "", kMatmul,
     R"(b = sch.get_block("C")
i, j, k = sch.get_loops(b)
ko, ki = sch.split(k, [None, 4])
sch.rfactor(ki, 0))",
     R"(    # with T.block("root"):
    C_rf = T.alloc_buffer((4, 8, 6))
    for i, j, k_0, k_1 in T.grid(8, 6, 3, 4):
        with T.block("C_rf"):
            vk_1, vi, vj, vk_0 = T.axis.remap("SSSR", [k_1, i, j, k_0])
            T.reads(A[vi, vk_0 * 4 + vk_1], B[vk_0 * 4 + vk_1, vj])
            T.writes(C_rf[vk_1, vi, vj])
            with T.init():
                C_rf[vk_1, vi, vj] = T.float32(0.0)
            C_rf[vk_1, vi, vj] = C_rf[vk_1, vi, vj] + A[vi, vk_0 * 4 + vk_1] * B[vk_0 * 4 + vk_1, vj]
    for i, j, k_1 in T.grid(8, 6, 4):
        with T.block("C"):
            vk_1, vi, vj = T.axis.remap("RSS", [k_1, i, j])
            T.reads(C_rf[vk_1, vi, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + C_rf[vk_1, vi, vj]
)",
     R"(b = sch.get_block("C")
i, j, k = sch.get_loops(b)
sch.rfactor(j, 0))",
     "rfactor: loop 'j' drives no reduce axis of block 'C'"},
    {"rfactor of a search for the first of the largest", kFirstOfLargestParams, "", kFirstOfLargest,
     R"(i, j, k = sch.get_loops(sch.get_block("argmax"))
sch.rfactor(j, 1))",
     R"(    # with T.block("root"):
    at_rf = T.alloc_buffer((8, 4), "int64")
    best_rf = T.alloc_buffer((8, 4))
    for i, j, k in T.grid(8, 4, 4):
        with T.block("argmax_rf"):
            vj, vi, vk = T.axis.remap("SSR", [j, i, k])
            T.reads(A[vi, vj, vk])
            T.writes(at_rf[vi, vj], best_rf[vi, vj])
            with T.init():
                at_rf[vi, vj] = T.int64(0)
                best_rf[vi, vj] = T.float32(-100.0)
            at_rf[vi, vj] = T.Select(A[vi, vj, vk] > best_rf[vi, vj], T.Cast("int64", vj * 4 + vk), at_rf[vi, vj])
            best_rf[vi, vj] = T.Select(A[vi, vj, vk] > best_rf[vi, vj], A[vi, vj, vk], best_rf[vi, vj])
    for i, j in T.grid(8, 4):
        with T.block("argmax"):
            vj, vi = T.axis.remap("RS", [j, i])
            T.reads(best_rf[vi, vj], at_rf[vi, vj])
            T.writes(at[vi], best[vi])
            with T.init():
                at[vi] = T.int64(0)
                best[vi] = T.float32(-100)
            at[vi] = T.Select(best_rf[vi, vj] > best[vi], at_rf[vi, vj], at[vi])
            best[vi] = T.Select(best_rf[vi, vj] > best[vi], best_rf[vi, vj], best[vi])
)",
     R"(i, j, k = sch.get_loops(sch.get_block("argmax"))
sch.rfactor(k, 1))",
     "rfactor: block 'argmax' keeps the first of equal elements: of its reduce loops only the outermost can be "
     "factored, 'k' is not"},
    {"rfactor of a search for the last of the largest", kFirstOfLargestParams, "", kLastOfLargest, "", kLastOfLargest,
     R"(i, k = sch.get_loops(sch.get_block("argmax"))
sch.rfactor(k, 0))",
     "rfactor: what block 'argmax' chooses depends on how its iterations are grouped (of equal elements the last "
     "counts, or the like)"},
    {"reverse_compute_at", kMatmulParams, "",
     R"(    # with T.block("root"):
    C_rf = T.alloc_buffer((3, 8, 6))
    for k_0, again, i, j, k_1 in T.grid(3, 2, 8, 6, 4):
        with T.block("C_rf"):
            vk_0, vi, vj, vk_1 = T.axis.remap("SSSR", [k_0, i, j, k_1])
            with T.init():
                C_rf[vk_0, vi, vj] = T.float32(0.0)
            C_rf[vk_0, vi, vj] = C_rf[vk_0, vi, vj] + A[vi, vk_0 * 4 + vk_1] * B[vk_0 * 4 + vk_1, vj]
    for i, j, k_0 in T.grid(8, 6, 3):
        with T.block("C"):
            vi, vj, vk_0 = T.axis.remap("SSR", [i, j, k_0])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + C_rf[vk_0, vi, vj]
)",
     R"(k_0, again, i, j, k_1 = sch.get_loops(sch.get_block("C_rf"))
sch.reverse_compute_at(sch.get_block("C"), k_0))",
     R"(    # with T.block("root"):
    C_rf = T.alloc_buffer((3, 8, 6))
    for k_0 in range(3):
        for again, i, j, k_1 in T.grid(2, 8, 6, 4):
            with T.block("C_rf"):
                vk_0, vi, vj, vk_1 = T.axis.remap("SSSR", [k_0, i, j, k_1])
                T.reads(A[vi, vk_0 * 4 + vk_1], B[vk_0 * 4 + vk_1, vj])
                T.writes(C_rf[vk_0, vi, vj])
                with T.init():
                    C_rf[vk_0, vi, vj] = T.float32(0.0)
                C_rf[vk_0, vi, vj] = C_rf[vk_0, vi, vj] + A[vi, vk_0 * 4 + vk_1] * B[vk_0 * 4 + vk_1, vj]
        for ax0, ax1 in T.grid(8, 6):
            with T.block("C"):
                vi, vj, vk_0 = T.axis.remap("SSR", [ax0, ax1, k_0])
                T.reads(C_rf[vk_0, vi, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + C_rf[vk_0, vi, vj]
)",
     R"(k_0, again, i, j, k_1 = sch.get_loops(sch.get_block("C_rf"))
sch.reverse_compute_at(sch.get_block("C"), again))",
     "reverse_compute_at: reduction 'C' would take values again: iterations of 'again' repeat the same axis values"},
    {"set_scope", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
sch.set_scope(b, 0, "shared"))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8), scope="shared")
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(b = sch.get_block("C")
sch.set_scope(b, 0, "shared"))",
     "set_scope: 'C' is not allocated in the program, its memory is given"},
    {"storage_align", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
sch.storage_align(b, 0, 0, 32, 8))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            T.block_attr({"buffer_dim_align": [[0, 0, 32, 8]]})
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(b = sch.get_block("B")
sch.storage_align(b, 0, 2, 32, 8))",
     "storage_align: 'B' has no dim 2"},
    {"unsafe_set_dtype", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
sch.unsafe_set_dtype(b, 0, "float16"))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8), "float16")
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = T.Cast("float16", A[vi, vj] * T.float32(2.0))
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.Cast("float32", B[vi, vj]) + T.float32(1.0)
)",
     R"(b = sch.get_block("C")
sch.unsafe_set_dtype(b, 0, "float16"))",
     "unsafe_set_dtype: 'C' is not allocated in the program, its dtype is given"},
    {"annotate_buffer_access", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
sch.annotate_buffer_access(b, 0, "read", lambda vi, vj: ((vi - 1, vi + 1), vj)))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi - 1:vi - 1 + 2, vj])
            T.writes(B[vi, vj])
            T.block_attr({"explicit_read_region": [0]})
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(b = sch.get_block("B")
sch.annotate_buffer_access(b, 0, "read", lambda vi: (vi, vi)))",
     "annotate_buffer_access: the map takes 1 axes, block 'B' has 2"},
    {"merge", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops(sch.get_block("B"))
k, l = sch.get_loops(sch.get_block("C"))
sch.merge(j, l))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(i, j = sch.get_loops(sch.get_block("B"))
k, l = sch.get_loops(sch.get_block("C"))
sch.merge(i, l))",
     "merge: the nests down to 'i' and 'j' are not of the same loops"},
    {"loop_partition", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops(sch.get_block("C"))
first, rest = sch.loop_partition(i, [2, None]))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i0, j in T.grid(2, 8):
        with T.block("C_i0"):
            vi = T.axis.spatial(12, i0)
            vj = T.axis.spatial(8, j)
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
    for i1, j in T.grid(10, 8):
        with T.block("C_i1"):
            vi = T.axis.spatial(12, i1 + 2)
            vj = T.axis.spatial(8, j)
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(i, j = sch.get_loops(sch.get_block("C"))
sch.loop_partition(i, [None, None]))",
     "loop_partition: two factors are None; one can be inferred"},
    {"cache_inplace", kInPlaceParams, "", kInPlace,
     R"(b = sch.get_block("scale")
sch.cache_inplace(b, 0, "local"))",
     R"(    # with T.block("root"):
    A_local = T.alloc_buffer((8,), scope="local")
    for ax0 in range(8):
        with T.block("A_local"):
            v0 = T.axis.spatial(8, ax0)
            T.reads(A[v0])
            T.writes(A_local[v0])
            A_local[v0] = A[v0]
    for i in range(8):
        with T.block("scale"):
            vi = T.axis.spatial(8, i)
            T.reads(A_local[vi])
            T.writes(A_local[vi])
            A_local[vi] = A_local[vi] * T.float32(2.0)
    for ax0 in range(8):
        with T.block("A_local_1"):
            v0 = T.axis.spatial(8, ax0)
            T.reads(A_local[v0])
            T.writes(A[v0])
            A[v0] = A_local[v0]
)",
     R"(b = sch.get_block("root")
sch.cache_inplace(b, 0, "local"))",
     "cache_inplace: the root block has no place outside"},
    {"reindex", kStridedParams, "", kStrided,
     R"(b = sch.get_block("B")
sch.reindex(b, ("read", 0)))",
     R"(    # with T.block("root"):
    A_reindex = T.alloc_buffer((8,))
    for ax0 in range(8):
        with T.block("A_reindex"):
            v0 = T.axis.spatial(8, ax0)
            T.reads(A[v0 * 2 + 1])
            T.writes(A_reindex[v0])
            A_reindex[v0] = A[v0 * 2 + 1]
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A_reindex[vi])
            T.writes(B[vi])
            B[vi] = A_reindex[vi] + A_reindex[vi]
)",
     R"(b = sch.get_block("B")
sch.reindex(b, ("read", 1)))",
     "reindex: block 'B' reads 1 buffers, there is no number 1"},
    {"reindex_cache_read", kMatmulParams, "", kMatmul,
     R"(b = sch.get_block("C")
sch.reindex_cache_read(b, 0, "shared", lambda i, j, k: (k // 4, i, k % 4)))",
     R"(    # with T.block("root"):
    A_shared = T.alloc_buffer((3, 8, 4), scope="shared")
    for ax0, ax1 in T.grid(8, 12):
        with T.block("A_shared"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(A[v0, v1])
            T.writes(A_shared[v1 // 4, v0, v1 % 4])
            A_shared[v1 // 4, v0, v1 % 4] = A[v0, v1]
    for i, j, k in T.grid(8, 6, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A_shared[vk // 4, vi, vk % 4], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A_shared[vk // 4, vi, vk % 4] * B[vk, vj]
)",
     R"(b = sch.get_block("C")
sch.reindex_cache_read(b, 0, "shared", lambda i, j, k: (k // 4, i)))",
     "reindex_cache_read: the map is not known to be one to one: iterations of 'vk' repeat the same axis values"},
    {"reindex_cache_write", kMatmulParams, "", kMatmul,
     R"(b = sch.get_block("C")
sch.reindex_cache_write(b, 0, "local", lambda i, j, k: (j, i)))",
     R"(    # with T.block("root"):
    C_local = T.alloc_buffer((6, 8), scope="local")
    for i, j, k in T.grid(8, 6, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C_local[vj, vi])
            with T.init():
                C_local[vj, vi] = T.float32(0.0)
            C_local[vj, vi] = C_local[vj, vi] + A[vi, vk] * B[vk, vj]
    for ax0, ax1 in T.grid(8, 6):
        with T.block("C_local"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(C_local[v1, v0])
            T.writes(C[v0, v1])
            C[v0, v1] = C_local[v1, v0]
)",
     R"(b = sch.get_block("C")
sch.reindex_cache_write(b, 0, "local", lambda i, j, k: (j, i, k)))",
     "reindex_cache_write: axis 'vk' is not spatial"},
    {"cache_index", kStridedParams, "", kStrided,
     R"(b = sch.get_block("B")
sch.cache_index(b, "global", 1))",
     R"(    # with T.block("root"):
    index_0 = T.alloc_buffer((8,), "int32")
    for ax0 in range(8):
        with T.block("index_0"):
            v0 = T.axis.spatial(8, ax0)
            T.reads()
            T.writes(index_0[v0])
            index_0[v0] = v0 * 2 + 1
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[0:17], index_0[vi])
            T.writes(B[vi])
            B[vi] = A[index_0[vi]] + A[index_0[vi]]
)",
     R"(b = sch.get_block("root")
sch.cache_index(b, "global"))",
     "cache_index: the block holds blocks"},
    {"read_at", kMatmulParams, "", kMatmul,
     R"(b = sch.get_block("C")
i, j, k = sch.get_loops(b)
sch.read_at(i, b, 0, "shared"))",
     R"(    # with T.block("root"):
    A_shared = T.alloc_buffer((8, 12), scope="shared")
    for i in range(8):
        for ax0, ax1 in T.grid(1, 12):
            with T.block("A_shared"):
                v0 = T.axis.spatial(8, ax0 + i)
                v1 = T.axis.spatial(12, ax1)
                T.reads(A[v0, v1])
                T.writes(A_shared[v0, v1])
                T.block_attr({"auto_copy": 1})
                A_shared[v0, v1] = A[v0, v1]
        for j, k in T.grid(6, 12):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A_shared[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0.0)
                C[vi, vj] = C[vi, vj] + A_shared[vi, vk] * B[vk, vj]
)",
     R"(b = sch.get_block("C")
i, j, k = sch.get_loops(b)
sch.read_at(i, b, "D", "shared"))",
     "read_at: block 'C' does not access a buffer 'D'"},
    {"write_at", kMatmulParams, "", kMatmul,
     R"(b = sch.get_block("C")
i, j, k = sch.get_loops(b)
sch.write_at(i, b, 0, "local"))",
     R"(    # with T.block("root"):
    C_local = T.alloc_buffer((8, 6), scope="local")
    for i in range(8):
        for j, k in T.grid(6, 12):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(C_local[vi, vj])
                with T.init():
                    C_local[vi, vj] = T.float32(0.0)
                C_local[vi, vj] = C_local[vi, vj] + A[vi, vk] * B[vk, vj]
        for ax0, ax1 in T.grid(1, 6):
            with T.block("C_local"):
                v0 = T.axis.spatial(8, ax0 + i)
                v1 = T.axis.spatial(6, ax1)
                T.reads(C_local[v0, v1])
                T.writes(C[v0, v1])
                T.block_attr({"auto_copy": 1})
                C[v0, v1] = C_local[v0, v1]
)",
     R"(b = sch.get_block("C")
i, j, k = sch.get_loops(b)
sch.write_at(k, b, 0, "local"))",
     "write_at: loop 'k' drives axis 'vk', results are not final in an iteration"},
    {"blockize of blocks", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops(sch.get_block("B"))
k, l = sch.get_loops(sch.get_block("C"))
sch.merge(i, k)
sch.blockize([sch.get_block("B"), sch.get_block("C")]))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i in range(12):
        with T.block("B_C_o"):
            vi = T.axis.spatial(12, i)
            T.reads(A[vi, 0:8], B[vi, 0:8])
            T.writes(B[vi, 0:8], C[vi, 0:8])
            for j in range(8):
                with T.block("B"):
                    vi_1 = T.axis.spatial(12, vi)
                    vj = T.axis.spatial(8, j)
                    T.reads(A[vi_1, vj])
                    T.writes(B[vi_1, vj])
                    B[vi_1, vj] = A[vi_1, vj] * T.float32(2.0)
            for j in range(8):
                with T.block("C"):
                    vi_1 = T.axis.spatial(12, vi)
                    vj = T.axis.spatial(8, j)
                    T.reads(B[vi_1, vj])
                    T.writes(C[vi_1, vj])
                    C[vi_1, vj] = B[vi_1, vj] + T.float32(1.0)
)",
     "sch.blockize([sch.get_block(\"root\"), sch.get_block(\"C\")])",
     "blockize: block 'root' is not beside the others"},
    {"transform_block_layout", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
sch.transform_block_layout(b, lambda i, j: (i * 8 + j,)))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for ax0 in range(96):
        with T.block("B"):
            v0 = T.axis.spatial(96, ax0)
            T.reads(A[v0 // 8, v0 % 8])
            T.writes(B[v0 // 8, v0 % 8])
            B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8] * T.float32(2.0)
    for i, j in T.grid(12, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(b = sch.get_block("B")
sch.transform_block_layout(b, lambda i, j: (i // 5, i % 5, j)))",
     "transform_block_layout: the map is not known to be one to one and onto: it reaches only results with v0 * "
     "T.int32(5) + v1 < T.int32(12); choose numbers that divide the axes' extents"},
    {"decompose_padding", kPadParams, "", kPad,
     R"(b = sch.get_block("P")
i, = sch.get_loops(b)
sch.decompose_padding(b, i))",
     R"(    # with T.block("root"):
    for i_pad in range(10):
        with T.block("P_pad_const"):
            vi = T.axis.spatial(10, i_pad)
            T.reads()
            T.writes(P[vi])
            P[vi] = T.float32(0.0)
    for i in range(10):
        with T.block("P"):
            vi = T.axis.spatial(10, i)
            T.where(i >= 1 and i < 9)
            T.reads(A[vi - 1])
            T.writes(P[vi])
            P[vi] = A[vi - 1]
)",
     R"(b = sch.get_block("P")
i, = sch.get_loops(b)
sch.decompose_padding(sch.get_block("root"), i))",
     "decompose_padding: the root block cannot be moved"},
    {"pad_einsum", kMatmulParams, "", kMatmul,
     R"(b = sch.get_block("C")
sch.pad_einsum(b, [1, 4, 8]))",
     R"(    # with T.block("root"):
    A_pad = T.alloc_buffer((8, 16))
    B_pad = T.alloc_buffer((16, 8))
    C_pad = T.alloc_buffer((8, 8))
    for ax0, ax1 in T.grid(8, 16):
        with T.block("A_pad"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(A[v0, v1])
            T.writes(A_pad[v0, v1])
            A_pad[v0, v1] = T.if_then_else(v1 < 12, A[v0, v1], T.float32(0.0))
    for ax0, ax1 in T.grid(16, 8):
        with T.block("B_pad"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(B[v0, v1])
            T.writes(B_pad[v0, v1])
            B_pad[v0, v1] = T.if_then_else(v0 < 12 and v1 < 6, B[v0, v1], T.float32(0.0))
    for ax0, ax1, ax2 in T.grid(8, 8, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [ax0, ax1, ax2])
            T.reads(A_pad[vi, vk], B_pad[vk, vj])
            T.writes(C_pad[vi, vj])
            with T.init():
                C_pad[vi, vj] = T.float32(0.0)
            C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
    for ax0, ax1 in T.grid(8, 6):
        with T.block("C_pad"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(C_pad[v0, v1])
            T.writes(C[v0, v1])
            C[v0, v1] = C_pad[v0, v1]
)",
     R"(b = sch.get_block("C")
sch.pad_einsum(b, [1, 4]))",
     "pad_einsum: there are 2 paddings for 3 axes"},
    {"fuse_reduction_epilogue", kBiasParams, "", kBias,
     "sch.fuse_reduction_epilogue(sch.get_block(\"S\"), sch.get_block(\"D\"))",
     R"(    # with T.block("root"):
    for i, k in T.grid(8, 12):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(b[vi], A[vi, vk])
            T.writes(D[vi])
            with T.init():
                D[vi] = b[vi]
            D[vi] = D[vi] + A[vi, vk]
)",
     "sch.fuse_reduction_epilogue(sch.get_block(\"D\"), sch.get_block(\"S\"))",
     "fuse_reduction_epilogue: block 'D' has no init"},
    {"sample_categorical", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops(sch.get_block("C"))
v = sch.sample_categorical([2, 4], [0.5, 0.5], decision=1)
sch.split(i, [None, v]))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i_0, i_1, j in T.grid(3, 4, 8):
        with T.block("C"):
            vi = T.axis.spatial(12, i_0 * 4 + i_1)
            vj = T.axis.spatial(8, j)
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     "sch.sample_categorical([2, 4], [0.5])", "sample_categorical: there are 2 candidates and 1 probabilities"},
    {"sample_perfect_tile", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops(sch.get_block("C"))
a, b = sch.sample_perfect_tile(i, 2, decision=[3, 4])
sch.split(i, [a, b]))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i_0, i_1, j in T.grid(3, 4, 8):
        with T.block("C"):
            vi = T.axis.spatial(12, i_0 * 4 + i_1)
            vj = T.axis.spatial(8, j)
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(i, j = sch.get_loops(sch.get_block("C"))
sch.sample_perfect_tile(i, 0))",
     "sample_perfect_tile: 0 factors, expected 1 to 64"},
    {"sample_partitioned_tile", kElementwiseParams, "", kElementwise,
     R"(i, j = sch.get_loops(sch.get_block("C"))
a, b, c = sch.sample_partitioned_tile(i, 3, 1, 4, decision=[3, 2, 2])
sch.split(i, [a, b, c]))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i, j in T.grid(12, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
    for i_0, i_1, i_2, j in T.grid(3, 2, 2, 8):
        with T.block("C"):
            vi = T.axis.spatial(12, i_0 * 4 + i_1 * 2 + i_2)
            vj = T.axis.spatial(8, j)
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(i, j = sch.get_loops(sch.get_block("C"))
sch.sample_partitioned_tile(i, 3, 4, 2))",
     "sample_partitioned_tile: position 4 among 3 factors, 2 for the inner part"},
    {"sample_compute_location", kElementwiseParams, "", kElementwise,
     R"(b = sch.get_block("B")
l = sch.sample_compute_location(b, decision=0)
sch.compute_at(b, l))",
     R"(    # with T.block("root"):
    B = T.alloc_buffer((12, 8))
    for i in range(12):
        for ax0 in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, ax0])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)
)",
     R"(b = sch.get_block("B")
sch.sample_compute_location(b, decision=7))",
     "sample_compute_location: decision 7 is no place among 2 loops"},
};

}  // namespace

std::span<const PrimitiveCase> primitive_cases() { return kCases; }

}  // namespace relaxc::test
