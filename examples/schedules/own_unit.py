# An instruction that is a C function of one's own (own_unit.c), as the driver of a matrix unit would be:
#
#   cc -O2 -fPIC -c own_unit.c
#   relaxc run model.onnx --kernels own_unit.py --link own_unit.o
#
# The buffers have strides, so that the instruction works on tiles of larger tensors.


@T.prim_func(private=True)
def mma_meaning(A: T.Buffer((8, 8), "float32", strides=["sa", 1], offset_factor=1), B: T.Buffer((8, 8), "float32", strides=["sb", 1], offset_factor=1), C: T.Buffer((8, 8), "float32", strides=["sc", 1], offset_factor=1)):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("mma"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(private=True)
def mma_call(A: T.Buffer((8, 8), "float32", strides=["sa", 1], offset_factor=1), B: T.Buffer((8, 8), "float32", strides=["sb", 1], offset_factor=1), C: T.Buffer((8, 8), "float32", strides=["sc", 1], offset_factor=1)):
    T.evaluate(T.call_extern("int32", "unit_mma", C.access_ptr("rw"), T.Cast("int64", sc), A.access_ptr("r"), T.Cast("int64", sa), B.access_ptr("r"), T.Cast("int64", sb)))


S.intrin("unit_mma", mma_meaning, mma_call)


@S.rule("matmul")
def on_unit(sch):
    product = sch.get_block("matmul")
    sch.pad_einsum(product, [8, 8, 8])  # to whole tiles, of constant weights as they are: panel=0
    *outer, i, j, k = sch.get_loops(product)
    (i0, i1), (j0, j1), (k0, k1) = sch.split(i, [None, 8]), sch.split(j, [None, 8]), sch.split(k, [None, 8])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    sch.decompose_reduction(product, k0)
    sch.tensorize(i1, "unit_mma")
    sch.parallel(i0)


S.use("constant_operand", panel=0)
