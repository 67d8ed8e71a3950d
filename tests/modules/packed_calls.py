# Tensor programs that call functions of the host, with tensors, numbers and texts.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def program(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 2), "float32")
        B = T.match_buffer(b, (n, 2), "float32")
        C = T.match_buffer(c, (2,), "float32")
        for i, j in T.grid(n, 2):
            B[i, j] = A[i, j]
        T.call_packed("host_double", B)
        T.evaluate(T.tvm_call_packed("host_double", T.tvm_stack_make_array(B.data, T.tvm_stack_make_shape(n, 2, dtype="handle"), 0, 2, T.float32(0), 0, dtype="handle"), dtype="int32"))
        C[0] = T.Cast("float32", T.call_packed("host_count", A, 3, T.float32(0.5), "text"))
        C[1] = T.call_cpacked("host_half", A[0, 1], dtype="float32")

    @R.function
    def main(x: R.Tensor(("n", 2), dtype="float32")):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.program, (x,), out_sinfo=[R.Tensor((n, 2), "float32"), R.Tensor((2,), "float32")])
        return y
