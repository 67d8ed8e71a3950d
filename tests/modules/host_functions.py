# A user's kernel in the C ABI beside generated ones, and a user's function that returns a value.
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
        n = T.int64()
        m = T.int64()
        doubled = R.add(x, x)
        shifted = R.call_dps_packed("my_shift", (doubled,), out_sinfo=R.Tensor((n, m), dtype="float32"), tir_vars=R.shape([n * m]))
        noted = R.call_packed("my_note", shifted, R.prim_value(3), R.str("here"), sinfo_args=(R.Tensor((n, m), dtype="float32"),))
        result = R.nn.relu(noted)
        return result
