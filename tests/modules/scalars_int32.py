# Scalars that no buffer gives, in integers of their own, beside dims of a third kind.
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def window(var_x: T.handle, start: T.int32, stop: T.int32, var_y: T.handle):
        n = T.int32()
        m = T.int32()
        X = T.match_buffer(var_x, (n,), "float32")
        Y = T.match_buffer(var_y, (m,), "float32")
        for i in range(stop - start):
            with T.block("Y"):
                vi = T.axis.spatial(stop - start, i)
                Y[vi] = X[vi + start] * T.Cast("float32", stop)

    @T.prim_func(private=True)
    def shift(var_x: T.handle, var_y: T.handle, by: T.int16):
        n = T.int32()
        X = T.match_buffer(var_x, (n,), "float32")
        Y = T.match_buffer(var_y, (n,), "float32")
        for i in T.grid(n):
            with T.block("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] + T.Cast("float32", by)

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.window, (x,), out_sinfo=R.Tensor((n - 3,), "float32"), tir_vars=R.shape([2, n - 1]))
            z = R.call_tir(cls.shift, (y,), out_sinfo=R.Tensor((n - 3,), "float32"), tir_vars=R.shape([n - 40]))
            R.output(z)
        return z
