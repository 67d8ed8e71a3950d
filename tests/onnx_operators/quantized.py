"""Quantized operators, and tensors of narrow types."""
from draw import INNER_TYPES, Unfit, limits_of
from network import extents, window
import wire

BYTES = ["uint8", "int8"]


def spread(g, shape):
    """Scale and zero point of one number, or one for each position of an axis, or for each block of one."""
    rank = len(shape)
    form = g.integer(0, 2) if g.opset >= 21 else g.integer(0, 1) if g.opset >= 13 else 0
    if form == 0 or rank == 0:
        return [], {}
    axis = g.axis(rank)
    if form == 1:
        return [shape[axis]], {"axis": axis}
    block = g.integer(1, 3)
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // block)
    if shape[axis] == 0 or (shape[axis] % block and blocks[axis] != -(-shape[axis] // block)):
        raise Unfit
    return blocks, {"axis": axis, "block_size": block}


def quantize(g):
    types = BYTES + (["int16", "uint16", "uint4", "int4"] if g.opset >= 21 else []) + (
        ["float8e4m3fn", "float8e5m2"] if g.opset >= 19 else [])
    target = g.one_of(types)
    shape = g.shape(0, 4)
    dtype = g.one_of(["float32", "float32", "float16"]) if g.opset >= 19 else "float32"
    scale_shape, attributes = spread(g, shape)
    scale = lambda: g.one_of([0.125, 0.25, 0.5, 1.0, 2.0])
    special = g.chance(0.3) and "float8" not in target
    number = lambda: next(item for item in iter(lambda: g.element(dtype, "any"), None) if item == item)  # NaN has no quotient
    x = g.tensor(dtype, shape, number if special else (lambda: g.integer(-400, 400) / 8))
    inputs = [x, g.tensor(dtype, scale_shape, scale)]
    is_narrow = target in INNER_TYPES
    if is_narrow and "float8" not in target and g.chance(0.5):
        attributes["output_dtype"] = wire.ELEMENT_TYPES[target]
    elif target != "uint8" or g.chance(0.5):
        if is_narrow:
            inputs.append(g.narrow(target, scale_shape))
        else:
            low, high = limits_of(target)
            inputs.append(g.tensor(target, scale_shape, lambda: g.one_of([0, low, high, 1, high // 2])))
    if "float8" in target:
        attributes |= g.maybe(0.4, saturate=g.integer(0, 1))
    g.node(inputs, **attributes)
    if is_narrow:
        g.outputs_as("float32")


def dequantize(g):
    types = BYTES + ["int32"] + (["int16", "uint16", "uint4", "int4"] if g.opset >= 21 else []) + (
        ["float8e4m3fn", "float8e5m2"] if g.opset >= 19 else [])
    source = g.one_of(types)
    shape = g.shape(0, 4)
    dtype = g.one_of(["float32", "float32", "float16"]) if g.opset >= 19 else "float32"
    scale_shape, attributes = spread(g, shape)
    x = g.narrow(source, shape)
    inputs = [x, g.tensor(dtype, scale_shape, lambda: g.one_of([0.125, 0.25, 0.5, 1.0, 2.0]))]
    if source not in ("int32",) and "float8" not in source and g.chance(0.6):
        inputs.append(g.narrow(source, scale_shape))
    g.node(inputs, **attributes)


def dynamic_quantize(g):
    g.node([g.tensor("float32", g.shape(0, 4, 0), "small")], count=3)


def integer_matmul(g):
    m, k, n = g.dim(), g.dim(), g.dim()
    batch = g.shape(0, 2)
    a, b = g.one_of(BYTES), g.one_of(BYTES)
    left, right = batch + [m, k], (batch if g.chance(0.5) else []) + [k, n]
    inputs = [g.tensor(a, left), g.tensor(b, right)]
    has_left = g.chance(0.6)
    inputs.append(g.tensor(a, g.one_of([[], [1]])) if has_left else "")
    if g.chance(0.6):
        inputs.append(g.tensor(b, g.one_of([[], [1], [n]] if len(right) == 2 else [[], [1]])))
    g.node(inputs)


SCALES = [0.125, 0.25, 0.5, 1.0]


def scale_and_point(g, dtype, shape=()):
    return [g.tensor("float32", list(shape), lambda: g.one_of(SCALES), g.chance(0.7)), g.tensor(dtype, list(shape), "small", g.chance(0.7))]


def linear_matmul(g):
    m, k, n = g.dim(), g.dim(), g.dim()
    a, b, y = g.one_of([("uint8", "uint8", "uint8"), ("uint8", "int8", "uint8"), ("int8", "int8", "int8")])
    batch = g.shape(0, 1)
    per_column = g.chance(0.3)
    inputs = [g.tensor(a, batch + [m, k])] + scale_and_point(g, a) + [g.tensor(b, [k, n])]
    g.node(inputs + scale_and_point(g, b, [n] if per_column else ()) + scale_and_point(g, y), tolerance=(0, 0))


def integer_conv(g, linear=False):
    rank = g.one_of([1, 2, 2, 3])
    kernel, strides, dilations, pads, attributes, mode = window(g, rank)
    if g.chance(0.3):
        attributes["dilations"] = dilations
    else:
        dilations = [1] * rank
    group = g.integer(1, 2)
    if group > 1:
        attributes["group"] = group
    inner, outer = g.integer(1, 3), g.integer(1, 3) * group
    a, b, y = g.one_of([("uint8", "uint8", "uint8"), ("uint8", "int8", "uint8"), ("int8", "int8", "int8")])
    shape = [g.dim(), inner * group] + extents(g, kernel, dilations, pads)
    x, w = g.tensor(a, shape), g.tensor(b, [outer, inner] + kernel, "any", g.chance(0.8))
    if not linear:
        inputs = [x, w, g.tensor(a, []) if g.chance(0.6) else ""]
        if g.chance(0.5):
            inputs.append(g.tensor(b, g.one_of([[], [outer]])))
        return g.node(inputs, **attributes)
    per_row = g.chance(0.3)
    inputs = [x] + scale_and_point(g, a) + [w] + scale_and_point(g, b, [outer] if per_row else ()) + scale_and_point(g, y)
    if g.chance(0.4):
        inputs.append(g.tensor("int32", [outer]))
    g.node(inputs, tolerance=(0, 0), **attributes)


# ---- com.microsoft
def contrib_binary(g):
    dtype = g.one_of(BYTES)
    shape = g.shape()
    inputs = [g.tensor(dtype, shape)] + scale_and_point(g, dtype) + [g.tensor(dtype, g.partner(shape))]
    g.node(inputs + scale_and_point(g, dtype) + scale_and_point(g, dtype), domain="com.microsoft", tolerance=(0, 0))


def contrib_unary(g):
    dtype = g.one_of(BYTES)
    inputs = [g.tensor(dtype, g.shape(1, 4))] + scale_and_point(g, dtype) + scale_and_point(g, dtype)
    attributes = {"alpha": 0.25} if "Leaky" in g.op else {}
    g.node(inputs, domain="com.microsoft", tolerance=(0, 0), **attributes)


def contrib_concat(g):
    dtype = g.one_of(BYTES)
    shape = g.shape(1, 3)
    axis = g.axis(len(shape))
    inputs = scale_and_point(g, dtype)
    for _ in range(g.integer(1, 3)):
        part = list(shape)
        part[axis] = g.dim()
        inputs += [g.tensor(dtype, part)] + scale_and_point(g, dtype)
    g.node(inputs, domain="com.microsoft", axis=axis, tolerance=(0, 0))


def contrib_pool(g):
    dtype = g.one_of(BYTES)
    if "Global" in g.op:
        shape = [g.integer(1, 3), g.integer(1, 3)] + g.shape(1, 2, 0)
        inputs = [g.tensor(dtype, shape)] + scale_and_point(g, dtype) + scale_and_point(g, dtype)
        return g.node(inputs, domain="com.microsoft", channels_last=0, tolerance=(0, 0))
    kernel, strides, dilations, pads, attributes, mode = window(g, g.one_of([1, 2, 2]))
    shape = [g.integer(1, 3), g.integer(1, 3)] + extents(g, kernel, [1] * len(kernel), pads)
    inputs = [g.tensor(dtype, shape)] + scale_and_point(g, dtype) + scale_and_point(g, dtype)
    g.node(inputs, domain="com.microsoft", tolerance=(0, 0), **attributes, **g.maybe(0.4, count_include_pad=1))


def contrib_softmax(g):
    dtype = g.one_of(BYTES)
    shape = g.shape(1, 3, 0)
    inputs = [g.tensor(dtype, shape)] + scale_and_point(g, dtype)
    inputs += [g.given("float32", [], [1 / 256], True), g.given(dtype, [], [0 if dtype == "uint8" else -128], True)]
    g.node(inputs, domain="com.microsoft", opset=g.one_of([11, 13]), axis=g.axis(len(shape)), tolerance=(0, 0))


def contrib_quantize(g):
    dtype = g.one_of(BYTES + ["int16", "uint16"])
    shape = g.shape(1, 3)
    per_axis = g.chance(0.4)
    axis = g.axis(len(shape))
    part = [shape[axis]] if per_axis else []
    scale = g.tensor("float32", part, lambda: g.one_of(SCALES))
    attributes = {"axis": axis} if per_axis else {}
    forward = "Dequantize" not in g.op
    x = g.tensor("float32", shape, "small") if forward else g.tensor(dtype, shape)
    g.node([x, scale, g.tensor(dtype, part, "small")], domain="com.microsoft", **attributes)


def float_product(g):
    m, k, n = g.dim(0), g.dim(0), g.dim(0)
    b = g.one_of(BYTES)
    if g.op.endswith("DynamicQuantizeMatMul"):
        inputs = [g.tensor("float32", [m, k], "small"), g.tensor(b, [k, n], "any", True), g.tensor("float32", [], lambda: g.one_of(SCALES), True),
                  g.tensor(b, [], "small", True) if g.chance(0.6) else ""]
    else:
        a = g.one_of(["uint8"] if b == "uint8" else BYTES)
        inputs = [g.tensor(a, [m, k]), g.tensor(b, [k, n]), g.tensor("float32", [], lambda: g.one_of(SCALES)),
                  g.tensor("float32", g.one_of([[], [n]]), lambda: g.one_of(SCALES)),
                  g.tensor(a, []) if g.chance(0.6) else "", g.tensor(b, []) if g.chance(0.6) else ""]
    if g.chance(0.5):
        inputs.append(g.tensor("float32", [n], "small"))
    g.node(inputs, domain="com.microsoft", tolerance=(1e-2, 6e-1) if "Dynamic" in g.op else (1e-3, 1e-3))


def quantized_gemm(g):
    m, k, n = g.integer(1, 4), g.integer(1, 5), g.integer(1, 4)
    flip = [g.integer(0, 1), g.integer(0, 1)]
    a, b = g.one_of([("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
    inputs = [g.tensor(a, [k, m] if flip[0] else [m, k])] + scale_and_point(g, a)
    inputs += [g.tensor(b, [n, k] if flip[1] else [k, n])] + scale_and_point(g, b)
    inputs.append(g.tensor("int32", [n]) if g.chance(0.5) else "")
    if g.chance(0.6):
        inputs += scale_and_point(g, a)
    g.node(inputs, domain="com.microsoft", tolerance=(1e-4, 1), transA=flip[0], transB=flip[1], **g.maybe(0.4, alpha=0.5))


def quantized_where(g):
    dtype = g.one_of(BYTES)
    shape = g.shape()
    inputs = [g.tensor("bool", g.partner(shape)), g.tensor(dtype, shape)] + scale_and_point(g, dtype)
    g.node(inputs + [g.tensor(dtype, g.partner(shape))] + scale_and_point(g, dtype) + scale_and_point(g, dtype),
           domain="com.microsoft", tolerance=(0, 0))


def quantized_attention(g):
    batch, steps, heads, width = g.integer(1, 2), g.integer(1, 4), g.integer(1, 2), g.integer(1, 4)
    hidden, inner = heads * width, g.integer(1, 5)
    scale = lambda: g.given("float32", [], [0.03125], True)
    inputs = [g.tensor("uint8", [batch, steps, inner]), g.tensor("int8", [inner, 3 * hidden], "any", True),
              g.tensor("float32", [3 * hidden], "small"), scale(), scale(), ""]
    inputs += [g.tensor("uint8", [], "small", True), g.tensor("int8", [], "small", True)] if g.chance(0.6) else []
    g.node(inputs, domain="com.microsoft", num_heads=heads, tolerance=(1e-3, 1e-3), **g.maybe(0.3, unidirectional=1))


OPERATORS = {
    "QuantizeLinear": ((10, 13, 19, 21), quantize), "DequantizeLinear": ((10, 13, 19, 21), dequantize),
    "DynamicQuantizeLinear": ((11,), dynamic_quantize), "MatMulInteger": ((10,), integer_matmul),
    "QLinearMatMul": ((10, 21), linear_matmul), "ConvInteger": ((10,), integer_conv),
    "QLinearConv": ((10,), lambda g: integer_conv(g, linear=True)),
    "com.microsoft.QLinearAdd": ((17,), contrib_binary), "com.microsoft.QLinearMul": ((17,), contrib_binary),
    "com.microsoft.QLinearSigmoid": ((17,), contrib_unary), "com.microsoft.QLinearLeakyRelu": ((17,), contrib_unary),
    "com.microsoft.QLinearConcat": ((17,), contrib_concat), "com.microsoft.QLinearAveragePool": ((17,), contrib_pool),
    "com.microsoft.QLinearGlobalAveragePool": ((17,), contrib_pool), "com.microsoft.QLinearSoftmax": ((17,), contrib_softmax),
    "com.microsoft.QuantizeLinear": ((17,), contrib_quantize), "com.microsoft.DequantizeLinear": ((17,), contrib_quantize),
    "com.microsoft.QGemm": ((17,), quantized_gemm), "com.microsoft.QLinearWhere": ((17,), quantized_where),
    "com.microsoft.QAttention": ((17,), quantized_attention),
    "com.microsoft.MatMulIntegerToFloat": ((17,), float_product), "com.microsoft.DynamicQuantizeMatMul": ((17,), float_product),
}
