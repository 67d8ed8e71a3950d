"""Products of com.microsoft: fused ones, weights of few bits, experts, quantized layers."""
from contrib import MS, product_operands
from draw import size_of
from network import LOOSE, extents, window
from quantized import BYTES, SCALES, scale_and_point

ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "LeakyRelu"]


def transposed(g):
    _, left, right, attributes = product_operands(g)
    if "Activation" in g.op:
        attributes["activation"] = g.one_of(ACTIVATIONS)
        if attributes["activation"] == "LeakyRelu":
            attributes["activation_alpha"] = 0.125
    g.node([g.tensor("float32", left, "small"), g.tensor("float32", right, "small")], domain=MS, tolerance=LOOSE["float32"], **attributes)


def gemm_gelu(g):
    m, k, n = g.integer(1, 4), g.integer(1, 4), g.integer(1, 4)
    inputs = [g.tensor("float32", g.shape(0, 1, 0) + [m, k], "unit"), g.tensor("float32", [k, n], "unit")]
    g.node(inputs + ([g.tensor("float32", [n], "unit")] if g.chance(0.5) else []), domain=MS, tolerance=LOOSE["float32"])


def block_rows(g):
    """Gathers rows of a table of small integers in blocks."""
    rows, block = g.integer(1, 5), 16
    width = 16 * g.integer(1, 3)
    if g.chance(0.5):
        bits = g.one_of([4, 8])
        table = g.tensor("uint8", [rows, width * bits // 8], lambda: g.integer(0, 255), True)
        attributes = {"bits": bits} if bits != 4 or g.chance(0.5) else {}
        attributes |= {"gather_axis": 0, "quantize_axis": 1, "block_size": block}
        points = [rows, -(-(width // block) * bits // 8)]
        point = lambda: g.tensor("uint8", points, lambda: g.integer(0, 255), True)
    else:
        kind = g.one_of(["uint4", "int4"])
        table = g.narrow(kind, [rows, width])
        attributes = {"block_size": block, "quantize_axis": g.one_of([1, -1])}
        point = lambda: g.narrow(kind, [rows, width // block])
    at = g.shape(0, 2, 0)
    indices = g.given(g.one_of(["int64", "int32"]), at, [g.integer(-rows if g.chance(0.3) else 0, rows - 1) for _ in range(size_of(at))])
    scale = g.tensor("float32", [rows, width // block], lambda: g.one_of(SCALES), True)
    g.node([table, indices, scale] + ([point()] if g.chance(0.5) else []), domain=MS, **attributes)


def bnb4(g):
    block, k, n = g.one_of([16, 32]), g.integer(1, 40), g.integer(1, 4)
    count = n * k
    inputs = [g.tensor("float32", [g.integer(1, 3), k], "unit"), g.tensor("uint8", [(count + 1) // 2], lambda: g.integer(0, 255), True),
              g.tensor("float32", [-(-count // block)], lambda: g.integer(1, 8) / 8, True)]
    g.node(inputs, domain=MS, K=k, N=n, block_size=block, quant_type=g.integer(0, 1), tolerance=(2e-3, 2e-3))


def short_product(g):
    m, k, n = g.integer(1, 4), g.integer(1, 4), g.integer(1, 4)
    batch = g.shape(0, 1, 0)
    g.node([g.tensor("int16", batch + [m, k]), g.tensor("int16", batch + [k, n])], domain=MS)


def integer_product(g):
    dtype = g.one_of(BYTES)
    shape = g.shape()
    point = lambda: g.tensor(dtype, [])
    inputs = [g.tensor(dtype, shape), point() if g.chance(0.6) else "", g.tensor(dtype, g.partner(shape))]
    g.node(inputs + ([point()] if g.chance(0.6) else []), domain=MS)


def integer_sum(g):
    shape = g.shape(1, 4)
    axes = g.random.sample(range(len(shape)), g.integer(1, len(shape)))
    g.node([g.tensor(g.one_of(BYTES), shape)], domain=MS, axes=axes, keepdims=g.integer(0, 1))


def experts(g):
    rows, size, inner, count = g.integer(1, 4), g.integer(1, 5), g.integer(1, 4), g.integer(1, 4)
    k = g.integer(1, min(count, 3))
    activation = g.one_of(["relu", "gelu", "silu", "identity", "swiglu"])
    attributes = {"k": k, "activation_type": activation} | g.maybe(0.5, normalize_routing_weights=1)
    first = inner
    if activation == "swiglu":
        first = 2 * inner
        attributes |= {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 7.0}
    order = [g.permutation(count) for _ in range(rows)]
    router = g.given("float32", [rows, count], [place / 2 for row in order for place in row])
    part = lambda *shape: g.tensor("float32", list(shape), "unit", g.chance(0.8))
    shape = [rows, size] if g.chance(0.5) else [1, rows, size]
    inputs = [g.tensor("float32", shape, "unit"), router, part(count, first, size), part(count, first) if g.chance(0.5) else "",
              part(count, size, inner), part(count, size) if g.chance(0.5) else ""]
    g.node(inputs, domain=MS, tolerance=(2e-3, 2e-3), **attributes)


def quantized_experts(g):
    rows, size, inner, count = g.integer(1, 4), 32 * g.integer(1, 2), 32, g.integer(1, 4)
    k, bits = g.integer(1, min(count, 3)), g.one_of([4, 8])
    activation = g.one_of(["relu", "gelu", "silu", "identity"])
    block = g.one_of([None, None, 32])
    attributes = {"k": k, "activation_type": activation, "expert_weight_bits": bits} | g.maybe(0.5, normalize_routing_weights=1)
    if block:
        attributes["block_size"] = block
    order = [g.permutation(count) for _ in range(rows)]
    router = g.given("float32", [rows, count], [place / 2 for row in order for place in row])

    def layer(out, width):
        scales = [count, out, width // block] if block else [count, out]
        return [g.tensor("uint8", [count, out, width * bits // 8], lambda: g.integer(0, 255), True),
                g.tensor("float32", scales, lambda: g.integer(1, 8) / 512, True),
                g.tensor("float32", [count, out], "unit", True) if g.chance(0.4) else ""]
    g.node([g.tensor("float32", [rows, size], "unit"), router] + layer(inner, size) + layer(size, inner), domain=MS, tolerance=(5e-2, 5e-2), **attributes)


def linear_conv(g):
    kernel, strides, dilations, pads, attributes, mode = window(g, g.one_of([1, 2, 2]))
    last = g.integer(0, 1)
    group = g.integer(1, 2)
    inner, outer = g.integer(1, 3), g.integer(1, 3) * group
    a, b, y = g.one_of([("uint8", "uint8", "uint8"), ("uint8", "int8", "uint8"), ("int8", "int8", "int8")])
    image = extents(g, kernel, [1] * len(kernel), pads)
    shape = [g.integer(1, 2)] + (image + [inner * group] if last else [inner * group] + image)
    inputs = [g.tensor(a, shape)] + scale_and_point(g, a) + [g.tensor(b, [outer, inner] + kernel, "any", True)]
    inputs += scale_and_point(g, b, [outer] if g.chance(0.3) else ()) + scale_and_point(g, y)
    if g.chance(0.4):
        inputs.append(g.tensor("int32", [outer], "any", True))
    g.node(inputs, domain=MS, tolerance=(0, 0), group=group, channels_last=last, **attributes)


def linear_mean(g):
    dtype = g.one_of(BYTES)
    shape = g.shape(1, 4, 0)
    axes = g.random.sample(range(len(shape)), g.integer(1, len(shape)))
    g.node([g.tensor(dtype, shape)] + scale_and_point(g, dtype) + scale_and_point(g, dtype), domain=MS, axes=axes, keepdims=g.integer(0, 1), tolerance=(0, 0))


def quantized_lstm(g):
    hidden, width, steps, batch = g.integer(1, 4), g.integer(1, 4), g.integer(1, 4), g.integer(1, 3)
    direction = g.one_of(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    dtype = g.one_of(BYTES)
    per_gate = g.chance(0.4)
    params = lambda: [g.tensor("float32", [ways, 4 * hidden] if per_gate else [ways], lambda: g.integer(1, 4) / 512, True),
                      g.given(dtype, [ways, 4 * hidden] if per_gate else [ways], [0] * (ways * (4 * hidden if per_gate else 1)), True)]
    weight = lambda rows: g.tensor(dtype, [ways, rows, 4 * hidden], lambda: g.integer(0 if dtype == "uint8" else -100, 100), True)
    state = lambda: g.tensor("float32", [ways, batch, hidden], "unit") if g.chance(0.4) else ""
    inputs = [g.tensor("float32", [steps, batch, width], "unit"), weight(width), weight(hidden),
              g.tensor("float32", [ways, 8 * hidden], "unit", True) if g.chance(0.6) else "", "", state(), state(), ""]
    g.node(inputs + params() + params(), count=3, domain=MS, hidden_size=hidden, direction=direction, tolerance=(1e-3, 1e-3))


OPERATORS = {
    f"{MS}.{name}": ((17,), build) for name, build in {
        "TransposeMatMul": transposed, "FusedMatMulActivation": transposed, "GemmFastGelu": gemm_gelu,
        "GatherBlockQuantized": block_rows, "MatMulBnb4": bnb4, "MatMulInteger16": short_product, "MulInteger": integer_product,
        "ReduceSumInteger": integer_sum, "MoE": experts, "QMoE": quantized_experts, "QLinearConv": linear_conv,
        "QLinearReduceMean": linear_mean, "DynamicQuantizeLSTM": quantized_lstm}.items()}
