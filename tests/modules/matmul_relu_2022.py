# The spelling of 2022: variables by T.var, blocks without names, a call of a builtin for the shape.
import tvm
from tvm import relax
from tvm.script import relax as R, tir as T


@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def tir_matmul(x: T.handle, y: T.handle, z: T.handle) -> None:
        T.func_attr({"global_symbol": "tir_matmul"})
        m = T.var("int32")
        n = T.var("int32")
        k = T.var("int32")
        A = T.match_buffer(x, (m, n))
        B = T.match_buffer(y, (k, n))
        C = T.match_buffer(z, (m, k))

        for (i0, j0, k0) in T.grid(m, k, n):
            with T.block():
                i, j, k = T.axis.remap("SSR", [i0, j0, k0])
                with T.init():
                    C[i, j] = 0.0
                C[i, j] += A[i, k] * B[j, k]

    @T.prim_func
    def tir_relu(x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "tir_relu"})
        m = T.var("int32")
        n = T.var("int32")
        A = T.match_buffer(x, (m, n))
        B = T.match_buffer(y, (m, n))
        for (i, j) in T.grid(m, n):
            with T.block():
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], 0.0)

    @R.function
    def main(x: Tensor((m, n), "float32"), w: Tensor((k, n), "float32")):
        with R.dataflow():
            sh = relax.call_packed("vm.builtin.shape_of", x)
            x0 = relax.match_shape(sh, (m, n))
            lv0 = R.call_tir(tir_matmul, (x, w), (m, k), dtype="float32")
            lv1 = R.call_tir(tir_relu, (lv0), (m, k), dtype="float32")
            R.output(lv1)
        return lv1
