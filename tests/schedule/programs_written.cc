// Programs that no operator of networks is lowered to, as a user may write them: blocks that meet at elements, that
// write what others read before or one buffer in parts, that see windows of buffers, that store vectors, that divide
// and shift beneath the guard which makes this legal.
#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "tests/schedule/programs.h"

namespace relaxc::test {

namespace {

constexpr const char* kPrograms = R"(
@T.prim_func(private=True)
def smoothed_in_place(x: T.handle, z: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n + 2,))
    Z = T.match_buffer(z, (n,))
    B = T.alloc_buffer((n + 2,))
    for i in range(n + 2):
        with T.block("B"):
            vi = T.axis.spatial(n + 2, i)
            B[vi] = X[vi] * T.float32(2)
    for i in range(n):
        with T.block("smooth"):
            vi = T.axis.spatial(n, i)
            B[vi + 1] = B[vi + 2] - B[vi + 1]
    for i in range(n):
        with T.block("Z"):
            vi = T.axis.spatial(n, i)
            Z[vi] = B[vi + 1] + T.float32(1)

@T.prim_func(private=True)
def recurrence(x: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m))
    Z = T.match_buffer(z, (n, m))
    H = T.alloc_buffer((n, m))
    Y = T.alloc_buffer((n, m))
    for i, j in T.grid(n, m):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] + T.float32(1)
    for i, j in T.grid(n, m):
        with T.block("H"):
            vi, vj = T.axis.remap("SS", [i, j])
            H[vi, vj] = Y[vi, vj] - T.if_then_else(0 < vi, H[vi - 1, vj], T.float32(0))
    for i, j in T.grid(n, m):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = H[vi, vj] * T.float32(0.5)

@T.prim_func(private=True)
def histogram(x: T.handle, w: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n,), "int64")
    W = T.match_buffer(w, (m,), "int32")
    Z = T.match_buffer(z, (m,), "int32")
    H = T.alloc_buffer((m,), "int32")
    for j in range(m):
        with T.block("clear"):
            vj = T.axis.spatial(m, j)
            H[vj] = W[vj]
    for i in range(n):
        with T.block("count"):
            vi = T.axis.spatial(n, i)
            H[T.max(T.min(X[vi], m - 1), T.int64(0))] = H[T.max(T.min(X[vi], m - 1), T.int64(0))] + 1
    for j in range(m):
        with T.block("Z"):
            vj = T.axis.spatial(m, j)
            Z[vj] = H[vj] * 2

@T.prim_func(private=True)
def scatter_last(x: T.handle, y: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n,), "int64")
    Y = T.match_buffer(y, (n, m))
    Z = T.match_buffer(z, (n, m))
    for i, j in T.grid(n, m):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = T.float32(0)
    for i, j in T.grid(n, m):
        with T.block("scatter"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[T.max(T.min(X[vi], n - 1), T.int64(0)), vj] = Y[vi, vj]

@T.prim_func(private=True)
def overwritten(x: T.handle, z: T.handle, w: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m))
    Z = T.match_buffer(z, (n, m))
    W = T.match_buffer(w, (n, m))
    B = T.alloc_buffer((n, m))
    for i, j in T.grid(n, m):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[vi, vj] = X[vi, vj]
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = W[vi, vj] * T.float32(2)
    for i, j in T.grid(n, m):
        with T.block("again"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[vi, vj] = W[vi, vj] + T.float32(1)
    for i, j in T.grid(n, m):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = B[vi, vj] - W[vi, vj]

@T.prim_func(private=True)
def strided_windows(x: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (2 * n, 4 * m))
    Z = T.match_buffer(z, (n, m))
    B = T.alloc_buffer((2 * n, 4 * m))
    for i, j in T.grid(2 * n, 4 * m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = X[vi, vj] * T.float32(2)
    for i, j in T.grid(n, m):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[2 * vi:2 * vi + 2, 4 * vj:4 * vj + 4])
            T.writes(Z[vi, vj])
            s0 = T.int64()
            s1 = T.int64()
            window = T.match_buffer(B[2 * vi:2 * vi + 2, 4 * vj:4 * vj + 4], (2, 4), strides=(s0, s1), offset_factor=1)
            Z[vi, vj] = window[0, 0] - window[1, 3] + window[1, 1]

@T.prim_func(private=True)
def guarded_sum(x: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m))
    Z = T.match_buffer(z, (n,))
    S = T.alloc_buffer((n,))
    for i, k in T.grid(n, m):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(1)
            if T.float32(0) < X[vi, vk]:
                S[vi] = S[vi] + X[vi, vk]
    for i in range(n):
        with T.block("Z"):
            vi = T.axis.spatial(n, i)
            Z[vi] = S[vi] * T.float32(2)

