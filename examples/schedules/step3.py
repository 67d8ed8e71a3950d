# A tile of 13 x 32 results stays in registers while k runs: 26 vectors of them, two of B, a broadcast of A.
@S.schedule("matmul")
def register_tile(sch):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, 13])
    jo, jv, ji = sch.split(j, [None, 2, 16])
    sch.reorder(jo, io, k, ii, jv, ji)
    sch.unroll(ii)
    sch.unroll(jv)
    sch.vectorize(ji)
    tile = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(tile, io)
    row, column = sch.get_loops(tile)[2:]
    cv, ci = sch.split(column, [2, 16])
    sch.unroll(row)
    sch.unroll(cv)
    sch.vectorize(ci)
    sch.decompose_reduction(block, k)
