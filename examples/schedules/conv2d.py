# A tile of 14 pixels x one vector block of filters in registers, for convolutions with packed weights.
@S.rule("nn.conv2d")
def tile_conv2d(sch):
    conv = sch.get_block("nn.conv2d")
    # Bias, residual and activation become one block ...
    epilogue = sch.merge_epilogue(conv)
    n, filters, y, x, c, dy, dx = sch.get_loops(conv)
    f_outer, f_vectors, f_lanes = sch.split(filters, [None, 2, 16])
    x_outer, x_inner = sch.split(x, [None, 14])
    sch.reorder(n, f_outer, y, x_outer, c, dy, dx, x_inner, f_vectors, f_lanes)
    # ... which takes each tile's results when its sums are complete.
    last = epilogue[0] if epilogue else sch.cache_write(conv, 0, "local")
    sch.reverse_compute_at(last, x_outer)
    sch.unroll(x_inner)
    sch.unroll(f_vectors)
    sch.vectorize(f_lanes)
    sch.decompose_reduction(conv, c)
    sch.parallel(sch.fuse(n, f_outer, y))
