"""Operators of com.microsoft in transformers, diffusion and speech: norms, biases, attention over caches and packed rows."""
from itertools import product
from math import exp, sqrt

from draw import Unfit, size_of
from network import LOOSE, extents, grid_coordinate, window

MS = "com.microsoft"
CLOSE = (1e-3, 1e-3)


def bias_add(g):
    shape = [g.integer(1, 2), g.integer(1, 4), g.integer(1, 5)]
    g.node([g.tensor("float32", shape), g.tensor("float32", shape[-1:]), g.tensor("float32", shape)], domain=MS)


def bias_dropout(g):
    shape = g.shape(1, 3)
    g.node([g.tensor("float32", shape, "small"), g.tensor("float32", shape[-1:], "small"), g.tensor("float32", shape, "small") if g.chance(0.5) else ""],
           domain=MS)


def bias_softmax(g):
    shape = g.shape(2, 4, 0)
    axis = g.integer(1, len(shape) - 1)
    inner = g.integer(0, 1)
    bias = list(shape)
    for d in range(axis):  # one bias for some of the batch axes
        if inner == (d == axis - 1) or d == 0:
            bias[d] = 1
    g.node([g.tensor("float32", shape, "fine"), g.tensor("float32", bias, "fine")], domain=MS, axis=axis, is_inner_broadcast=inner, tolerance=CLOSE)


def split_gelu(g):
    width = 2 * g.integer(1, 4)
    g.node([g.tensor("float32", [g.integer(1, 2), g.integer(1, 4), width], "fine"), g.tensor("float32", [width], "fine")], domain=MS, tolerance=CLOSE)


def group_norm(skips):
    def build(g):
        groups, per_group = g.integer(1, 3), g.integer(1, 3)
        channels = groups * per_group
        last = g.integer(0, 1)
        image = [g.integer(1, 4), g.integer(1, 4)]
        batch = g.integer(1, 2)
        shape = [batch] + (image + [channels] if last else [channels] + image)
        x = g.tensor("float32", shape, "fine")
        inputs = [x, g.tensor("float32", [channels], "fine"), g.tensor("float32", [channels], "fine")]
        if skips:
            inputs.append(g.tensor("float32", g.one_of([shape] + ([[batch, channels], [batch, 1, 1, channels]] if last else [])), "fine"))
            if g.chance(0.5) and last:
                inputs.append(g.tensor("float32", [channels], "fine"))
        attributes = {"channels_last": last} if not last or g.chance(0.5) else {}
        g.node(inputs, count=2 if skips else 1, domain=MS, groups=groups, activation=g.integer(0, 1), tolerance=(2e-3, 2e-3), **attributes,
               **g.maybe(0.5, epsilon=0.125))
    return build


def relative_bias(g):
    both = g.integer(0, 1)
    buckets, heads, length = 2 * g.integer(2 if both else 1, 8), g.integer(1, 3), g.integer(1, 6)
    size = lambda: g.given("int64", [1], [length], True)
    g.node([g.tensor("float32", [buckets, heads], "small"), size(), size()], domain=MS, max_distance=buckets + g.integer(1, 20),
           **({"is_bidirectional": both} if both or g.chance(0.5) else {}))


def gated_bias(g):
    batch, heads, length, width, units = g.integer(1, 2), g.integer(1, 2), g.integer(1, 4), g.integer(1, 4), 2 * g.integer(1, 4)
    hidden = heads * width
    fine = lambda *shape: g.tensor("float32", list(shape), "unit")
    g.node([fine(batch, length, hidden), fine(hidden), fine(1, heads, length, length), fine(width, units), fine(units), fine(1, heads, 1, 1)],
           domain=MS, num_heads=heads, tolerance=CLOSE)


def packed_rows(g):
    """Lengths of the sequences of a batch, as the positions of their tokens and their bounds."""
    batch, most = g.integer(1, 3), g.integer(1, 4)
    lengths = [most] + [g.integer(1, most) for _ in range(batch - 1)]
    kept = [b * most + i for b, length in enumerate(lengths) for i in range(length)]
    padding = [i for i in range(batch * most) if i not in kept]
    bounds = [sum(lengths[:b]) for b in range(batch + 1)]
    return sum(lengths), g.given("int32", [batch, most], kept + padding), g.given("int32", [batch + 1], bounds)


def packed_attention(g):
    rows, offsets, bounds = packed_rows(g)
    heads, width, inner = g.integer(1, 2), g.integer(1, 4), g.integer(1, 4)
    hidden = heads * width
    g.node([g.tensor("float32", [rows, inner], "fine"), g.tensor("float32", [inner, 3 * hidden], "fine"), g.tensor("float32", [3 * hidden], "fine"),
            offsets, bounds], domain=MS, num_heads=heads, tolerance=CLOSE, **g.maybe(0.4, scale=0.5))


