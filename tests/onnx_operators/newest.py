"""Operators that are newer than ONNX Runtime, and some that only the first exporters wrote."""
from math import erf, exp, pi, sqrt, tanh
import struct

from draw import FLOATS, NUMBERS, Unfit, bits_of, size_of
import wire


def swiglu(g):
    dtype = g.one_of(FLOATS)
    shape = g.shape()
    gate, value = g.tensor(dtype, shape, "small"), g.tensor(dtype, shape, "small")
    attributes = g.maybe(0.5, alpha=g.integer(-8, 16) / 8)
    alpha = attributes.get("alpha", 1.0)
    g.node([gate, value], **attributes)
    g.expect(dtype, shape, [a / (1 + exp(-alpha * a)) * b for a, b in zip(gate.data, value.data)])


def geglu(g):
    dtype = g.one_of(FLOATS)
    shape = g.shape()
    gate, value = g.tensor(dtype, shape, "small"), g.tensor(dtype, shape, "small")
    attributes = g.maybe(0.5, approximate="tanh")
    g.node([gate, value], **attributes)
    by_tanh = lambda a: tanh(sqrt(2 / pi) * (a + 0.044715 * a ** 3))
    half = by_tanh if attributes else lambda a: erf(a / sqrt(2))
    g.expect(dtype, shape, [a / 2 * (1 + half(a)) * b for a, b in zip(gate.data, value.data)])


def bit_cast(g):
    source = g.one_of([name for name in NUMBERS])
    target = g.one_of([name for name in set(NUMBERS) if bits_of(name) == bits_of(source)])
    shape = g.shape()
    x = g.tensor(source, shape)
    data = struct.unpack(f"<{size_of(shape)}{wire.FORMATS[target]}", wire.pack(source, x.data))
    g.node([x], to=wire.ELEMENT_TYPES[target])
    g.expect(target, shape, data)


def causal_convolution(g):
    batch, channels, steps, taps, dilation = g.integer(1, 2), g.integer(1, 3), g.integer(1, 5), g.integer(1, 4), g.integer(1, 2)
    if g.op.startswith("com"):
        dilation = 1
    reach = (taps - 1) * dilation
    x = g.tensor("float32", [batch, channels, steps], "small")
    weight = g.tensor("float32", [channels, 1, taps], "small")
    bias = g.tensor("float32", [channels], "small") if g.chance(0.5) else None
    past = g.tensor("float32", [batch, channels, reach], "small") if g.chance(0.6) else None
    attributes = {"dilation": dilation} if dilation > 1 else {}
    activation = g.one_of([None, "silu", "none"])
    if activation:
        attributes["activation"] = activation
    domain = g.op.rpartition(".")[0]
    g.node([x, weight, bias or "", past or ""], count=2, domain=domain, tolerance=(1e-3, 1e-3), **attributes)
    results, states = [], []
    for b in range(batch):
        for c in range(channels):
            at = (b * channels + c)
            row = (past.data[at * reach:(at + 1) * reach] if past else [0.0] * reach) + x.data[at * steps:(at + 1) * steps]
            for t in range(steps):
                y = sum(row[t + k * dilation] * weight.data[c * taps + k] for k in range(taps)) + (bias.data[c] if bias else 0.0)
                results.append(y / (1 + exp(-y)) if activation == "silu" else y)
            states += row[len(row) - reach:]
    g.expect("float32", [batch, channels, steps], results)
    g.expect("float32", [batch, channels, reach], states)


