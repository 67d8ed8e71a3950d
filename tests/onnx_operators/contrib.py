"""Operators of com.microsoft that compute floats; the quantized ones stand in quantized.py."""
from draw import size_of
from network import LOOSE, extents, window

MS = "com.microsoft"


def bias_gelu(g):
    shape = g.shape(1, 4, 0)
    g.node([g.tensor("float32", shape, "fine"), g.tensor("float32", shape[-1:], "fine")], domain=MS, tolerance=LOOSE["float32"])


def fast_gelu(g):
    shape = g.shape(1, 4, 0)
    inputs = [g.tensor("float32", shape, "fine")] + ([g.tensor("float32", shape[-1:], "fine")] if g.chance(0.5) else [])
    g.node(inputs, domain=MS, tolerance=LOOSE["float32"])


def plain(op_attributes=None, low=0, kind="fine"):
    def build(g):
        attributes = op_attributes(g) if op_attributes else {}
        g.node([g.tensor("float32", g.shape(low, 4), kind)], domain=MS, tolerance=LOOSE["float32"], **attributes)
    return build


def product_operands(g):
    """Returns the batch, the shapes of both operands, and the attributes that say which of them are transposed."""
    m, k, n = g.integer(1, 4), g.integer(1, 4), g.integer(1, 4)
    batch = g.shape(0, 2, 0)
    flip = [g.integer(0, 1), g.integer(0, 1)]
    left = batch + ([k, m] if flip[0] else [m, k])
    right = batch + ([n, k] if flip[1] else [k, n])
    return batch, left, right, {"transA": flip[0], "transB": flip[1]} | g.maybe(0.5, alpha=0.5)


def fused_matmul(g):
    batch, left, right, attributes = product_operands(g)
    if batch and g.chance(0.3):  # the first dim of the batch stands before the rows
        attributes["transBatchA"] = 1
        left = left[1:-1] + left[:1] + left[-1:]
    g.node([g.tensor("float32", left, "small"), g.tensor("float32", right, "small")], domain=MS, tolerance=LOOSE["float32"], **attributes)


