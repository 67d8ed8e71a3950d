# A tile of 14 pixels x 32 filters in registers, for convolutions with packed weights.
@S.rule("nn.conv2d")
def tile_conv2d(sch):
    conv = sch.get_block("nn.conv2d")
    # Bias, residual and activation become one block ...
    epilogue = sch.merge_epilogue(conv)
    n, filters, y, x, c, dy, dx = sch.get_loops(conv)
    f0, f1, f2 = sch.split(filters, [None, 2, 16])
    x0, x1 = sch.split(x, [None, 14])
    sch.reorder(n, f0, y, x0, c, dy, dx, x1, f1, f2)
    # ... which takes each tile's results when its sums are complete. In the tile, filters are neighbours.
    last = epilogue[0] if epilogue else sch.cache_write(conv, 0, "local")
    sch.transform_layout(conv, ("write", 0), lambda n, f, y, x: (n, y, x, f))
    sch.reverse_compute_at(last, x0, True)
    ln, lf, ly, lx = sch.get_loops(last)[4:]
    lf0, lf1 = sch.split(lf, [None, 16])
    sch.reorder(ln, ly, lx, lf0, lf1)
    sch.unroll(lx)
    sch.unroll(lf0)
    sch.vectorize(lf1)
    sch.unroll(x1)
    sch.unroll(f1)
    sch.vectorize(f2)
    sch.decompose_reduction(conv, c)
    sch.parallel(sch.fuse(n, f0, y))
