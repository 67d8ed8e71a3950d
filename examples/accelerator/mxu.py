# How relaxc uses the matrix unit: its instructions, each by what it computes (the description, which tensorize looks for)
# and what stands for it in programs, and the rule by which products become instructions.
#
# The implementations keep the meaning as loops, so that every later pass, the verifier and the interpreter know it. The
# note `user.mxu` marks them, and the lowering step (instructions.cc) makes a call of the runtime of each. The scope
# "global.mxu" is the scratchpad.
@T.prim_func(private=True)
def load_meaning(A: T.Buffer((16, 16), "int8", strides=["s", 1], offset_factor=1), S: T.Buffer((16, 16), "int8", strides=["t", 1], offset_factor=1, scope="global.mxu")):
    for i, j in T.grid(16, 16):
        with T.block("load"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj]

@T.prim_func(private=True)
def load_call(A: T.Buffer((16, 16), "int8", strides=["s", 1], offset_factor=1), S: T.Buffer((16, 16), "int8", strides=["t", 1], offset_factor=1, scope="global.mxu")):
    for i in T.serial(16, annotations={"user.mxu": "load"}):
        for j in range(16):
            S[i, j] = A[i, j]

@T.prim_func(private=True)
def clear_meaning(C: T.Buffer((16, 16), "int32", strides=["s", 1], offset_factor=1, scope="global.mxu")):
    for i, j in T.grid(16, 16):
        with T.block("clear"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = 0

@T.prim_func(private=True)
def clear_call(C: T.Buffer((16, 16), "int32", strides=["s", 1], offset_factor=1, scope="global.mxu")):
    for i in T.serial(16, annotations={"user.mxu": "clear"}):
        for j in range(16):
            C[i, j] = 0

@T.prim_func(private=True)
def multiply_meaning(A: T.Buffer((16, 16), "int8", strides=["s", 1], offset_factor=1, scope="global.mxu"), B: T.Buffer((16, 16), "int8", strides=["t", 1], offset_factor=1, scope="global.mxu"), C: T.Buffer((16, 16), "int32", strides=["u", 1], offset_factor=1, scope="global.mxu")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("multiply"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])

@T.prim_func(private=True)
def multiply_call(A: T.Buffer((16, 16), "int8", strides=["s", 1], offset_factor=1, scope="global.mxu"), B: T.Buffer((16, 16), "int8", strides=["t", 1], offset_factor=1, scope="global.mxu"), C: T.Buffer((16, 16), "int32", strides=["u", 1], offset_factor=1, scope="global.mxu")):
    for i in T.serial(16, annotations={"user.mxu": "multiply"}):
        for j, k in T.grid(16, 16):
            C[i, j] = C[i, j] + T.Cast("int32", A[i, k]) * T.Cast("int32", B[k, j])

@T.prim_func(private=True)
def store_meaning(S: T.Buffer((16, 16), "int32", strides=["s", 1], offset_factor=1, scope="global.mxu"), C: T.Buffer((16, 16), "int32", strides=["t", 1], offset_factor=1)):
    for i, j in T.grid(16, 16):
        with T.block("store"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = S[vi, vj]

@T.prim_func(private=True)
def store_call(S: T.Buffer((16, 16), "int32", strides=["s", 1], offset_factor=1, scope="global.mxu"), C: T.Buffer((16, 16), "int32", strides=["t", 1], offset_factor=1)):
    for i in T.serial(16, annotations={"user.mxu": "store"}):
        for j in range(16):
            C[i, j] = S[i, j]

S.intrin("mxu_load", load_meaning, load_call)
S.intrin("mxu_clear", clear_meaning, clear_call)
S.intrin("mxu_multiply", multiply_meaning, multiply_call)
S.intrin("mxu_store", store_meaning, store_call)

@S.rule("mxu.matmul")
def on_tiles(sch):
    product = sch.get_block("mxu.matmul")
    t, i, j, k = sch.get_loops(product)
    j0, j1 = sch.split(j, [None, 16])
    k0, k1 = sch.split(k, [None, 16])
    sch.reorder(t, j0, k0, i, j1, k1)
    a = sch.cache_read(product, 0, "global.mxu")
    sch.compute_at(a, k0)
    sch.tensorize(sch.get_loops(a)[-2], "mxu_load")
    b = sch.cache_read(product, 1, "global.mxu")
    sch.compute_at(b, k0)
    sch.tensorize(sch.get_loops(b)[-2], "mxu_load")
    c = sch.cache_write(product, 0, "global.mxu")
    sch.reverse_compute_at(c, j0)
    sch.tensorize(sch.get_loops(c)[-2], "mxu_store")
    clear = sch.decompose_reduction(product, k0)
    sch.tensorize(sch.get_loops(clear)[-2], "mxu_clear")
    sch.tensorize(i, "mxu_multiply")
