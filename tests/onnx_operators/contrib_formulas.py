"""Results of operators of com.microsoft that ONNX Runtime has for GPUs only. A formula has the node's inputs ("" for those
left out) and attributes, and returns (dtype, shape, elements) of each result, or nothing where it cannot tell."""
from fractions import Fraction
from itertools import product
from math import cos, erf, exp, isinf, isnan, log, pi, prod, sin, sqrt, tanh

from draw import limits_of, size_of
from formulas import flat, places


def rows_of(x, width):
    return [x.data[i:i + width] for i in range(0, len(x.data), width)]


def joined(rows):
    return [item for row in rows for item in row]


def sigmoid(x):
    return 1 / (1 + exp(-x))


def softmax(scores):
    powers = [exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def gelu(x):
    return x * (1 + erf(x / sqrt(2))) / 2


def elements(x, shape):
    """The elements of x, broadcast to this shape."""
    def one(place):
        near = place[len(shape) - x.rank:]
        return x.data[flat([index if dim > 1 else 0 for index, dim in zip(near, x.shape)], x.shape)]
    return [one(place) for place in places(shape)]


def expand_dims(g, inputs, _):
    x, axis = inputs[0], inputs[1].data[0]
    axis %= x.rank + 1
    return [(x.dtype, x.shape[:axis] + [1] + x.shape[axis:], x.data)]


def added(g, inputs, _):
    """The sum of all inputs, broadcast to the first."""
    shape = inputs[0].shape
    return [("float32", shape, [sum(items) for items in zip(*(elements(x, shape) for x in inputs if x))])]


def bias_softmax(g, inputs, attributes):
    x = inputs[0]
    sums = added(g, inputs, attributes)[0][2]
    width = size_of(x.shape[attributes["axis"]:])
    return [("float32", x.shape, joined(softmax(sums[i:i + width]) for i in range(0, len(sums), width)))]


def split_gelu(g, inputs, attributes):
    x = inputs[0]
    sums, width = added(g, inputs, attributes)[0][2], x.shape[-1]
    half = width // 2
    result = [sums[i + c] * gelu(sums[i + half + c]) for i in range(0, len(sums), width) for c in range(half)]
    return [("float32", x.shape[:-1] + [half], result)]


def group_norm(g, inputs, attributes):
    x, gamma, beta = inputs[:3]
    last = attributes.get("channels_last", 1)
    channels, groups = gamma.shape[0], attributes["groups"]
    data = list(x.data)
    def image_and_channel(place):
        return place[0], place[-1 if last else 1]
    def skip_of(place):
        if len(inputs) < 4:
            return 0.0
        skip, (n, c) = inputs[3], image_and_channel(place)
        part = skip.data[flat(place, x.shape)] if skip.shape == x.shape else skip.data[n * channels + c]
        return part + (inputs[4].data[c] if len(inputs) > 4 else 0.0)
    for place in places(x.shape):
        data[flat(place, x.shape)] += skip_of(place)
    members = {}
    for place in places(x.shape):
        n, c = image_and_channel(place)
        members.setdefault((n, c * groups // channels), []).append(data[flat(place, x.shape)])
    result = []
    for place in places(x.shape):
        n, c = image_and_channel(place)
        group = members[n, c * groups // channels]
        mean = sum(group) / len(group)
        variance = sum((item - mean) ** 2 for item in group) / len(group)
        y = (data[flat(place, x.shape)] - mean) / sqrt(variance + attributes.get("epsilon", 1e-5)) * gamma.data[c] + beta.data[c]
        result.append(y * sigmoid(y) if attributes["activation"] else y)
    return [("float32", x.shape, result)] + ([("float32", x.shape, data)] if len(inputs) > 3 else [])


def relative_bias(g, inputs, attributes):
    """The buckets of T5: one for each small distance, then logarithmic ones. The table is stored column by column."""
    table, queries, keys = inputs[0], inputs[1].data[0], inputs[2].data[0]
    buckets, heads = table.shape
    def bucket(distance):
        first, count = 0, buckets
        if attributes.get("is_bidirectional"):
            count //= 2
            first = count if distance > 0 else 0
            distance = abs(distance)
        else:
            distance = -min(distance, 0)
        exact = count // 2
        if distance < exact:
            return first + distance
        far = log(distance / exact) / log(attributes["max_distance"] / exact) * (count - exact)
        return None if abs(far - round(far)) < 1e-4 and round(far) else first + min(exact + int(far), count - 1)
    chosen = {(i, j): bucket(j - i) for i in range(queries) for j in range(keys)}
    if None in chosen.values():
        return []  # rounding decides between two buckets
    return [("float32", [1, heads, queries, keys],
             [table.data[h * buckets + chosen[i, j]] for h in range(heads) for i in range(queries) for j in range(keys)])]


def gated_bias(g, inputs, attributes):
    query, query_bias, position, weight, bias, eco = inputs
    heads = attributes["num_heads"]
    batch, length, hidden = query.shape
    width, units = weight.shape
    result = []
    for b, h, i in product(range(batch), range(heads), range(length)):
        row = [query.data[(b * length + i) * hidden + h * width + c] + query_bias.data[h * width + c] for c in range(width)]
        linear = [dot(row, weight.data[u::units]) + bias.data[u] for u in range(units)]
        update, reset = sigmoid(sum(linear[:units // 2])), sigmoid(sum(linear[units // 2:]))
        gate = update * (reset * eco.data[h] - 1) + 2
        result += [gate * position.data[(h * length + i) * length + j] for j in range(length)]
    return [("float32", [batch, heads, length, length], result)]


def attend(query, key, value, bounds, heads, scale):
    """Rows of one sequence see each other; all operands are rows of the heads' parts."""
    hidden = len(query[0])
    width, result = hidden // heads, []
    for begin, end in zip(bounds, bounds[1:]):
        for i in range(begin, end):
            for h in range(heads):
                part = slice(h * width, (h + 1) * width)
                weights = softmax([(scale or 1 / sqrt(width)) * dot(query[i][part], key[j][part]) for j in range(begin, end)])
                result += [dot(weights, [value[j][h * width + c] for j in range(begin, end)]) for c in range(width)]
    return result


def packed_attention(g, inputs, attributes):
    x, weight, bias, _, bounds = inputs
    rows, inner = x.shape
    hidden = weight.shape[1] // 3
    projected = [[dot(row, weight.data[c::3 * hidden]) + bias.data[c] for c in range(3 * hidden)] for row in rows_of(x, inner)]
    parts = [[row[k * hidden:(k + 1) * hidden] for row in projected] for k in range(3)]
    return [("float32", [rows, hidden], attend(*parts, bounds.data, attributes["num_heads"], attributes.get("scale")))]


def packed_multi_head(g, inputs, attributes):
    query, key, value, bias, _, bounds = inputs
    heads = attributes["num_heads"]
    if key:
        parts = [rows_of(x, x.shape[1]) for x in (query, key, value)]
    else:
        rows, _, _, width = query.shape
        parts = [[[query.data[((r * heads + h) * 3 + k) * width + c] for h in range(heads) for c in range(width)] for r in range(rows)]
                 for k in range(3)]
    hidden = len(parts[0][0])
    if bias:
        parts = [[[a + b for a, b in zip(row, bias.data[k * hidden:])] for row in part] for k, part in enumerate(parts)]
    return [("float32", [query.shape[0], hidden], attend(*parts, bounds.data, heads, attributes.get("scale")))]


def embedding(g, inputs, _):
    table, at = inputs[:2]
    width = table.shape[1]
    return [("float32", at.shape + [width], joined(table.data[i * width:(i + 1) * width] for i in at.data))]


def complex_product(g, inputs, _):
    pairs = [rows_of(x, 2) for x in inputs]
    sign = -1 if g.op.endswith("Conj") else 1
    result = []
    for (a, b), (c, d) in zip(*pairs):
        number = complex(a, b) * complex(c, sign * d)
        result += [number.real, number.imag]
    return [("float32", inputs[0].shape, result)]


def fourier(g, inputs, attributes):
    """The sums as they are defined, over the last dims; the last one keeps its first half only."""
    x, count = inputs[0], attributes["signal_ndim"]
    is_inverse = g.op.endswith("Irfft")
    shape = x.shape[:-1] if is_inverse else x.shape
    batch, dims = shape[:len(shape) - count], shape[len(shape) - count:]
    whole = dims[:-1] + [2 * (dims[-1] - 1)] if is_inverse else dims
    out = whole if is_inverse else dims[:-1] + [dims[-1] // 2 + 1]
    result = []
    for place in places(batch):
        def number(at):
            if not is_inverse:
                return x.data[flat(place + at, x.shape)]
            if at[-1] < dims[-1]:
                spot = flat(place + at, shape)
                return complex(x.data[2 * spot], x.data[2 * spot + 1])
            return number(tuple((-i) % dim for i, dim in zip(at, whole))).conjugate()
        for k in places(out):
            total = 0
            for at in places(whole):
                angle = 2 * pi * sum(i * j / dim for i, j, dim in zip(k, at, whole)) * (1 if is_inverse else -1)
                total += number(at) * complex(cos(angle), sin(angle))
            result += [total.real / prod(whole)] if is_inverse else [total.real, total.imag]
    return [("float32", batch + out + ([] if is_inverse else [2]), result)]


def is_all_finite(g, inputs, attributes):
    odd = isinf if attributes.get("isinf_only") else lambda item: isinf(item) or isnan(item)
    return [("bool", [], [not any(odd(item) for x in inputs for item in x.data)])]


def padding_of(size, kernel, strides, attributes):
    """Pads in front and the number of steps, of each dim."""
    mode, pads = attributes.get("auto_pad", "NOTSET"), attributes.get("pads", [0] * 4)
    result = []
    for i in range(2):
        if mode.startswith("SAME"):
            steps = -(-size[i] // strides[i])
            total = max((steps - 1) * strides[i] + kernel[i] - size[i], 0)
            result.append((total // 2 if mode == "SAME_UPPER" else total - total // 2, steps))
        else:
            result.append((pads[i], (size[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1))
    return result


def nhwc_conv(g, inputs, attributes):
    x, weight = inputs[:2]
    batch, *size, inner = x.shape
    outer, _, *kernel = weight.shape
    strides = attributes.get("strides", [1, 1])
    (top, rows), (left, columns) = padding_of(size, kernel, strides, attributes)
    result = []
    for n, i, j, o in product(range(batch), range(rows), range(columns), range(outer)):
        total = inputs[2].data[o] if len(inputs) > 2 else 0.0
        for u, v, c in product(range(kernel[0]), range(kernel[1]), range(inner)):
            h, w = i * strides[0] + u - top, j * strides[1] + v - left
            if 0 <= h < size[0] and 0 <= w < size[1]:
                total += x.data[flat((n, h, w, c), x.shape)] * weight.data[flat((o, c, u, v), weight.shape)]
        result.append(max(total, 0.0) if "activation" in attributes else total)
    return [("float32", [batch, rows, columns, outer], result)]


def reduced(x, axes, keepdims):
    """The shape behind a reduction, and the elements of each sum."""
    kept = [1 if d in axes else dim for d, dim in enumerate(x.shape)]
    groups = [[] for _ in range(size_of(kept))]
    for place in places(x.shape):
        groups[flat([0 if d in axes else index for d, index in enumerate(place)], kept)].append(x.data[flat(place, x.shape)])
    return (kept if keepdims else [dim for d, dim in enumerate(x.shape) if d not in axes]), groups


def linear_mean(g, inputs, attributes):
    x, scale, point, result_scale, result_point = inputs
    shape, groups = reduced(x, attributes["axes"], attributes["keepdims"])
    low, high = limits_of(x.dtype)
    def one(items):
        mean = Fraction(sum(item - point.data[0] for item in items), len(items)) * Fraction(scale.data[0]) / Fraction(result_scale.data[0])
        return min(max(round(mean) + result_point.data[0], low), high)  # round() takes the even number of two
    return [(x.dtype, shape, [one(items) for items in groups])]


def integer_sum(g, inputs, attributes):
    shape, groups = reduced(inputs[0], attributes["axes"], attributes["keepdims"])
    return [("uint32" if inputs[0].dtype == "uint8" else "int32", shape, [sum(items) for items in groups])]


def integer_product(g, inputs, _):
    a, a_point, b = inputs[:3]
    b_point = inputs[3] if len(inputs) > 3 else ""
    shape = [max(pair) if 0 not in pair else 0 for pair in zip(*([1] * (max(a.rank, b.rank) - x.rank) + x.shape for x in (a, b)))]
    points = [point.data[0] if point else 0 for point in (a_point, b_point)]
    return [("int32", shape, [(x - points[0]) * (y - points[1]) for x, y in zip(elements(a, shape), elements(b, shape))])]


def gemm_gelu(g, inputs, _):
    x, weight = inputs[:2]
    inner, outer = weight.shape
    def fast(y):
        return y * (1 + tanh(sqrt(2 / pi) * (y + 0.044715 * y ** 3))) / 2
    bias = inputs[2].data if len(inputs) > 2 else [0.0] * outer
    result = [fast(dot(row, weight.data[c::outer]) + bias[c]) for row in rows_of(x, inner) for c in range(outer)]
    return [("float32", x.shape[:-1] + [outer], result)]


def gated_add(g, inputs, _):
    x, other, gate = inputs
    parts = [elements(item, x.shape) for item in inputs]
    return [("float32", x.shape, [a + b * c for a, b, c in zip(*parts)])]


def gemma_rotary(g, inputs, _):
    angles, *parts = inputs
    def one(x, turned):
        def at(place):
            n, h, i, c = place
            angle = angles.data[flat((n, i, c), angles.shape)]
            return cos(angle) * x.data[flat(place, x.shape)] + sin(angle) * turned.data[flat(place, x.shape)]
        return "float16", x.shape, [at(place) for place in places(x.shape)]
    return [one(*parts[:2]), one(*parts[2:])]


def root_mean_square_norm(g, inputs, attributes):
    x, scale = inputs
    width, result = size_of(scale.shape), []
    for row in rows_of(x, width):
        root = sqrt(dot(row, row) / width + attributes.get("epsilon", 1e-5))
        result += [item / root * factor for item, factor in zip(row, scale.data)]
    return [(x.dtype, x.shape, result)]


def activated_product(g, inputs, attributes):
    """Of matrices with equal batches."""
    flips = [attributes[name] for name in ("transA", "transB")]
    def matrices(x, is_flipped):
        rows, columns = x.shape[-2:]
        listed = [rows_of_matrix(x.data[i:i + rows * columns], columns) for i in range(0, len(x.data), rows * columns)]
        return [list(zip(*m)) if is_flipped else m for m in listed]
    rows_of_matrix = lambda data, width: [data[i:i + width] for i in range(0, len(data), width)]
    slope = attributes.get("activation_alpha", 0.0)
    activation = {"Relu": lambda y: max(y, 0.0), "Tanh": tanh, "Sigmoid": sigmoid, "LeakyRelu": lambda y: y if y >= 0 else slope * y}
    left, right = (matrices(x, is_flipped) for x, is_flipped in zip(inputs, flips))
    result = [[[activation[attributes["activation"]](attributes.get("alpha", 1.0) * dot(row, column)) for column in zip(*b)] for row in a]
              for a, b in zip(left, right)]
    return [("float32", inputs[0].shape[:-2] + [len(result[0]), len(result[0][0])], joined(joined(result)))]


FORMULAS = {f"com.microsoft.{name}": formula for name, formula in {
    "ExpandDims": expand_dims, "BiasAdd": added, "BiasDropout": added, "BiasSoftmax": bias_softmax, "BiasSplitGelu": split_gelu,
    "GroupNorm": group_norm, "SkipGroupNorm": group_norm, "RelativePositionBias": relative_bias, "GatedRelativePositionBias": gated_bias,
    "PackedAttention": packed_attention, "PackedMultiHeadAttention": packed_multi_head, "TorchEmbedding": embedding,
    "ComplexMul": complex_product, "ComplexMulConj": complex_product, "Rfft": fourier, "Irfft": fourier, "NhwcConv": nhwc_conv,
    "NhwcFusedConv": nhwc_conv, "IsAllFinite": is_all_finite, "QLinearReduceMean": linear_mean, "ReduceSumInteger": integer_sum,
    "MulInteger": integer_product, "GemmFastGelu": gemm_gelu, "GatedAdd": gated_add, "GemmaRotaryEmbedding": gemma_rotary,
    "SimplifiedLayerNormalization": root_mean_square_norm,
    "FusedMatMulActivation": activated_product}.items()}
