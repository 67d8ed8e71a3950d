# A tile of 14 pixels x 32 filters in registers. Convolutions with constant weights get their images with channels in
# blocks of a vector, [n, filters / 16, y, x, 16], so that filters are neighbours in memory.
@S.rule("nn.conv2d")
def tile_conv2d(sch):
    conv = sch.get_block("nn.conv2d")
    # Bias, residual and activation become one block, padding becomes conditions.
    epilogue = sch.merge_epilogue(conv)
    for padding in sch.get_producers(conv):
        sch.compute_inline(padding)
    n, filters, y, x, lanes, *window = sch.get_loops(conv)
    f0, f1 = sch.split(filters, [None, 2])
    x0, x1 = sch.split(x, [None, 14])
    sch.reorder(n, f0, y, x0, *window, x1, f1, lanes)
    # The block behind takes each tile's results when its sums are complete.
    last = epilogue[0] if epilogue else sch.cache_write(conv, 0, "local")
    sch.reverse_compute_at(last, x0, True)
    ln, lf, ly, lx, ll = sch.get_loops(last)[4:]
    sch.reorder(ln, ly, lx, lf, ll)
    for loop in [x1, f1, lx, lf]:
        sch.unroll(loop)
    for loop in [lanes, ll]:
        sch.vectorize(loop)
    sch.decompose_reduction(conv, window[0])
    sch.parallel(sch.fuse(n, f0, y))
