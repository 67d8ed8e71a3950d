# A kernel of one's own for the Softmax nodes of an imported network: a tensor program, what it implements, and the
# schedule for it. docs/own-kernels.md explains each line.
#
#   relaxc run model.onnx --kernels examples/kernels/softmax.py --profile
#   relaxc explain model.onnx --kernels examples/kernels/softmax.py


@S.implements("nn.softmax", axis=-1)  # the operator, and the attributes that it must have
@T.prim_func
def my_softmax(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    top = T.alloc_buffer((n,), "float32")
    total = T.alloc_buffer((n,), "float32")
    for i, j in T.grid(n, m):
        with T.block("top"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                top[vi] = T.min_value("float32")
            top[vi] = T.max(top[vi], x[vi, vj])
    for i, j in T.grid(n, m):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + T.exp(x[vi, vj] - top[vi])
    for i, j in T.grid(n, m):
        with T.block("quotient"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.exp(x[vi, vj] - top[vi]) / total[vi]
