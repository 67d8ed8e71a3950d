# A custom ONNX operator, com.me::FancyGelu, as a tensor program. The scalar param is the node's attribute of its name.
#
#   relaxc run model.onnx --kernels examples/kernels/fancy_gelu.py


@S.implements("com.me::FancyGelu", defaults={"alpha": 0.5})
@T.prim_func
def fancy_gelu(x: T.Buffer(("n", "m"), "float32"), alpha: T.float32, y: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, m):
        with T.block("gelu"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = alpha * x[vi, vj] * (T.float32(1) + T.erf(x[vi, vj] * T.float32(0.70710678)))
