# As most published programs have it: dims of int32, which are a graph's int64 dims by the call.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def matmul(x: T.handle, w: T.handle, y: T.handle):
        m = T.int32()
        n = T.int32()
        k = T.int32()
        A = T.match_buffer(x, (m, n), "float32")
        B = T.match_buffer(w, (k, n), "float32")
        C = T.match_buffer(y, (m, k), "float32")
        for i, j, l in T.grid(m, k, n):
            with T.block("matmul"):
                vi, vj, vl = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vj, vl]

    @T.prim_func
    def relu(x: T.handle, y: T.handle):
        m = T.int32()
        k = T.int32()
        A = T.match_buffer(x, (m, k), "float32")
        B = T.match_buffer(y, (m, k), "float32")
        for i, j in T.grid(m, k):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor(("m", "n"), "float32"), w: R.Tensor(("k", "n"), "float32")) -> R.Tensor(("m", "k"), "float32"):
        m = T.int64()
        k = T.int64()
        cls = Module
        with R.dataflow():
            product = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((m, k), "float32"))
            result = R.call_tir(cls.relu, (product,), out_sinfo=R.Tensor((m, k), "float32"))
            R.output(result)
        return result
