# Vectors along the columns: the innermost loop reads B and writes C in order.
@S.schedule("matmul")
def vectors(sch):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    jo, ji = sch.split(j, [None, 32])
    sch.reorder(i, jo, k, ji)
    sch.vectorize(ji)