@T.prim_func(private=True)
def added_to(x: T.handle, y: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m))
    Y = T.match_buffer(y, (m, n))
    Z = T.match_buffer(z, (n, m))
    for i, j in T.grid(n, m):
        with T.block("start"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = X[vi, vj]
    for i, j, k in T.grid(n, m, T.int64(3)):
        with T.block("add"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            Z[vi, vj] = Z[vi, vj] + Y[vj, vi]
    for i, j in T.grid(n, m):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = Z[vi, vj] * T.float32(0.5)

@T.prim_func(private=True)
def triangle(x: T.handle, z: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n, n))
    Z = T.match_buffer(z, (n, n))
    L = T.alloc_buffer((n, n))
    for i, j in T.grid(n, n):
        with T.block("L"):
            vi, vj = T.axis.remap("SS", [i, j])
            L[vi, vj] = T.float32(0)
    for i, j in T.grid(n, n):
        with T.block("lower"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j <= i)
            L[vi, vj] = X[vi, vj] + T.float32(1)
    for i, j in T.grid(n, n):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = L[vi, vj] - L[vj, vi]

@T.prim_func(private=True)
def first_of_largest(x: T.handle, at: T.handle, best: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m, T.int64(4)))
    At = T.match_buffer(at, (n,), "int32")
    Best = T.match_buffer(best, (n,))
    for i, j, k in T.grid(n, m, T.int64(4)):
        with T.block("largest"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                At[vi] = T.int32(-1)
                Best[vi] = T.float32(-5)
            position: T.int32 = T.Select(Best[vi] >= X[vi, vj, vk], At[vi], T.Cast("int32", vj * 4 + vk))
            value: T.float32 = T.Select(Best[vi] >= X[vi, vj, vk], Best[vi], X[vi, vj, vk])
            At[vi] = position
            Best[vi] = value

@T.prim_func(private=True)
def moments(x: T.handle, s: T.handle, q: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (m, n))
    S = T.match_buffer(s, (n,))
    Q = T.match_buffer(q, (n,))
    for i, k in T.grid(n, m):
        with T.block("moments"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(1)
                Q[vi] = T.float32(0)
            if X[vk, vi] < T.float32(6):
                S[vi] = S[vi] + X[vk, vi]
                Q[vi] = T.max(X[vk, vi] * X[vk, vi], Q[vi])

@T.prim_func(private=True)
def read_twice(x: T.handle, z: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,))
    Z = T.match_buffer(z, (n,))
    B = T.alloc_buffer((n,))
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = T.Let(t * t + t, where={t: X[vi] * T.float32(0.5)})
    for i in range(n):
        with T.block("Z"):
            vi = T.axis.spatial(n, i)
            Z[vi] = B[vi] - B[n - 1 - vi] * T.float32(2)

@T.prim_func(private=True)
def divided_where_possible(x: T.handle, d: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m), "int32")
    D = T.match_buffer(d, (m,), "int32")
    Z = T.match_buffer(z, (n, m), "int32")
    Q = T.alloc_buffer((n, m), "int32")
    R = T.alloc_buffer((n, m), "int32")
    for i, j in T.grid(n, m):
        with T.block("Q"):
            vi, vj = T.axis.remap("SS", [i, j])
            Q[vi, vj] = T.if_then_else(D[vj] != 0, T.truncdiv(X[vi, vj], D[vj]) + T.truncmod(X[vi, vj], D[vj]), 7)
    for i, j in T.grid(n, m):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = 1
            if 0 < D[vj]:
                if Q[vi, vj] != 0:
                    r: T.int32 = X[vi, vj] // Q[vi, vj] + T.shift_left(X[vi, vj], D[vj])
                    R[vi, vj] = r + X[vi, vj] % D[vj]
    for i, j in T.grid(n, m):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = T.if_then_else(2 <= vj, X[vi, vj - 2] % (Q[vi, vj - 2] * Q[vi, vj - 2] + 1), R[vi, vj])

