# Tuples as values where operators and kernels take several tensors: what a call, an operator, a branch or a parameter
# gives. Every second result is the same of a tuple that is written where it is used.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def difference(x: T.handle, y: T.handle, z: T.handle):
        n = T.int32()
        A = T.match_buffer(x, (n, 4), "float32")
        B = T.match_buffer(y, (n, 4), "float32")
        C = T.match_buffer(z, (n, 4), "float32")
        for i, j in T.grid(n, 4):
            with T.block("difference"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] - B[vi, vj]

    @R.function(private=True)
    def pair(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.multiply(x, y)
            both = (a, b)
            R.output(both)
        return both

    @R.function(private=True)
    def joined(t: R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "float32"))) -> R.Tensor(("2 * n", 4), "float32"):
        with R.dataflow():
            y = R.concat(t, axis=0)
            R.output(y)
        return y

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32"), flag: R.Tensor((), "bool")):
        n = T.int64()
        cls = Module
        given = cls.pair(x, y)
        first = given[0]
        second = given[1]
        if flag:
            chosen = (x, y)
        else:
            chosen = (y, x)
        from_call = R.stack(given, axis=1)
        of_call = R.stack((first, second), axis=1)
        halves = R.split(x, 2, axis=1)
        from_split = R.concat(halves, axis=1)
        product = R.einsum(given, subscripts="ij,ij->i")
        of_product = R.einsum((first, second), subscripts="ij,ij->i")
        kernel = R.call_tir(cls.difference, chosen, out_sinfo=R.Tensor((n, 4), "float32"))
        left = chosen[0]
        right = chosen[1]
        of_kernel = R.subtract(left, right)
        param = cls.joined(given)
        of_param = R.concat((first, second), axis=0)
        return (from_call, of_call, from_split, x, product, of_product, kernel, of_kernel, param, of_param)