def linear_attention(g):
    batch, heads, groups, steps, width, height = (g.integer(1, 2), g.integer(1, 2), g.integer(1, 2), g.integer(1, 4),
                                                  g.integer(1, 3), g.integer(1, 3))
    rule = g.one_of(["linear", "gated", "delta", "gated_delta"])
    query_heads = heads * groups
    part = lambda count, size: g.tensor("float32", [batch, steps, count * size], "unit")
    query, key, value = part(query_heads, width), part(heads, width), part(heads, height)
    past = g.tensor("float32", [batch, heads, width, height], "unit") if g.chance(0.5) else None
    per_key = g.chance(0.5)
    decay = part(heads, width if per_key else 1) if "gated" in rule else None
    beta = part(g.one_of([1, heads]), 1) if "delta" in rule else None
    attributes = {"q_num_heads": query_heads, "kv_num_heads": heads, "update_rule": rule} | g.maybe(0.4, scale=0.5)
    g.node([query, key, value, past or "", decay or "", beta or ""], count=2, domain=g.op.rpartition(".")[0], tolerance=(1e-3, 1e-3), **attributes)
    scale = attributes.get("scale", 1 / sqrt(width))
    out, states = [0.0] * (batch * steps * query_heads * height), []
    for b in range(batch):
        for h in range(heads):
            at = (b * heads + h) * width * height
            state = [[past.data[at + i * height + j] if past else 0.0 for j in range(height)] for i in range(width)]
            for t in range(steps):
                row = b * steps + t
                k = [key.data[(row * heads + h) * width + i] for i in range(width)]
                v = [value.data[(row * heads + h) * height + j] for j in range(height)]
                if decay:
                    rates = [decay.data[(row * heads + h) * width + i] if per_key else decay.data[row * heads + h] for i in range(width)]
                    state = [[exp(rate) * item for item in line] for rate, line in zip(rates, state)]
                if beta:
                    known = [sum(k[i] * state[i][j] for i in range(width)) for j in range(height)]
                    count = beta.shape[2]
                    factor = beta.data[row * count + (h if count > 1 else 0)]
                    v = [factor * (v[j] - known[j]) for j in range(height)]
                state = [[state[i][j] + k[i] * v[j] for j in range(height)] for i in range(width)]
                for group in range(groups):
                    head = h * groups + group
                    q = [query.data[(row * query_heads + head) * width + i] for i in range(width)]
                    for j in range(height):
                        out[(row * query_heads + head) * height + j] = scale * sum(q[i] * state[i][j] for i in range(width))
            states += [item for line in state for item in line]
    g.expect("float32", [batch, steps, query_heads * height], out)
    g.expect("float32", [batch, heads, width, height], states)


def affine(g):
    g.opset = 7
    g.node([g.tensor("float32", g.shape())], **g.maybe(0.6, alpha=1.5, beta=-0.5))


def crop(g):
    g.opset = 7
    border = [g.integer(0, 1) for _ in range(4)]
    size = [g.integer(1, 3), g.integer(1, 3)]
    shape = [g.integer(1, 2), g.integer(1, 3), border[1] + size[0] + border[3], border[0] + size[1] + border[2]]
    attributes = {"scale": size} if g.chance(0.4) else {}
    g.node([g.tensor("float32", shape)], border=border, **attributes)


def image_scaler(g):
    g.opset = 7
    shape = [g.integer(1, 2), g.integer(1, 3), g.dim(), g.dim()]
    g.node([g.tensor("float32", shape)], bias=[g.integer(-8, 8) / 8 for _ in range(shape[1])], **g.maybe(0.6, scale=1.5))


def rms(g):
    shape = g.shape(1, 4, 0)
    axis = g.axis(len(shape))
    dtype = g.one_of(["float32", "float64"])
    g.node([g.tensor(dtype, shape, "fine"), g.tensor(dtype, shape[axis % len(shape):], "fine")], domain=g.op.rpartition(".")[0],
           axis=axis, tolerance=(1e-3, 1e-4), **g.maybe(0.5, epsilon=0.125))


OPERATORS = {
    "SwiGLU": ((28,), swiglu), "GeGLU": ((28,), geglu), "BitCast": ((26,), bit_cast), "CausalConvWithState": ((27,), causal_convolution),
    "LinearAttention": ((27,), linear_attention), "com.microsoft.CausalConvWithState": ((17,), causal_convolution),
    "com.microsoft.LinearAttention": ((17,), linear_attention), "Affine": ((7,), affine), "Crop": ((7,), crop),
    "ImageScaler": ((7,), image_scaler), "SimplifiedLayerNormalization": ((17,), rms),
    "com.microsoft.SimplifiedLayerNormalization": ((17,), rms),
}
