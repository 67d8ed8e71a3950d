# 1x1 convolution of NCHW: lanes are pixels, rows are filters. A panel of 48 pixels x all channels is packed first (a channel is 12 KB
# away from the next), then all tiles of 8 filters x 48 pixels read it; weights packed [F/8][C][8] are broadcast.
# Measured: 75-81 %, 0.9-1.0 of oneDNN in its blocked layout. 3x3 in the same way loses 15 % to loads that cross cache lines.
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(X: T.Buffer((1, 256, 56, 56), "float32"), W: T.Buffer((8, 256, 8), "float32"), bias: T.Buffer((64,), "float32"), Y: T.Buffer((1, 64, 56, 56), "float32")):
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": True})
        for p in T.parallel(65):
            S = T.decl_buffer((256, 48))
            for k in range(256):
                for v in T.unroll(3):
                    for lane in T.vectorized(16):
                        S[k, v * 16 + lane] = X[0, k, (p * 48 + v * 16 + lane) // 56, (p * 48 + v * 16 + lane) % 56]
            for f in T.serial(8):
                accS = T.decl_buffer((8, 48), scope="local")
                for i in T.unroll(8):
                    for v in T.unroll(3):
                        for lane in T.vectorized(16):
                            accS[i, v * 16 + lane] = T.float32(0)
                for k0 in range(64):
                    for k1 in T.unroll(4):
                        for i in T.unroll(8):
                            for v in T.unroll(3):
                                for lane in T.vectorized(16):
                                    accS[i, v * 16 + lane] = accS[i, v * 16 + lane] + W[f, k0 * 4 + k1, i] * S[k0 * 4 + k1, v * 16 + lane]
                for i in T.unroll(8):
                    for v in T.unroll(3):
                        for lane in T.vectorized(16):
                            Y[0, f * 8 + i, (p * 48 + v * 16 + lane) // 56, (p * 48 + v * 16 + lane) % 56] = T.max(accS[i, v * 16 + lane] + bias[f * 8 + i], T.float32(0))
        R = T.decl_buffer((256, 48))
        for k in range(256):
            for v in T.unroll(1):
                for lane in T.vectorized(16):
                    R[k, v * 16 + lane] = T.if_then_else(v * 16 + lane < 16, X[0, k, (3120 + v * 16 + lane) // 56, (3120 + v * 16 + lane) % 56], T.float32(0))
        for f in T.serial(8):
            accR = T.decl_buffer((8, 48), scope="local")
            for i in T.unroll(8):
                for v in T.unroll(1):
                    for lane in T.vectorized(16):
                        accR[i, v * 16 + lane] = T.float32(0)
            for k0 in range(64):
                for k1 in T.unroll(4):
                    for i in T.unroll(8):
                        for v in T.unroll(1):
                            for lane in T.vectorized(16):
                                accR[i, v * 16 + lane] = accR[i, v * 16 + lane] + W[f, k0 * 4 + k1, i] * R[k0 * 4 + k1, v * 16 + lane]
            for i in T.unroll(8):
                for v in T.unroll(1):
                    for lane in T.vectorized(16):
                        if v * 16 + lane < 16:
                            Y[0, f * 8 + i, (3120 + v * 16 + lane) // 56, (3120 + v * 16 + lane) % 56] = T.max(accR[i, v * 16 + lane] + bias[f * 8 + i], T.float32(0))

    @R.function
    def main(x: R.Tensor((1, 256, 56, 56), "float32"), w: R.Tensor((64, 256, 1, 1), "float32"), b: R.Tensor((64,), "float32")) -> R.Tensor((1, 64, 56, 56), "float32"):
        cls = Module
        w3 = R.reshape(w, (8, 8, 256))
        packed = R.permute_dims(w3, axes=[0, 2, 1])
        y = R.call_tir(cls.kernel, (x, packed, b), out_sinfo=R.Tensor((1, 64, 56, 56), "float32"))
        return y
