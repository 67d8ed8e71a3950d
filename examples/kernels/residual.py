# Several operators as one kernel: the last convolution of a residual block with its bias, the sum and the relu. The
# pattern has no kernel: its operators become one tensor program of its name, which the schedule gets.
#
#   relaxc bench resnet18.onnx --kernels examples/kernels/residual.py


@S.pattern
def conv_bias_add_relu(x: R.Tensor(("n", "c", "h", "w"), "float32"), w: S.constant, b: S.constant, residual):
    return R.nn.relu(R.nn.conv2d(x, w, strides=[1, 1]) + b + residual)


@S.schedule("conv_bias_add_relu")
def by_rows(sch):
    conv = sch.get_block("nn.conv2d")
    sch.merge_epilogue(conv)
    n, c, h, w, *window = sch.get_loops(conv)
    sch.parallel(sch.fuse(n, c, h))