def packed_multi_head(g):
    rows, offsets, bounds = packed_rows(g)
    heads, width = g.integer(1, 2), g.integer(1, 4)
    part = lambda: g.tensor("float32", [rows, heads * width], "fine")
    inputs = [g.tensor("float32", [rows, heads, 3, width], "fine"), "", ""] if g.chance(0.3) else [part(), part(), part()]
    inputs.append(g.tensor("float32", [3 * heads * width], "fine") if g.chance(0.4) else "")
    g.node(inputs + [offsets, bounds], domain=MS, num_heads=heads, tolerance=CLOSE, **g.maybe(0.4, scale=0.5))


def decoder_attention(g):
    """One new row behind a cache of them, or that attends to another sequence."""
    batch, heads, width = g.integer(1, 2), g.integer(1, 3), g.integer(1, 4)
    hidden = heads * width
    past = g.integer(1, 4)
    cached = lambda length: g.tensor("float32", [batch, heads, length, width], "fine")
    row = lambda: g.tensor("float32", [batch, 1, hidden], "fine")
    attributes = g.maybe(0.3, scale=0.5)
    if g.chance(0.3):
        mask = g.given("int32", [batch, past], [1 if i % past == 0 else g.integer(0, 1) for i in range(batch * past)]) if g.chance(0.3) else ""
        return g.node([row(), cached(past), cached(past), mask], domain=MS, num_heads=heads, tolerance=CLOSE, **attributes)
    total = past + 1
    inputs = [row(), row(), row()]
    inputs.append(g.given("int32", [batch, total], [1 if i % total == 0 else g.integer(0, 1) for i in range(batch * total)]) if g.chance(0.3) else "")
    inputs.append(g.tensor("float32", [1, heads, 1, total], "fine") if g.chance(0.3) else "")
    capacity = total + g.integer(0, 2)
    inputs += [cached(capacity), cached(capacity), g.given("int32", [1], [past], g.chance(0.5))]
    if g.chance(0.4):
        beams = batch
        indirection = [g.integer(0, beams - 1) if j < past else 0 for _ in range(beams) for j in range(capacity)]
        if g.chance(0.7):
            inputs += [g.given("int32", [1], [beams], True), g.given("int32", [1, beams, capacity], indirection)]
    if g.chance(0.4):
        inputs += [""] * (10 - len(inputs)) + [g.tensor("float32", [3 * hidden], "fine")]
    g.node(inputs, count=3, domain=MS, num_heads=heads, past_present_share_buffer=1, tolerance=CLOSE, **attributes)


def split_columns(x, widths):
    """The elements of the parts of each row."""
    total, starts = sum(widths), [sum(widths[:k]) for k in range(len(widths))]
    return [[x.data[row + start + c] for row in range(0, len(x.data), total) for c in range(width)] for start, width in zip(starts, widths)]


