# A network whose weights, 25 MB, do not fit into the L2 cache: a run reads all of them, for one sample or for many.
# `weights` makes them from a formula, for `relaxc compile --bind`.
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def weights():
        with R.dataflow():
            a = R.multiply(R.sin(R.multiply(R.arange(0, 2097152, 1, dtype="float32"), R.const(0.7, "float32"))), R.const(0.05, "float32"))
            b = R.multiply(R.sin(R.multiply(R.arange(0, 4194304, 1, dtype="float32"), R.const(0.3, "float32"))), R.const(0.05, "float32"))
            c = R.multiply(R.sin(R.multiply(R.arange(0, 20480, 1, dtype="float32"), R.const(0.9, "float32"))), R.const(0.05, "float32"))
            w1 = R.reshape(a, (1024, 2048))
            w2 = R.reshape(b, (2048, 2048))
            w3 = R.reshape(c, (2048, 10))
            R.output(w1, w2, w3)
        return (w1, w2, w3)

    @R.function
    def main(
        x: R.Tensor(("batch", 1024), "float32"),
        w1: R.Tensor((1024, 2048), "float32"),
        w2: R.Tensor((2048, 2048), "float32"),
        w3: R.Tensor((2048, 10), "float32"),
    ):
        with R.dataflow():
            hidden = R.nn.relu(R.matmul(R.nn.relu(R.matmul(x, w1)), w2))
            y = R.nn.softmax(R.matmul(hidden, w3))
            R.output(y)
        return y
