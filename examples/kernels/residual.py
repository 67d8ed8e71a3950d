# A rule for one kind of kernel in a ResNet: a convolution with its bias, the residual and a relu behind it. Where one
# of these is missing the rule does not fit, and the kernel stays as it was.
#
#   relaxc bench resnet18.onnx --dim batch=1 --kernels examples/kernels/residual.py


@S.rule("nn.conv2d")
def tile_residual(sch):
    conv = sch.get_block("nn.conv2d")
    [bias] = sch.get_consumers(conv)
    [residual] = sch.get_consumers(bias)
    [relu] = sch.get_consumers(residual)
    [last] = sch.merge_epilogue(conv)  # the three as one block
    for padding in sch.get_producers(conv):
        sch.compute_inline(padding)
    # Channels lie in blocks of a vector: a tile of 7 pixels x 4 blocks of filters stays in registers.
    n, filters, y, x, lanes, *window = sch.get_loops(conv)
    f0, f1 = sch.split(filters, [None, 4])
    x0, x1 = sch.split(x, [None, 7])
    sch.reorder(n, f0, y, x0, *window, x1, f1, lanes)
    sch.reverse_compute_at(last, x0, True)
    ln, lf, ly, lx, ll = sch.get_loops(last)[4:]
    sch.reorder(ln, ly, lx, lf, ll)
    for loop in [x1, f1, lx, lf]:
        sch.unroll(loop)
    for loop in [lanes, ll]:
        sch.vectorize(loop)
    sch.decompose_reduction(conv, window[0])
    sch.parallel(sch.fuse(n, f0, y))
