# fp32 matmul with symbolic m, B packed [N/32][K][32]. m = 1 has the loops of matmul_1x768x3072. Else row blocks of 18 full tiles of
# 14 x 32, which prefetch the next panel, and in the last block one exact tile for the rest, of m % 14 rows, which prefetches its own panel 64 rows ahead (that matters when
# it is the only one). Rests of 8, 4, 2 and 1 rows one after the other would cost 40 % at m = 7: tiles under 4 x 32 wait for the FMA's latency.
# Measured: 0.92-1.2 of the forms for a known m at m = 1, 7, 16, 100, 128, 1000. LLVM takes 0.3 s for all tails.
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(a: T.handle, B: T.Buffer((24, 768, 32), "float32"), c: T.handle):
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": True})
        m = T.int64()
        A = T.match_buffer(a, (m, 768))
        C = T.match_buffer(c, (m, 768))
        if m == 1:
            for g in T.parallel(6):
                acc = T.decl_buffer((1, 4, 32), scope="local")
                for i in T.unroll(1):
                    for p in T.unroll(4):
                        for v in T.unroll(2):
                            for lane in T.vectorized(16):
                                acc[i, p, v * 16 + lane] = T.float32(0)
                for k0 in range(192):
                    for k1 in T.unroll(4):
                        for p in T.unroll(4):
                            for v in T.unroll(2):
                                T.evaluate(T.prefetch(T.address_of(B[g * 4 + p, k0 * 4 + k1 + 16, v * 16]), 0, 3, 1))
                        for i in T.unroll(1):
                            for p in T.unroll(4):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        acc[i, p, v * 16 + lane] = acc[i, p, v * 16 + lane] + A[i, k0 * 4 + k1] * B[g * 4 + p, k0 * 4 + k1, v * 16 + lane]
                for i in T.unroll(1):
                    for p in T.unroll(4):
                        for v in T.unroll(2):
                            for lane in T.vectorized(16):
                                C[i, (g * 4 + p) * 32 + v * 16 + lane] = acc[i, p, v * 16 + lane]
        else:
            for b in range(T.max(1, (m // 14 + 17) // 18)):
                for j in T.parallel(24):
                    for t in range(T.min(18, m // 14 - b * 18)):
                        acc = T.decl_buffer((14, 32), scope="local")
                        for i in T.unroll(14):
                            for v in T.unroll(2):
                                for lane in T.vectorized(16):
                                    acc[i, v * 16 + lane] = T.float32(0)
                        for k0 in range(384):
                            T.evaluate(T.prefetch(T.address_of(B[j + 1, (t * 384 + k0) // 2, (t * 384 + k0) % 2 * 16]), 0, 2, 1))
                            for k1 in T.unroll(2):
                                for i in T.unroll(14):
                                    for v in T.unroll(2):
                                        for lane in T.vectorized(16):
                                            acc[i, v * 16 + lane] = acc[i, v * 16 + lane] + A[(b * 18 + t) * 14 + i, k0 * 2 + k1] * B[j, k0 * 2 + k1, v * 16 + lane]
                        for i in T.unroll(14):
                            for v in T.unroll(2):
                                for lane in T.vectorized(16):
                                    C[(b * 18 + t) * 14 + i, j * 32 + v * 16 + lane] = acc[i, v * 16 + lane]
                    if m - b * 252 <= 252 + m % 14:
                        if m % 14 == 1:
                            tail = T.decl_buffer((1, 32), scope="local")
                            for i in T.unroll(1):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(1):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 1 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(1):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 1 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 2:
                            tail = T.decl_buffer((2, 32), scope="local")
                            for i in T.unroll(2):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(2):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 2 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(2):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 2 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 3:
                            tail = T.decl_buffer((3, 32), scope="local")
                            for i in T.unroll(3):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(3):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 3 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(3):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 3 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 4:
                            tail = T.decl_buffer((4, 32), scope="local")
                            for i in T.unroll(4):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(4):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 4 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(4):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 4 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 5:
                            tail = T.decl_buffer((5, 32), scope="local")
                            for i in T.unroll(5):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(5):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 5 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(5):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 5 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 6:
                            tail = T.decl_buffer((6, 32), scope="local")
                            for i in T.unroll(6):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(6):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 6 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(6):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 6 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 7:
                            tail = T.decl_buffer((7, 32), scope="local")
                            for i in T.unroll(7):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(7):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 7 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(7):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 7 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 8:
                            tail = T.decl_buffer((8, 32), scope="local")
                            for i in T.unroll(8):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(8):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 8 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(8):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 8 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 9:
                            tail = T.decl_buffer((9, 32), scope="local")
                            for i in T.unroll(9):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(9):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 9 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(9):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 9 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 10:
                            tail = T.decl_buffer((10, 32), scope="local")
                            for i in T.unroll(10):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(10):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 10 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(10):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 10 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 11:
                            tail = T.decl_buffer((11, 32), scope="local")
                            for i in T.unroll(11):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(11):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 11 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(11):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 11 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 12:
                            tail = T.decl_buffer((12, 32), scope="local")
                            for i in T.unroll(12):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(12):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 12 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(12):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 12 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]
                        if m % 14 == 13:
                            tail = T.decl_buffer((13, 32), scope="local")
                            for i in T.unroll(13):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        tail[i, v * 16 + lane] = T.float32(0)
                            for k0 in range(192):
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 64, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 65, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 66, 16]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 0]), 0, 3, 1))
                                T.evaluate(T.prefetch(T.address_of(B[j, k0 * 4 + 67, 16]), 0, 3, 1))
                                for k1 in T.unroll(4):
                                    for i in T.unroll(13):
                                        for v in T.unroll(2):
                                            for lane in T.vectorized(16):
                                                tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[m - 13 + i, k0 * 4 + k1] * B[j, k0 * 4 + k1, v * 16 + lane]
                            for i in T.unroll(13):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        C[m - 13 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]

    @R.function
    def main(a: R.Tensor(("m", 768), "float32"), b: R.Tensor((768, 768), "float32")) -> R.Tensor(("m", 768), "float32"):
        m = T.int64()
        cls = Module
        b3 = R.reshape(b, (768, 24, 32))
        packed = R.permute_dims(b3, axes=[1, 0, 2])
        c = R.call_tir(cls.kernel, (a, packed), out_sinfo=R.Tensor((m, 768), "float32"))
        return c