def turned(data, heads, width, steps, past, cosines, sines, is_interleaved):
    """Rows of heads behind a rotary embedding at their positions."""
    half, result = width // 2, list(data)
    for row in range(len(data) // (heads * width)):
        at = (past + row % steps) * half
        for h, c in product(range(heads), range(half)):
            first = (row * heads + h) * width + (2 * c if is_interleaved else c)
            second = first + (1 if is_interleaved else half)
            a, b = data[first], data[second]
            result[first] = a * cosines[at + c] - b * sines[at + c]
            result[second] = b * cosines[at + c] + a * sines[at + c]
    return result


def sparse_attention(g):
    block, layouts = 16, g.integer(1, 2)
    heads, groups, width, batch = layouts * g.integer(1, 2), g.integer(1, 2), 8, g.integer(1, 2)
    query_heads = heads * groups
    is_first = g.chance(0.5)
    past = 0 if is_first else g.integer(1, 40)
    steps = g.integer(1, 40) if is_first else 1
    total = past + steps
    blocks = -(-total // block) + g.integer(0, 1)
    capacity = blocks * block
    rows, columns = [], []
    for _ in range(layouts):
        begins, seen = [0], []
        for row in range(blocks):
            seen += sorted(set([row] + [column for column in range(row) if g.chance(0.5)]))
            begins.append(len(seen))
        rows.append(begins)
        columns.append(seen)
    most = max(len(seen) for seen in columns)
    lengths = [total] * batch if not is_first else [g.integer(1, total) for _ in range(batch - 1)] + [total]
    fine = lambda *shape: g.tensor("float32", list(shape), "unit")
    is_packed = g.chance(0.3)
    if is_packed:
        inputs = [fine(batch, steps, (query_heads + 2 * heads) * width), "", ""]
    else:
        inputs = [fine(batch, steps, query_heads * width), fine(batch, steps, heads * width), fine(batch, steps, heads * width)]
    caches = [fine(batch, heads, capacity, width), fine(batch, heads, capacity, width)]
    inputs += caches
    inputs += [g.given("int32", [layouts, blocks + 1], [item for begins in rows for item in begins], True),
               g.given("int32", [layouts, most], [item for seen in columns for item in seen + [-1] * (most - len(seen))], True),
               g.given("int32", [1], [total], True), g.given("int32", [batch], lengths)]
    attributes = {"num_heads": query_heads, "kv_num_heads": heads, "sparse_block_size": block} | g.maybe(0.3, scale=0.5)
    is_turned = g.chance(0.3)
    if is_turned:
        inputs += [fine(capacity, width // 2), fine(capacity, width // 2)]
        attributes |= {"do_rotary": 1} | g.maybe(0.5, rotary_interleaved=1)
    g.node(inputs, count=3, domain=MS, tolerance=CLOSE, **attributes)
    g.outputs = g.outputs[:1]  # what the caches hold behind their rows is not said
    widths = [query_heads * width, heads * width, heads * width]
    parts = split_columns(inputs[0], widths) if is_packed else [item.data for item in inputs[:3]]
    query, key, value = parts
    if is_turned:
        cosines, sines = (inputs[k].data for k in (9, 10))
        query, key = (turned(rows, count, width, steps, past, cosines, sines, attributes.get("rotary_interleaved"))
                      for rows, count in ((query, query_heads), (key, heads)))
    result = []
    for b in range(batch):
        for i in range(steps):
            for h in range(query_heads):
                at, shared = past + i, h // groups
                def row_of(new, cache, k):
                    if k >= past:
                        place = ((b * steps + k - past) * heads + shared) * width
                        return new[place:place + width]
                    place = ((b * heads + shared) * capacity + k) * width
                    return cache.data[place:place + width]
                layout, row = h % layouts, at // block
                allowed = columns[layout][rows[layout][row]:rows[layout][row + 1]]
                seen = [k for k in range(at + 1) if k // block in allowed]
                place = ((b * steps + i) * query_heads + h) * width
                scale = attributes.get("scale", 1 / sqrt(width))
                scores = [scale * sum(a * c for a, c in zip(query[place:place + width], row_of(key, caches[0], k))) for k in seen]
                weights = [exp(score - max(scores)) for score in scores]
                result += [sum(w * row_of(value, caches[1], k)[c] for w, k in zip(weights, seen)) / sum(weights) for c in range(width)]
    g.expect("float32", [batch, steps, query_heads * width], result)


def remove_padding(g):
    batch, most, width = g.integer(1, 3), g.integer(1, 5), g.integer(1, 4)
    counts = [g.integer(0, most) for _ in range(batch)]
    x = g.tensor("float32", [batch, most, width], "small")
    g.node([x, g.given("int32", [batch], counts)], count=4, domain=MS)
    kept = [b * most + i for b in range(batch) for i in range(counts[b])]
    g.expect("float32", [len(kept), width], [x.data[at * width + c] for at in kept for c in range(width)])
    g.expect("int32", [batch, most], kept + [at for at in range(batch * most) if at not in kept])
    g.expect("int32", [batch + 1], [sum(counts[:b]) for b in range(batch + 1)])
    g.expect("int32", [1], [max(counts)])


def restore_padding(g):
    batch, most, width = g.integer(1, 3), g.integer(1, 5), g.integer(1, 4)
    order = g.permutation(batch * most)
    count = g.integer(0, batch * most)
    x = g.tensor("float32", [count, width], "small")
    g.node([x, g.given("int32", [batch, most], order)], domain=MS)
    rows = {at: x.data[i * width:(i + 1) * width] for i, at in enumerate(order[:count])}
    g.expect("float32", [batch, most, width], [item for at in range(batch * most) for item in rows.get(at, [0.0] * width)])


def projected(x, weight, bias, count, inner, outer):
    return [[sum(x[r * inner + k] * weight[k * outer + c] for k in range(inner)) + bias[c] for c in range(outer)] for r in range(count)]


def longformer(g):
    batch, steps, heads, width, window = g.integer(1, 2), g.integer(1, 6), g.integer(1, 2), g.integer(1, 3), g.integer(1, 3)
    hidden = heads * width
    fine = lambda *shape: g.tensor("float32", list(shape), "unit")
    x, weight, bias = fine(batch, steps, hidden), fine(hidden, 3 * hidden), fine(3 * hidden)
    mask = g.given("float32", [batch, steps], [0.0 if i % steps == 0 else g.one_of([0.0, 0.0, -10000.0]) for i in range(batch * steps)])
    global_weight, global_bias = fine(hidden, 3 * hidden), fine(3 * hidden)
    flags = g.given("int32", [batch, steps], [g.one_of([0, 0, 1]) for _ in range(batch * steps)])
    g.node([x, weight, bias, mask, global_weight, global_bias, flags], domain=MS, num_heads=heads, window=window, tolerance=CLOSE)
    near = projected(x.data, weight.data, bias.data, batch * steps, hidden, 3 * hidden)
    whole = projected(x.data, global_weight.data, global_bias.data, batch * steps, hidden, 3 * hidden)
    result = []
    for row in range(batch * steps):
        first, is_global = row // steps * steps, flags.data[row]
        rows = whole if is_global else near
        seen = [at for at in range(first, first + steps) if is_global or flags.data[at] or abs(at - row) <= window]
        for h in range(heads):
            part = lambda at, k: rows[at][k * hidden + h * width:k * hidden + (h + 1) * width]
            scores = [sum(a * b for a, b in zip(part(row, 0), part(at, 1))) / sqrt(width) + mask.data[at] for at in seen]
            weights = [exp(score - max(scores)) for score in scores]
            result += [sum(w * part(at, 2)[c] for w, at in zip(weights, seen)) / sum(weights) for c in range(width)]
    g.expect("float32", [batch, steps, hidden], result)


def gated_add(g):
    shape = g.shape(1, 3)
    g.node([g.tensor("float32", shape, "small"), g.tensor("float32", shape, "small"), g.tensor("float32", shape[:-1] + [1], "small")], domain=MS)


def gemma_rotary(g):
    batch, heads, steps, width = g.integer(1, 2), g.integer(1, 3), g.integer(1, 4), g.integer(1, 4)
    part = lambda: g.tensor("float16", [batch, heads, steps, width], "small")
    g.node([g.tensor("float32", [batch, steps, width], "small"), part(), part(), part(), part()], count=2, domain=MS)


def dynamic_pads(g):
    kernel, strides, dilations, pads, attributes, mode = window(g, 2)
    attributes = {key: value for key, value in attributes.items() if key in ("kernel_shape", "strides")}
    shape = [g.integer(1, 2), g.integer(1, 3), g.integer(2, 5), g.integer(2, 5)]
    if any((shape[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + 2] < 1 for i in range(2)):
        raise Unfit
    g.node([g.tensor("float32", shape, "small"), g.tensor("float32", [shape[1], g.integer(1, 3)] + kernel, "small", True), g.ints(pads, constant=1)],
           domain=MS, tolerance=LOOSE["float32"], **attributes)


def embedding(g):
    shape = [g.integer(1, 5), g.integer(1, 4)]
    at = g.shape(0, 3)
    g.node([g.tensor("float32", shape), g.given("int64", at, [g.integer(0, shape[0] - 1) for _ in range(size_of(at))])], domain=MS)


def quantized_embedding(g):
    batch, steps, width, words, places = g.integer(1, 3), g.integer(1, 4), g.integer(2, 5), 6, 5
    table = lambda rows: g.tensor("uint8", [rows, width], "any", True)
    ids = lambda most: g.tensor("int32", [batch, steps], lambda: g.integer(0, most - 1))
    scale = lambda: g.given("float32", [], [g.integer(1, 4) / 32], True)
    point = lambda: g.given("uint8", [], [g.integer(0, 255)], True)
    segmented = g.chance(0.5)
    inputs = [ids(words), ids(2) if segmented else "", table(words), table(places), table(2) if segmented else "",
              g.tensor("uint8", [width], "any", True), g.tensor("uint8", [width], "any", True),
              g.tensor("int32", [batch, steps], lambda: g.integer(0, 1)) if g.chance(0.5) else ""]
    for make in (scale, point):
        inputs += [make(), make(), make() if segmented else "", make(), make()]
    g.node(inputs, count=2, domain=MS, tolerance=(5e-3, 5e-3), **g.maybe(0.5, epsilon=0.125))


def tokenizer(g):
    texts = ["a b", "ab,cd", "", "x", "Ünï code", "a  b", "日本 語", ",,a", "abcabc", " a"]
    shape = g.one_of([[g.integer(1, 4)], [g.integer(1, 3), g.integer(1, 3)]])
    words = g.given("string", shape, [g.one_of(texts) for _ in range(size_of(shape))])
    attributes = {"mark": g.integer(0, 1), "mincharnum": g.integer(1, 2), "pad_value": g.one_of(["#", "pad"])}
    attributes |= g.one_of([{"separators": g.one_of([[" "], [",", " "], [""], ["[ ,]+"], ["b"]])}, {"tokenexp": g.one_of(["[a-z]+", ".", "[a-c]", "[^ ]+"])}])
    if attributes.get("separators") == [""] or attributes.get("tokenexp") == ".":
        attributes["mincharnum"] = 1
    g.node([words], domain=MS, **attributes)


def unfold(g):
    shape = g.shape(1, 3, 0)
    axis = g.axis(len(shape))
    g.node([g.tensor(g.one_of(["float32", "int64", "bool"]), shape)], domain=MS, dim=axis, size=g.integer(1, shape[axis]), **g.maybe(0.6, step=g.integer(1, 3)))


def complex_product(g):
    shape = g.shape(1, 3, 0) + [2]
    g.node([g.tensor("float32", shape, "small"), g.tensor("float32", shape, "small")], domain=MS)


def fourier(inverse):
    def build(g):
        count = g.integer(1, 2)
        shape = g.shape(count, 3, 0)
        if inverse:
            return g.node([g.tensor("float32", shape[:-1] + [shape[-1] + 1, 2], "small")], domain=MS, signal_ndim=count, tolerance=CLOSE)
        g.node([g.tensor("float32", shape, "small")], domain=MS, signal_ndim=count, normalized=0, onesided=1, tolerance=CLOSE)
    return build


def grid_sample(g):
    shape = [g.integer(1, 2), g.integer(1, 3), g.integer(1, 5), g.integer(1, 5)]
    out = [shape[0], g.integer(1, 4), g.integer(1, 4), 2]
    g.node([g.tensor("float32", shape, "small"), g.tensor("float32", out, lambda: grid_coordinate(g))], domain=MS, tolerance=(1e-2, 1e-2),
           **g.maybe(0.7, mode=g.one_of(["bilinear", "nearest", "bicubic"]), padding_mode=g.one_of(["zeros", "border", "reflection"]),
                     align_corners=g.integer(0, 1)))


def nhwc_conv(g):
    kernel, strides, dilations, pads, attributes, mode = window(g, 2)
    inner, outer = g.integer(1, 3), g.integer(1, 3)
    inputs = [g.tensor("float32", [g.integer(1, 2)] + extents(g, kernel, [1, 1], pads) + [inner], "small"),
              g.tensor("float32", [outer, inner] + kernel, "small", True)]
    if g.chance(0.5):
        inputs.append(g.tensor("float32", [outer], "small", True))
    if "Fused" in g.op:
        attributes["activation"] = "Relu"
    g.node(inputs, domain=MS, tolerance=LOOSE["float32"], **attributes)


def is_all_finite(g):
    odd = lambda: g.one_of([1.0] * 8 + [float("nan"), float("inf")])
    g.node([g.tensor("float32", g.shape(), odd) for _ in range(g.integer(1, 3))], domain=MS, **g.maybe(0.3, isinf_only=1))


OPERATORS = {
    f"{MS}.{name}": ((17,), build) for name, build in {
        "BiasAdd": bias_add, "BiasDropout": bias_dropout, "BiasSoftmax": bias_softmax, "BiasSplitGelu": split_gelu,
        "GroupNorm": group_norm(False), "SkipGroupNorm": group_norm(True), "RelativePositionBias": relative_bias,
        "GatedRelativePositionBias": gated_bias, "PackedAttention": packed_attention,
        "PackedMultiHeadAttention": packed_multi_head, "DecoderMaskedMultiHeadAttention": decoder_attention,
        "SparseAttention": sparse_attention, "TorchEmbedding": embedding, "QEmbedLayerNormalization": quantized_embedding,
        "Tokenizer": tokenizer, "UnfoldTensor": unfold, "ComplexMul": complex_product, "ComplexMulConj": complex_product,
        "Rfft": fourier(False), "Irfft": fourier(True), "GridSample": grid_sample, "NhwcConv": nhwc_conv, "NhwcFusedConv": nhwc_conv,
        "IsAllFinite": is_all_finite, "RemovePadding": remove_padding, "RestorePadding": restore_padding,
        "LongformerAttention": longformer, "GatedAdd": gated_add, "GemmaRotaryEmbedding": gemma_rotary,
        "ConvTransposeWithDynamicPads": dynamic_pads}.items()}
