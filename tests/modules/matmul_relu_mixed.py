# Programs that count in integers of several kinds, one of them with a scalar of int16 and loops of their own.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def matmul(x: T.handle, w: T.handle, y: T.handle):
        m = T.uint16()
        n = T.int32()
        k = T.int64()
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
    def relu(x: T.handle, y: T.handle, least: T.int16):
        m = T.int16()
        k = T.uint32()
        A = T.match_buffer(x, (m, k), "float32")
        B = T.match_buffer(y, (m, k), "float32")
        for i in T.serial(m):
            for j in T.serial(k):
                with T.block("relu"):
                    vi = T.axis.spatial(m, i)
                    vj = T.axis.spatial(k, j)
                    B[vi, vj] = T.if_then_else(vj < k, T.max(A[vi, vj], T.Cast("float32", least)), T.float32(-1))

    @R.function
    def main(x: R.Tensor(("m", "n"), "float32"), w: R.Tensor(("k", "n"), "float32")) -> R.Tensor(("m", "k"), "float32"):
        m = T.int64()
        k = T.int64()
        cls = Module
        with R.dataflow():
            product = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((m, k), "float32"))
            result = R.call_tir(cls.relu, (product,), out_sinfo=R.Tensor((m, k), "float32"), tir_vars=R.shape([m - m]))
            R.output(result)
        return result