def fused_gemm(g):
    m, k, n = g.integer(1, 4), g.integer(1, 4), g.integer(1, 4)
    activation = g.one_of(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"])
    attributes = {"activation": activation} | g.maybe(0.5, alpha=0.5, beta=0.25)
    if activation in ("LeakyRelu", "HardSigmoid"):
        attributes["activation_alpha"] = 0.125
    if activation == "HardSigmoid":
        attributes["activation_beta"] = 0.5
    g.node([g.tensor("float32", [m, k], "small"), g.tensor("float32", [k, n], "small"), g.tensor("float32", [n], "small")], domain=MS,
           tolerance=LOOSE["float32"], **attributes)


def fused_conv(g):
    kernel, strides, dilations, pads, attributes, mode = window(g, 2)
    activation = g.one_of(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
    params = {"LeakyRelu": [0.125], "Clip": [-1.0, 2.0], "HardSigmoid": [0.25, 0.5]}
    attributes["activation"] = activation
    if activation in params:
        attributes["activation_params"] = params[activation]
    inner, outer = g.integer(1, 3), g.integer(1, 3)
    inputs = [g.tensor("float32", [g.integer(1, 2), inner] + extents(g, kernel, [1, 1], pads), "small"),
              g.tensor("float32", [outer, inner] + kernel, "small", True)]
    if g.chance(0.6):
        inputs.append(g.tensor("float32", [outer], "small", True))
    g.node(inputs, domain=MS, tolerance=LOOSE["float32"], **attributes)


def skip_norm(simplified):
    def build(g):
        shape = [g.integer(1, 3), g.integer(1, 3), g.integer(2, 6)]
        vector = lambda: g.tensor("float32", shape[-1:], "fine")
        inputs = [g.tensor("float32", shape, "fine"), g.tensor("float32", shape, "fine"), vector()]
        if not simplified:
            inputs.append(vector() if g.chance(0.6) else "")
        inputs.append(vector() if g.chance(0.5) else "")
        g.node(inputs, domain=MS, tolerance=(2e-3, 2e-3), **g.maybe(0.6, epsilon=0.01))
    return build


def embed_norm(g):
    batch, steps, width = g.integer(1, 3), g.integer(1, 4), g.integer(2, 5)
    words, places, segments = 6, 5, 2
    has_segments = g.chance(0.6)
    rows = lambda count: g.tensor("float32", [count, width], "fine")
    ids = lambda most: g.tensor("int32", [batch, steps], lambda: g.integer(0, most - 1))
    inputs = [ids(words), ids(segments) if has_segments else "", rows(words), rows(places), rows(segments) if has_segments else "",
              g.tensor("float32", [width], "fine"), g.tensor("float32", [width], "fine")]
    if g.chance(0.5):
        inputs.append(g.tensor("int32", [batch, steps], lambda: g.integer(0, 1)))
    g.node(inputs, count=2, domain=MS, tolerance=(2e-3, 2e-3), **g.maybe(0.6, epsilon=0.01))


def self_attention(g):
    batch, steps, heads, width = g.integer(1, 2), g.integer(1, 4), g.integer(1, 2), g.integer(1, 4)
    hidden, inner = heads * width, g.integer(1, 5)
    inputs = [g.tensor("float32", [batch, steps, inner], "fine"), g.tensor("float32", [inner, 3 * hidden], "fine"),
              g.tensor("float32", [3 * hidden], "fine")]
    if g.chance(0.4):
        if g.chance(0.5):
            inputs.append(g.given("int32", [batch], [g.integer(1, steps) for _ in range(batch)]))
        else:
            inputs.append(g.given("int32", [batch, steps], [1 if i % steps == 0 else g.integer(0, 1) for i in range(batch * steps)]))
    g.node(inputs, domain=MS, num_heads=heads, tolerance=(1e-3, 1e-3), **g.maybe(0.3, unidirectional=1, scale=0.5))


def multi_head(g):
    batch, queries, keys, heads, width = g.integer(1, 2), g.integer(1, 4), g.integer(1, 4), g.integer(1, 2), g.integer(1, 4)
    hidden = heads * width
    inputs = [g.tensor("float32", [batch, queries, hidden], "fine"), g.tensor("float32", [batch, keys, hidden], "fine"),
              g.tensor("float32", [batch, keys, hidden], "fine")]
    inputs.append(g.tensor("float32", [3 * hidden], "fine") if g.chance(0.3) else "")
    inputs.append(g.given("int32", [batch], [g.integer(1, keys) for _ in range(batch)]) if g.chance(0.2) else "")
    inputs.append(g.tensor("float32", [g.one_of([1, batch]), g.one_of([1, heads]), queries, keys], "fine") if g.chance(0.3) else "")
    attributes = g.maybe(0.3, scale=0.5, unidirectional=1)
    if queries != keys:  # what is seen of more keys than queries is not said
        attributes.pop("unidirectional", None)
    g.node(inputs, domain=MS, num_heads=heads, tolerance=(1e-3, 1e-3), **attributes)


def group_query(g):
    batch, heads, groups, width = g.integer(1, 2), g.integer(1, 2), g.integer(1, 2), 8 * g.integer(1, 2)
    is_first = g.chance(0.5)
    past = 0 if is_first else g.integer(1, 3)
    steps = g.integer(1, 4) if is_first else 1
    total = past + steps
    query_heads = heads * groups
    inputs = [g.tensor("float32", [batch, steps, query_heads * width], "fine"), g.tensor("float32", [batch, steps, heads * width], "fine"),
              g.tensor("float32", [batch, steps, heads * width], "fine")]
    if past:
        inputs += [g.tensor("float32", [batch, heads, past, width], "fine"), g.tensor("float32", [batch, heads, past, width], "fine")]
    else:
        inputs += ["", ""]
    inputs += [g.given("int32", [batch], [total - 1] * batch), g.given("int32", [], [total], True)]
    attributes = {"num_heads": query_heads, "kv_num_heads": heads} | g.maybe(0.3, scale=0.5, softcap=2.0)
    if g.chance(0.3):
        rows = 8
        inputs += [g.tensor("float32", [rows, width // 2], "unit"), g.tensor("float32", [rows, width // 2], "unit")]
        attributes |= {"do_rotary": 1} | g.maybe(0.5, rotary_interleaved=1)
    g.node(inputs, count=3, domain=MS, tolerance=(1e-3, 1e-3), **attributes)


def rotary(g):
    batch, heads, steps, width = g.integer(1, 2), g.integer(1, 3), g.integer(1, 4), 2 * g.integer(1, 4)
    shape = [batch, heads, steps, width] if g.chance(0.5) else [batch, steps, heads * width]
    rows = 8
    if g.chance(0.5):
        places = g.given("int64", [1], [g.integer(0, rows - steps)])
    else:
        places = g.given("int64", [batch, steps], [g.integer(0, rows - 1) for _ in range(batch * steps)])
    attributes = {"num_heads": heads} if len(shape) == 3 else {}
    g.node([g.tensor("float32", shape, "small"), places, g.tensor("float32", [rows, width // 2], "unit"),
            g.tensor("float32", [rows, width // 2], "unit")], domain=MS, **attributes, **g.maybe(0.5, interleaved=g.integer(0, 1)))


def matmul_bits(g):
    bits = 4
    block = g.one_of([16, 32])
    m, n, k = g.integer(1, 4), g.integer(1, 6), g.integer(1, 70)
    blocks = -(-k // block)
    inputs = [g.tensor("float32", [m, k], "fine"), g.tensor("uint8", [n, blocks, block * bits // 8], lambda: g.integer(0, 255), True),
              g.tensor("float32", [n * blocks] if g.chance(0.5) else [n, blocks], lambda: g.integer(1, 8) / 8, True)]
    if g.chance(0.4):
        inputs.append(g.tensor("uint8", [n * -(-blocks // 2)], lambda: g.integer(0, 255), True))
    g.node(inputs, domain=MS, K=k, N=n, bits=bits, block_size=block, tolerance=(2e-3, 2e-2))


def cdist(g):
    k = g.integer(1, 5)
    dtype = g.one_of(["float32", "float64"])
    g.node([g.tensor(dtype, [g.integer(1, 4), k], "small"), g.tensor(dtype, [g.integer(1, 4), k], "small")], domain=MS,
           metric=g.one_of(["euclidean", "sqeuclidean"]), tolerance=(1e-3, 1e-2))


def range_(g):
    dtype = g.one_of(["float32", "int32", "int64"])
    number = (lambda: g.integer(-20, 20) / 4) if dtype == "float32" else (lambda: g.integer(-10, 10))
    low = number()
    step = abs(number()) or 1
    g.node([g.scalar(dtype, low), g.scalar(dtype, low + abs(number()) * 2 + (1 if dtype != "float32" else 0.5))]
           + ([g.scalar(dtype, step)] if g.chance(0.6) else []), domain=MS)


def pad(g):
    shape = g.shape(1, 3, 0)
    pads = [g.integer(0, 2) for _ in range(2 * len(shape))]
    g.node([g.tensor("float32", shape), g.ints(pads, "int64")] + ([g.scalar("float32", 1.5)] if g.chance(0.4) else []), domain=MS,
           mode=g.one_of(["constant", "edge"]))


def expand_dims(g):
    shape = g.shape(0, 3)
    g.node([g.tensor("float32", shape), g.scalar("int32", g.axis(len(shape), 1), 1)], domain=MS)


def unique(g):
    g.node([g.tensor("float32", [g.integer(1, 8)], lambda: float(g.integer(-2, 2)))], count=3, domain=MS)


def inverse(g):
    n = g.integer(1, 3)
    def number():
        return g.integer(-8, 8) / 8
    shape = g.shape(0, 2, 0) + [n, n]
    data = [number() + (4.0 if i % (n * n) % (n + 1) == 0 else 0.0) for i in range(size_of(shape))]
    g.node([g.given("float32", shape, data)], domain=MS, tolerance=(1e-3, 1e-3))


def gather_nd(g):
    shape = g.shape(1, 3, 0)
    depth = g.integer(1, len(shape))
    count = g.integer(1, 4)
    data = [g.integer(0, shape[i % depth] - 1) for i in range(count * depth)]
    g.node([g.tensor("float32", shape), g.given("int64", [count, depth], data)], domain=MS)


def trilu(g):
    g.node([g.tensor("float32", g.shape(2, 4))] + ([g.scalar("int64", g.integer(-3, 3))] if g.chance(0.6) else []), domain=MS,
           **g.maybe(0.6, upper=g.integer(0, 1)))


def nhwc_pool(g):
    kernel, strides, dilations, pads, attributes, mode = window(g, 2)
    shape = [g.integer(1, 2)] + extents(g, kernel, [1, 1], pads) + [g.integer(1, 4)]
    g.node([g.tensor(g.one_of(["int8", "uint8"]), shape)], domain=MS, **attributes)


OPERATORS = {
    f"{MS}.{name}": ((17,), build) for name, build in {
        "Gelu": plain(), "BiasGelu": bias_gelu, "FastGelu": fast_gelu, "QuickGelu": plain(lambda g: g.maybe(0.6, alpha=1.5)),
        "FusedMatMul": fused_matmul, "FusedGemm": fused_gemm, "FusedConv": fused_conv,
        "SkipLayerNormalization": skip_norm(False), "SkipSimplifiedLayerNormalization": skip_norm(True),
        "EmbedLayerNormalization": embed_norm, "Attention": self_attention, "MultiHeadAttention": multi_head,
        "GroupQueryAttention": group_query, "RotaryEmbedding": rotary, "MatMulNBits": matmul_bits, "CDist": cdist,
        "Range": range_, "Pad": pad, "ExpandDims": expand_dims, "Unique": unique, "Inverse": inverse, "GatherND": gather_nd,
        "Trilu": trilu, "NhwcMaxPool": nhwc_pool}.items()}
