"""Mixtures of experts, packed and cached attention, relative positions and Fourier transforms of com.microsoft."""
import numpy as np
from make_composed import Group

MS = "com.microsoft"


def f32(x):
    return np.asarray(x).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def erf(x):
    """By its integral, which is plain and exact enough."""
    t = np.linspace(0, 1, 4001)
    y = np.exp(-(np.asarray(x)[..., None] * t) ** 2) * np.asarray(x)[..., None]
    return 2 / np.sqrt(np.pi) * ((y[..., 1:] + y[..., :-1]).sum(-1) / 2 / 4000)


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x), "identity": lambda x: x,
               "gelu": lambda x: x / 2 * (1 + erf(x / np.sqrt(2)))}


def mixture(x, scores, w1, b1, w2, b2=None, w3=None, b3=None, weights=None, *, k=1, activation_type="relu", swiglu_fusion=0,
            activation_alpha=1.0, activation_beta=0.0, swiglu_limit=None, normalize_routing_weights=0):
    """One row and one expert at a time."""
    rows, y = x.reshape(-1, x.shape[-1]).astype(np.float64), np.zeros((x.size // x.shape[-1], x.shape[-1]))
    probabilities = softmax(scores.astype(np.float64)) if weights is None else weights
    for r, row in enumerate(rows):
        chosen = np.argsort(-scores[r])[:k]
        total = probabilities[r, chosen].sum() if normalize_routing_weights else 1
        for e in chosen:
            bias = lambda b: 0 if b is None else b[e]
            first = w1[e] @ row + bias(b1)
            third = None if w3 is None else w3[e] @ row + bias(b3)
            if activation_type == "swiglu":
                half = len(first) // 2
                gate, linear = {0: lambda: (first, third), 1: lambda: (first[0::2], first[1::2]),
                                2: lambda: (first[:half], first[half:])}[swiglu_fusion]()
                if swiglu_limit is not None:
                    gate, linear = np.minimum(gate, swiglu_limit), np.clip(linear, -swiglu_limit, swiglu_limit)
                hidden = gate * sigmoid(activation_alpha * gate) * (linear + activation_beta)
            else:
                hidden = ACTIVATIONS[activation_type](first) * (1 if third is None else third)
            y[r] += probabilities[r, e] / total * (w2[e] @ hidden + bias(b2))
    return f32(y.reshape(x.shape))


def experts():
    g = Group("contrib_experts", 1, MS)
    f = g.floats
    names = ["x", "scores", "w1", "b1", "w2", "b2", "w3", "b3"]

    def case(*inputs, dims=None, **attrs):
        given = dict(zip(names, inputs))
        g.case("MoE", given, [mixture(*inputs, **attrs)], dims, [n for n in names[2:] if given.get(n) is not None], **attrs)

    x, scores = f(5, 8), f(5, 4)
    w1, b1, w2, b2 = f(4, 6, 8), f(4, 6), f(4, 8, 6), f(4, 8)
    d = {"x": "n 8", "scores": "n 4"}
    case(x, scores, w1, b1, w2, b2, dims=d)
    case(x, scores, w1, None, w2, k=2, activation_type="gelu", normalize_routing_weights=1, dims=d)
    case(f(2, 3, 8), f(6, 4), w1, b1, w2, b2, f(4, 6, 8), k=3, activation_type="silu", dims={"x": "b s 8", "scores": "m 4"})
    case(x, scores, w1, b1, w2, b2, f(4, 6, 8), f(4, 6), k=2, activation_type="swiglu", activation_beta=1.0)
    case(x, scores, f(4, 12, 8), f(4, 12), w2, b2, k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702,
         activation_beta=1.0, swiglu_limit=0.5, normalize_routing_weights=1, dims=d)
    case(x, scores, f(4, 12, 8), f(4, 12), w2, b2, k=4, activation_type="swiglu", swiglu_fusion=2)
    turned = lambda w: w.transpose(0, 2, 1).copy()
    g.case("MoE", {"x": x, "scores": scores, "w1": turned(w1), "b1": b1, "w2": turned(w2), "b2": b2},
           [mixture(x, scores, w1, b1, w2, b2, k=2, activation_type="identity")], d, ("w1", "w2"), k=2, activation_type="identity")

    def packed(numbers, bits):
        per = 8 // bits
        pad = [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % per)]
        parts = np.pad(numbers, pad).reshape(*numbers.shape[:-1], -1, per)
        return (parts << (np.arange(per) * bits)).sum(-1).astype(np.uint8)

    def quantized(shape, bits, block=0, zeros=False):
        """Packed numbers, scales, packed zero points, and what they stand for."""
        numbers = g.random.integers(0, 1 << bits, shape)
        per = (*shape[:2], shape[2] // block) if block else shape[:2]
        scales = f32(g.random.random(per) / (1 << bits) + 0.01)
        points = g.random.integers(0, 1 << bits, per) if zeros else np.full(per, 1 << (bits - 1))
        wide = lambda v: np.repeat(v, block, 2) if block else v[..., None]
        return packed(numbers, bits), scales, packed(points, bits) if zeros else None, (numbers - wide(points)) * wide(scales)

    def quantized_case(bits, block, zeros, inter=16, fused=1, third=False, weights=None, **attrs):
        xq, sq = f(5, 32), f(5, 4)
        (q1, s1, z1, r1), (q2, s2, z2, r2) = quantized((4, inter * fused, 32), bits, block, zeros), quantized((4, 32, inter), bits, block, zeros)
        q3, s3, z3, r3 = quantized((4, inter, 32), bits, block, zeros) if third else (None,) * 4
        b1, b2 = f(4, inter * fused), f(4, 32)
        inputs = {"x": xq, "scores": sq, "w1": q1, "s1": s1, "b1": b1, "w2": q2, "s2": s2, "b2": b2, "w3": q3, "s3": s3,
                  "b3": None, "z1": z1, "z2": z2, "z3": z3, "weights": weights}
        const = [n for n, v in inputs.items() if v is not None and n[0] in "wszb" and n not in ("scores", "weights")]
        while list(inputs.values())[-1] is None:
            inputs.popitem()
        y = mixture(xq, sq, r1, b1, r2, b2, r3, None, weights, **attrs)
        if block:
            attrs["block_size"] = block
        g.case("QMoE", inputs, [y], {"x": "n 32", "scores": "n 4"}, const, expert_weight_bits=bits, **attrs)

    quantized_case(4, 0, False, k=2, activation_type="silu", normalize_routing_weights=1)
    quantized_case(4, 16, True, k=1, activation_type="swiglu", swiglu_fusion=1, fused=2, inter=32)
    quantized_case(8, 0, True, k=2, activation_type="relu", third=True)
    quantized_case(8, 16, False, k=2, activation_type="gelu", weights=np.abs(f(5, 4)))
    quantized_case(2, 16, False, k=3, activation_type="identity")
    return g


def attended(q, k, v, scale=None, bias=None):
    """Of heads [heads, length, size]; a bias is added to the scores."""
    s = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * (scale or 1 / np.sqrt(q.shape[-1]))
    return softmax(s + (0 if bias is None else bias)) @ v, s


def heads_of(x, n):
    return x.reshape(len(x), n, -1).transpose(1, 0, 2)


def decoding():
    g = Group("contrib_decoding", 1, MS)
    f, n = g.floats, 2
    i32 = lambda *values: np.array(values, np.int32)
    ends, offsets = i32(0, 1, 3, 7), i32(0, 4, 5, 8, 9, 10, 11, 1, 2, 3, 6, 7).reshape(3, 4)

    def packed(q, k, v, scale=None):
        y = np.zeros((len(q), v.shape[1]))
        for a, b in zip(ends[:-1], ends[1:]):
            rows, _ = attended(*[heads_of(x[a:b], n) for x in (q, k, v)], scale)
            y[a:b] = rows.transpose(1, 0, 2).reshape(b - a, -1)
        return f32(y)

    x, w, c = f(7, 6), f(6, 24), f(24)
    inputs = {"x": x, "w": w, "c": c, "offsets": offsets, "ends": ends}
    p, d = x.astype(np.float64) @ w + c, {"x": "n 6", "offsets": "b s", "ends": "e"}
    g.case("PackedAttention", inputs, [packed(p[:, :8], p[:, 8:16], p[:, 16:])], d, ("w", "c"), num_heads=n)
    g.case("PackedAttention", inputs, [packed(p[:, :6], p[:, 6:12], p[:, 12:], 0.3)], None, ("w", "c"), num_heads=n, scale=0.3, qkv_hidden_sizes=[6, 6, 12])
    q, k, v = f(7, 8), f(7, 8), f(7, 12)
    rest = {"offsets": offsets, "ends": ends}
    bias = f(28)
    dq = {"q": "n 8", "k": "n 8", "v": "n 12"}
    g.case("PackedMultiHeadAttention", {"q": q, "k": k, "v": v, "c": None, **rest}, [packed(q, k, v)], dq, num_heads=n)
    g.case("PackedMultiHeadAttention", {"q": q, "k": k, "v": v, "c": bias, **rest}, [packed(q + bias[:8], k + bias[8:16], v + bias[16:], 0.5)], dq, ("c",), num_heads=n, scale=0.5)
    all_three = np.stack([x.reshape(7, n, 4) for x in (q, k, f(7, 8))], 2)
    g.case("PackedMultiHeadAttention", {"q": all_three, "k": None, "v": None, "c": None, **rest},
           [packed(q, k, all_three[:, :, 2].reshape(7, 8))], {"q": "n 2 3 4"}, num_heads=n)

    def decoded(q, keys, values, mask=None, bias=None, scale=None):
        """Rows of one position each; keys and values are [batch, heads, length, size]."""
        y, scores = [], []
        for b in range(len(q)):
            hidden = 0 if mask is None else np.where(mask[b] > 0, 0, -10000.0)
            row, s = attended(heads_of(q[b], n), keys[b], values[b], scale, hidden + (0 if bias is None else bias[b % len(bias)]))
            y.append(row.transpose(1, 0, 2).reshape(1, -1))
            scores.append(s)
        return f32(np.stack(y)), f32(np.stack(scores))

    names = ["q", "k", "v", "mask", "bias", "pk", "pv", "length", "beams", "indirection", "c"]

    def case(*inputs, expected, dims=None, **attrs):
        given = dict(zip(names, inputs))
        g.case("DecoderMaskedMultiHeadAttention", given, expected, dims, num_heads=n, **attrs)

    q, k, v = f(4, 1, 8), f(4, 1, 8), f(4, 1, 8)
    rows = lambda x: x.reshape(4, 1, n, 4).transpose(0, 2, 1, 3)
    pk, pv, ck, cv = f(4, n, 5, 4), f(4, n, 5, 4), f(4, n, 6, 4), f(4, n, 6, 4)
    keys, values = np.concatenate([pk, rows(k)], 2), np.concatenate([pv, rows(v)], 2)
    dd = {"q": "b 1 8", "k": "b 1 8", "v": "b 1 8", "pk": "b h p 4", "pv": "b h p 4"}
    mask = i32(*([1] * 24)).reshape(4, 6)
    mask[1, :2] = 0
    case(q, k, v, None, None, pk, pv, expected=[decoded(q, keys, values)[0], keys, values], dims=dd)
    bias6 = f(1, n, 1, 6)
    case(q, k, v, mask, bias6, pk, pv, expected=[decoded(q, keys, values, mask, bias6, 0.4)[0], keys, values], dims=dict(dd, mask="b t"), scale=0.4)
    y, s = decoded(q, ck, cv)
    case(q, ck, cv, expected=[y, ck, cv, s], output_qk=1, dims={"q": "b 1 8", "k": "b h t 4", "v": "b h t 4"})
    full_k, full_v = f(4, n, 9, 4), f(4, n, 9, 4)
    new_k, new_v = full_k.copy(), full_v.copy()
    new_k[:, :, 5], new_v[:, :, 5] = rows(k)[:, :, 0], rows(v)[:, :, 0]
    shared = dict(past_present_share_buffer=1)
    case(q, k, v, None, None, full_k, full_v, i32(5), expected=[decoded(q, new_k[:, :, :6], new_v[:, :, :6])[0], new_k, new_v], **shared)
    came_from = g.random.integers(0, 2, (2, 2, 9)).astype(np.int32)
    came_from[:, :, 5] = [1, 0]  # the new rows stay where they are, whatever is said of them
    source = lambda b, j: b // 2 * 2 + came_from[b // 2, b % 2, j] if j < 5 else b
    pick = lambda x: np.stack([np.stack([x[source(b, j), :, j] for j in range(6)], 1) for b in range(4)])
    case(q, k, v, None, None, full_k, full_v, i32(5), i32(2), came_from, expected=[decoded(q, pick(new_k), pick(new_v))[0], new_k, new_v], **shared)
    # The same buffers, of MultiHeadAttention.
    shared_inputs = {"q": q, "k": k, "v": v, "c": None, "mask": None, "bias": None, "pk": full_k, "pv": full_v, "length": i32(5)}
    g.case("MultiHeadAttention", shared_inputs, [decoded(q, new_k[:, :, :6], new_v[:, :, :6])[0], new_k, new_v], {"q": "b s 8", "k": "b s 8", "v": "b s 8"}, num_heads=n)
    g.case("MultiHeadAttention", {**shared_inputs, "indirection": came_from}, [decoded(q, pick(new_k), pick(new_v))[0], new_k, new_v], None, num_heads=n, unidirectional=1)
    c, qkv = f(24), np.concatenate([q, k, v], 2)
    bk, bv = np.concatenate([pk, rows(k + c[8:16])], 2), np.concatenate([pv, rows(v + c[16:])], 2)
    case(qkv, None, None, None, None, pk, pv, None, None, None, c, expected=[decoded(q + c[:8], bk, bv)[0], bk, bv])
    return g


def positions():
    g = Group("contrib_positions", 1, MS)
    f = g.floats

    def t5(table, queries, keys, most, both):
        buckets, heads = table.shape
        values, y = table.reshape(heads, buckets), np.zeros((1, heads, queries, keys))
        for i in range(queries):
            for j in range(keys):
                count, bucket, distance = buckets, 0, j - i
                if both:
                    count //= 2
                    bucket, distance = (count if distance > 0 else 0), abs(distance)
                else:
                    distance = max(-distance, 0)
                near = count // 2
                if distance >= near:
                    far = np.log(np.float32(distance) / near) / np.log(most / near) * (count - near)
                    distance = min(near + int(far), count - 1)
                y[0, :, i, j] = values[:, bucket + distance]
        return f32(y)

    i64 = lambda value: np.array([value], np.int64)
    for buckets, most, both, queries, keys, const in ((32, 128, 1, 40, 40, ()), (32, 128, 0, 33, 50, ("n", "m")), (8, 20, 1, 1, 30, ("n", "m")), (6, 9, 0, 12, 12, ())):
        table = f(buckets, 3)
        g.case("RelativePositionBias", {"table": table, "n": i64(queries), "m": i64(keys)}, [t5(table, queries, keys, most, both)], None, const,
               is_bidirectional=both, max_distance=most)
    for batch, heads, length, size, width in ((2, 3, 4, 5, 8), (1, 1, 6, 2, 4)):
        q, qb, rel, w, wb, eco = f(batch, length, heads * size), f(heads * size), f(1, heads, length, length), f(size, width), f(width), f(1, heads, 1, 1)
        rows = (q + qb).reshape(batch, length, heads, size).transpose(0, 2, 1, 3)
        gates = sigmoid((rows @ w + wb).reshape(batch, heads, length, 2, width // 2).sum(-1))
        u, r = gates[..., :1], gates[..., 1:]
        g.case("GatedRelativePositionBias", {"q": q, "qb": qb, "rel": rel, "w": w, "wb": wb, "eco": eco}, [f32((u * (r * eco - 1) + 2) * rel)],
               {"q": f"b s {heads * size}", "rel": f"1 {heads} s s"}, ("w", "wb"), num_heads=heads)
    pairs = lambda z: f32(np.stack([z.real, z.imag], -1))
    for shape, count in (((2, 3, 8), 1), ((2, 6, 8), 2), ((4, 6), 2), ((10,), 1)):
        x = f(*shape)
        z = np.fft.rfftn(x.astype(np.float64), axes=range(len(shape) - count, len(shape)))
        d = {"x": "n m 8"} if len(shape) == 3 else None
        g.case("Rfft", {"x": x}, [pairs(z)], d, signal_ndim=count, normalized=0, onesided=1)
        g.case("Irfft", {"z": pairs(z)}, [x], {"z": "n m 5 2"} if d else None, signal_ndim=count, normalized=0, onesided=1)
    # Embeddings whose tables are numbers of 8 bits.
    def table(*shape):
        numbers, scale, zero = g.random.integers(0, 256, shape).astype(np.uint8), f32(g.random.random() / 50 + 0.01), np.uint8(g.random.integers(100, 150))
        return numbers, np.array(scale), np.array(zero), (numbers.astype(np.float64) - float(zero)) * float(scale)

    parts = [table(11, 6), table(5, 6), table(2, 6), table(6), table(6)]
    ids, segments, mask = g.random.integers(0, 11, (2, 4)).astype(np.int32), g.random.integers(0, 2, (2, 4)).astype(np.int32), np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
    for with_segments in True, False:
        names = ["word", "position", "segment", "gamma", "beta"]
        inputs = {"ids": ids, "segments": segments if with_segments else None}
        inputs |= {name: part[0] for name, part in zip(names, parts)} | {"mask": mask}
        inputs |= {name + "_scale": part[1] for name, part in zip(names, parts)} | {name + "_zero": part[2] for name, part in zip(names, parts)}
        total = parts[0][3][ids] + parts[1][3][:4] + (parts[2][3][segments] if with_segments else 0)
        if not with_segments:
            inputs.update({"segment": None, "segment_scale": None, "segment_zero": None})
        normal = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5)
        g.case("QEmbedLayerNormalization", inputs, [f32(normal * parts[3][3] + parts[4][3]), np.array([3, 1], np.int32)],
               {"ids": "b s", "mask": "b s"}, [k for k, v in inputs.items() if v is not None and k not in ("ids", "segments", "mask")], epsilon=1e-5)
    a, b = f(2, 3, 2), f(2, 3, 2)
    za, zb = a[..., 0] + 1j * a[..., 1], b[..., 0] + 1j * b[..., 1]
    g.case("ComplexMul", {"a": a, "b": b}, [pairs(za * zb)], {"a": "n 3 2", "b": "n 3 2"})
    g.case("ComplexMul", {"a": a, "b": b[0]}, [pairs(za * zb[0])], {"a": "n 3 2"})
    g.case("ComplexMulConj", {"a": a, "b": b}, [pairs(za * zb.conj())], {"a": "n 3 2", "b": "n 3 2"})
    g.case("ComplexMulConj", {"a": a[0, 0], "b": b}, [pairs(za[0, 0] * zb.conj())])
    return g


def groups():
    return [experts(), decoding(), positions()]
