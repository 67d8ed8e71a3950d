# An instruction that relaxc does not know, and a rule that uses it: four columns of a product and two steps of its sum
# in two fused multiply-adds. A new instruction set is used like this, without building relaxc again.
@T.prim_func(private=True)
def fma_4x2_meaning(A: T.Buffer((2,), "float32", offset_factor=1), B: T.Buffer((2, 4), "float32", offset_factor=1), C: T.Buffer((4,), "float32", offset_factor=1)):
    for j, k in T.grid(4, 2):
        with T.block("fma"):
            vj, vk = T.axis.remap("SR", [j, k])
            C[vj] = C[vj] + A[vk] * B[vk, vj]

@T.prim_func(private=True)
def fma_4x2_call(A: T.Buffer((2,), "float32", offset_factor=1), B: T.Buffer((2, 4), "float32", offset_factor=1), C: T.Buffer((4,), "float32", offset_factor=1)):
    for k in T.unroll(2):
        C[0:4] = T.call_llvm_pure_intrin("float32x4", "llvm.fma.v4f32", T.Broadcast(A[k], 4), B[k, 0:4], C[0:4])

S.intrin("fma_4x2", fma_4x2_meaning, fma_4x2_call)

@S.rule("matmul")
def with_fma(sch):
    block = sch.get_block("matmul")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 2])
    sch.reorder(i, j0, k0, j1, k1)
    sch.decompose_reduction(block, k0)
    sch.tensorize(j1, "fma_4x2")
    sch.parallel(i)
