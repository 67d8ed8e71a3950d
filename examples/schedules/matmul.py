# A product of two square matrices, for the schedules beside it: docs/schedules.md walks through them.
@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")):
        for i, j, k in T.grid(1024, 1024, 1024):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @R.function
    def main(a: R.Tensor((1024, 1024), "float32"), b: R.Tensor((1024, 1024), "float32")) -> R.Tensor((1024, 1024), "float32"):
        cls = Module
        c = R.call_tir(cls.matmul, (a, b), out_sinfo=R.Tensor((1024, 1024), "float32"))
        return c