@T.prim_func(private=True)
def divided_by_dims(x: T.handle, y: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n,))
    Y = T.match_buffer(y, (m,))
    Z = T.match_buffer(z, (n,))
    B = T.alloc_buffer((m,))
    C = T.alloc_buffer((n,))
    for i in range(m):
        with T.block("B"):
            vi = T.axis.spatial(m, i)
            B[vi] = Y[vi] * T.float32(2)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = T.if_then_else(0 < m, T.if_then_else(vi < n // m, B[vi % m], T.float32(1)), T.float32(3))
    for i in range(n):
        with T.block("Z"):
            vi = T.axis.spatial(n, i)
            Z[vi] = C[vi]
            if 3 < m:
                if (m * 2) % (m - 3) + 1 < vi:
                    Z[vi] = C[vi] - X[vi // (m - 3)]

@T.prim_func(private=True)
def quotients_of_concatenated(x: T.handle, y: T.handle, d: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(y, (m,), "int32")
    D = T.match_buffer(d, (n + m,), "int32")
    Z = T.match_buffer(z, (n + m,), "int32")
    P = T.alloc_buffer((n + m,), "int32")
    Q = T.alloc_buffer((n,), "int32")
    R = T.alloc_buffer((m,), "int32")
    for i in range(n + m):
        with T.block("P"):
            vi = T.axis.spatial(n + m, i)
            P[vi] = D[vi] * D[vi] + 1
    for i in range(n):
        with T.block("Q"):
            vi = T.axis.spatial(n, i)
            Q[vi] = T.truncmod(X[vi], P[vi])
    for i in range(m):
        with T.block("R"):
            vi = T.axis.spatial(m, i)
            R[vi] = T.truncdiv(Y[vi], P[vi + n])
    for i in range(n + m):
        with T.block("Z"):
            vi = T.axis.spatial(n + m, i)
            Z[vi] = T.if_then_else(vi < n, Q[vi], R[vi - n])

@T.prim_func(private=True)
def relu_of_parts(x: T.handle, y: T.handle, w: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n,))
    Y = T.match_buffer(y, (m,))
    W = T.match_buffer(w, (n + m,))
    Z = T.match_buffer(z, (n + m,))
    Y2 = T.alloc_buffer((m,))
    C = T.alloc_buffer((n + m,))
    for i in range(m):
        with T.block("Y2"):
            vi = T.axis.spatial(m, i)
            Y2[vi] = Y[vi] * T.float32(2)
    for i in range(n):
        with T.block("C0"):
            vi = T.axis.spatial(n, i)
            C[vi] = X[vi] + T.float32(1)
    for i in range(m):
        with T.block("C1"):
            vi = T.axis.spatial(m, i)
            C[vi + n] = Y2[vi]
    for i in range(n + m):
        with T.block("Z"):
            vi = T.axis.spatial(n + m, i)
            Z[vi] = T.max(C[vi] + W[vi], T.float32(0))

@T.prim_func(private=True)
def windows_of_parts(x: T.handle, y: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m))
    Y = T.match_buffer(y, (n, T.int64(3)))
    Z = T.match_buffer(z, (n, m + 4))
    C = T.alloc_buffer((n, m + 6))
    for i, j in T.grid(n, T.int64(3)):
        with T.block("left"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for i, j in T.grid(n, T.int64(3)):
        with T.block("right"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, m + vj + 3] = Y[vi, vj]
    for i, j in T.grid(n, m):
        with T.block("middle"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj + 3] = X[vi, vj] * T.float32(2)
    for i, j, k in T.grid(n, m + 4, T.int64(3)):
        with T.block("Z"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Z[vi, vj] = T.float32(0)
            Z[vi, vj] = Z[vi, vj] + C[vi, vj + vk]

@T.prim_func(private=True)
def quarters(x: T.handle, y: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m))
    Y = T.match_buffer(y, (m, n))
    Z = T.match_buffer(z, (n + m, n + m))
    C = T.alloc_buffer((n + m, n + m))
    for i, j in T.grid(m, m):
        with T.block("lower_right"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + n, vj + n] = T.Select(vi == vj, T.float32(1), T.float32(0))
    for i, j in T.grid(n, n):
        with T.block("upper_left"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.Select(vi == vj, T.float32(2), T.float32(0))
    for i, j in T.grid(n, m):
        with T.block("upper_right"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj + n] = X[vi, vj]
    for i, j in T.grid(m, n):
        with T.block("lower_left"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[n + vi, vj] = Y[vi, vj]
    for i, j in T.grid(n + m, n + m):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vj, vi] = C[vi, vj] * T.float32(0.5)

@T.prim_func(private=True)
def sums_in_pairs(x: T.handle, y: T.handle, z: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m))
    Y = T.match_buffer(y, (n,))
    Z = T.match_buffer(z, (n * 2,))
    C = T.alloc_buffer((n, T.int64(2)))
    for i, j in T.grid(n, m):
        with T.block("first"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi, T.int64(0)] = T.float32(0)
            C[vi, T.int64(0)] = C[vi, T.int64(0)] + X[vi, vj]
    for i in range(n):
        with T.block("second"):
            vi = T.axis.spatial(n, i)
            C[vi, T.int64(1)] = Y[vi]
    for i in range(n * 2):
        with T.block("Z"):
            vi = T.axis.spatial(n * 2, i)
            Z[vi] = C[vi // 2, vi % 2] + T.float32(1)

@T.prim_func(private=True)
def stacked(x: T.handle, y: T.handle, z: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,))
    Y = T.match_buffer(y, (n,))
    Z = T.match_buffer(z, (T.int64(2), n))
    C = T.alloc_buffer((T.int64(2), n))
    for i in range(n):
        with T.block("C0"):
            vi = T.axis.spatial(n, i)
            C[T.int64(0), vi] = X[vi] + T.float32(1)
        with T.block("C1"):
            vi = T.axis.spatial(n, i)
            C[T.int64(1), vi] = Y[n - 1 - vi]
    for i, j in T.grid(T.int64(2), n):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = C[vi, vj] * T.float32(0.5)

@T.prim_func(private=True)
def beside_the_axes(x: T.handle, w: T.handle, z: T.handle):
    m = T.int64()
    n = T.int64()
    k = T.int64()
    X = T.match_buffer(x, (m, n))
    W = T.match_buffer(w, (n, k))
    Z = T.match_buffer(z, (m, k))
    for i, j, l in T.grid(m, k, n):
        with T.block("Z"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                Z[vi, vj] = T.float32(0)
            Z[vi, vj] = Z[vi, vj] + X[vi, vl] * W[vl, j]

@T.prim_func(private=True)
def written_in_vectors(x: T.handle, w: T.handle, z: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (4 * n,))
    W = T.match_buffer(w, (n,))
    Z = T.match_buffer(z, (4 * n,))
    B = T.alloc_buffer((4 * n,))
    C = T.alloc_buffer((4 * n,))
    D = T.alloc_buffer((4 * n,))
    S = T.alloc_buffer((4 * n,))
    for i in range(4 * n):
        with T.block("B"):
            vi = T.axis.spatial(4 * n, i)
            B[vi] = X[vi] * T.float32(2)
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[T.Ramp(vi * 4, 1, 4)] = B[T.Ramp(vi * 4, 1, 4)] - X[T.Ramp(vi * 4 + 3, -1, 4)]
    for i in range(n):
        with T.block("D"):
            vi = T.axis.spatial(n, i)
            D[vi * 4:vi * 4 + 4] = C[vi * 4:vi * 4 + 4] + T.Broadcast(W[vi], 4)
    for i, k in T.grid(n, T.int64(6)):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi * 4:vi * 4 + 4] = T.Broadcast(T.float32(0), 4)
            S[vi * 4:vi * 4 + 4] = S[vi * 4:vi * 4 + 4] + C[vi * 4:vi * 4 + 4] * T.Broadcast(T.Cast("float32", vk), 4)
    for i in range(4 * n):
        with T.block("Z"):
            vi = T.axis.spatial(4 * n, i)
            Z[vi] = D[vi] - S[vi] * T.float32(0.5)
)";

}  // namespace

const IRModule& written_programs() {
  static const IRModule module = [] {
    Diagnostics diagnostics;
    IRModule result = parse_module(kPrograms, "programs_written.cc", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    return result;
  }();
  return module;
}

}  // namespace relaxc::test
