# A product of one's own and its schedule. The schedule follows the program into whatever it is fused with: bias and
# activation behind it become one block, which is computed for each tile. Alone it has no such block.
#
#   relaxc compile model.onnx --kernels examples/kernels/matmul.py --emit=loops


@S.implements("matmul")
@T.prim_func
def my_matmul(x: T.Buffer(("n", "k"), "float32"), w: T.Buffer(("k", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, j, r in T.grid(n, m, k):
        with T.block("product"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + x[vi, vr] * w[vr, vj]


@S.schedule("my_matmul")
def tile(sch):
    product = sch.get_block("product")
    epilogue = sch.merge_epilogue(product)  # a list, empty where nothing follows
    i, j, r = sch.get_loops(product)
    i0, i1 = sch.split(i, [None, 6])
    j0, j1 = sch.split(j, [None, 32])
    sch.reorder(i0, j0, r, i1, j1)  # a tile of 6 rows x 32 columns stays in registers while r runs
    last = epilogue[0] if epilogue else sch.cache_write(product, 0, "local")
    sch.reverse_compute_at(last, j0, True)
    rows, columns = sch.get_loops(last)[2:]
    for row, column in [[i1, j1], [rows, columns]]:
        sch.unroll(row)
        sch.vectorize(column)
    sch.decompose_reduction(product, r)
    sch.parallel(i0)
