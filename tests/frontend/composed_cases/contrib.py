"""com.microsoft: activations, normalizations, products, images, quantized operators."""
import math

import numpy as np
from make_composed import Group

MS = "com.microsoft"
erf = np.vectorize(math.erf)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def f32(x):
    return np.asarray(x).astype(np.float32)


def layer_norm(x, gamma, beta=None, epsilon=1e-12):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    y = (x - mean) / np.sqrt(var + epsilon) * gamma
    return y if beta is None else y + beta


def rms_norm(x, gamma, epsilon=1e-12):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * gamma


def conv(x, w, bias=None, pads=0, stride=1):
    x = np.pad(x, [(0, 0), (0, 0), (pads, pads), (pads, pads)])
    kh, kw = w.shape[2:]
    h, wd = (x.shape[2] - kh) // stride + 1, (x.shape[3] - kw) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], h, wd), np.float64)
    for i in range(h):
        for j in range(wd):
            window = x[:, :, i * stride:i * stride + kh, j * stride:j * stride + kw]
            y[:, :, i, j] = np.tensordot(window, w, ([1, 2, 3], [1, 2, 3]))
    return y if bias is None else y + bias[None, :, None, None]


def nhwc(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def activations():
    g = Group("contrib_activations", 1, MS)
    f = g.floats
    x, b = f(2, 3, 4), f(4)
    d = {"a": "n 3 4", "x": "n 3 4"}
    g.case("Gelu", {"x": x}, [f32(gelu(x))], d)
    g.case("BiasGelu", {"a": x, "b": b}, [f32(gelu(x + b))], d)
    g.case("FastGelu", {"x": x}, [f32(gelu_tanh(x))], d)
    g.case("FastGelu", {"x": x, "b": b}, [f32(gelu_tanh(x + b))], d)
    g.case("QuickGelu", {"x": x}, [f32(x * sigmoid(1.702 * x))], d)
    g.case("QuickGelu", {"x": x}, [f32(x * sigmoid(0.5 * x))], d, alpha=0.5)
    s = x + b
    g.case("BiasSplitGelu", {"a": x, "b": b}, [f32(s[..., :2] * gelu(s[..., 2:]))], d)
    g.case("BiasAdd", {"a": x, "b": b, "c": x}, [f32(x + b + x)], dict(d, c="n 3 4"))
    e = np.exp(x + f(1, 3, 4) * 0)
    bias = f(1, 3, 4)
    e = np.exp(x + bias)
    g.case("BiasSoftmax", {"a": x, "b": bias}, [f32(e / e.sum(-1, keepdims=True))], d, axis=2, is_inner_broadcast=0)
    g.case("BiasSoftmax", {"a": x, "b": bias}, [f32(e / e.sum((1, 2), keepdims=True))], d, axis=1, is_inner_broadcast=0)
    g.case("BiasDropout", {"a": x, "b": b, "r": x}, [f32(x + b + x), np.ones((2, 3, 4), bool)], dict(d, r="n 3 4"))
    g.case("BiasDropout", {"a": x, "b": b}, [f32(x + b)], d)
    return g


def normalizations():
    g = Group("contrib_normalizations", 1, MS)
    f = g.floats
    x, skip, gamma, beta, bias = f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)
    d = {"x": "b s 8", "skip": "b s 8"}
    s = x + skip
    g.case("SkipLayerNormalization", {"x": x, "skip": skip, "gamma": gamma}, [f32(layer_norm(s, gamma))], d)
    g.case("SkipLayerNormalization", {"x": x, "skip": skip, "gamma": gamma, "beta": beta, "bias": bias},
           [f32(layer_norm(s + bias, gamma, beta, 1e-5)), None, None, f32(s + bias)], d, epsilon=1e-5)
    g.case("SkipLayerNormalization", {"x": x, "skip": skip, "gamma": gamma, "beta": None, "bias": bias},
           [f32(layer_norm(s + bias, gamma, None, 0.1))], d, epsilon=0.1)
    g.case("SkipLayerNormalization", {"x": x, "skip": skip[0], "gamma": gamma, "beta": beta},
           [f32(layer_norm(x + skip[0], gamma, beta))], {"x": "b s 8", "skip": "s 8"})
    g.case("SkipSimplifiedLayerNormalization", {"x": x, "skip": skip, "gamma": gamma}, [f32(rms_norm(s, gamma))], d)
    g.case("SkipSimplifiedLayerNormalization", {"x": x, "skip": skip, "gamma": gamma, "bias": bias},
           [f32(rms_norm(s + bias, gamma, 1e-5)), None, None, f32(s + bias)], d, epsilon=1e-5)
    g.case("SkipSimplifiedLayerNormalization", {"x": x[0], "skip": skip[0], "gamma": gamma}, [f32(rms_norm(s[0], gamma))], {"x": "t 8", "skip": "t 8"})
    ids, seg, mask = g.random.integers(0, 10, (2, 4)).astype(np.int32), g.random.integers(0, 2, (2, 4)).astype(np.int32), np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
    word, pos, segment = f(10, 8), f(6, 8), f(2, 8)
    e = word[ids] + pos[:4] + segment[seg]
    full = {"ids": ids, "seg": seg, "word": word, "pos": pos, "segment": segment, "gamma": gamma, "beta": beta, "mask": mask}
    de = {"ids": "b s", "seg": "b s", "mask": "b s"}
    g.case("EmbedLayerNormalization", full, [f32(layer_norm(e, gamma, beta)), np.array([3, 1], np.int32)], de)
    e = word[ids] + pos[:4]
    g.case("EmbedLayerNormalization", dict(full, seg=None, segment=None, mask=None, at=np.broadcast_to(np.arange(4, dtype=np.int32)[None], (1, 4)).copy()),
           [f32(layer_norm(e, gamma, beta, 1e-3)), np.zeros(2, np.int32), f32(e)], dict(de, at="1 s"), epsilon=1e-3)
    image, g4, b4 = f(2, 4, 3, 3), f(4), f(4)
    def group_norm(x, epsilon=1e-5):
        y = x.reshape(2, 2, -1)
        y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + epsilon)
        return y.reshape(x.shape) * g4[None, :, None, None] + b4[None, :, None, None]
    y = group_norm(image)
    g.case("GroupNorm", {"x": nhwc(image), "gamma": g4, "beta": b4}, [nhwc(f32(y))], {"x": "n h w 4"}, groups=2, activation=0)
    g.case("GroupNorm", {"x": image, "gamma": g4, "beta": b4}, [f32(y * sigmoid(y))], None, groups=2, activation=1, channels_last=0)
    skip, bias = f(2, 4), f(4)
    total = image + skip[:, :, None, None] + bias[None, :, None, None]
    g.case("SkipGroupNorm", {"x": nhwc(image), "gamma": g4, "beta": b4, "skip": skip, "bias": bias}, [nhwc(f32(group_norm(total))), nhwc(f32(total))], {"x": "n h w 4", "skip": "n 4"}, groups=2, activation=0)
    return g


def products():
    g = Group("contrib_products", 1, MS)
    f = g.floats
    a, b = f(2, 3, 4), f(2, 4, 5)
    da = {"a": "n m 4"}
    g.case("FusedMatMul", {"a": a, "b": b}, [f32(0.5 * (a @ b))], dict(da, b="n 4 k"), alpha=0.5)
    at, bt = np.swapaxes(a, 1, 2).copy(), np.swapaxes(b, 1, 2).copy()
    g.case("FusedMatMul", {"a": at, "b": bt}, [f32(a @ b)], {"a": "n 4 m", "b": "n k 4"}, transA=1, transB=1)
    g.case("FusedMatMul", {"a": np.moveaxis(a, 0, 1).copy(), "b": b}, [f32(a @ b)], {"a": "m n 4", "b": "n 4 k"}, transBatchA=1)
    g.case("FusedMatMul", {"a": a, "b": np.moveaxis(bt, 0, 1).copy()}, [f32(a @ b)], dict(da, b="k n 4"), transBatchB=1, transB=1)
    g.case("TransposeMatMul", {"a": a, "b": bt}, [f32(2 * (a @ b))], dict(da, b="n k 4"), transB=1, alpha=2.0)
    g.case("FusedMatMulActivation", {"a": a, "b": b}, [f32(np.maximum(a @ b, 0))], None, activation="Relu")
    x, w, c = f(3, 4), f(4, 5), f(5)
    g.case("FusedGemm", {"x": x, "w": w, "c": c}, [f32(np.maximum(x @ w + c, 0))], {"x": "n 4"}, activation="Relu")
    y = 0.5 * (x @ w) + 2 * c
    g.case("FusedGemm", {"x": x.T.copy(), "w": w.T.copy(), "c": c}, [f32(np.where(y > 0, y, 0.2 * y))], {"x": "4 n"}, activation="LeakyRelu", activation_alpha=0.2, alpha=0.5, beta=2.0, transA=1, transB=1)
    g.case("FusedGemm", {"x": x, "w": w}, [f32(np.tanh(x @ w))], None, activation="Tanh")
    g.case("GemmFastGelu", {"x": a, "w": w, "c": c}, [f32(gelu_tanh(a @ w + c))], {"x": "n m 4"})
    image, kernel, bias, z = f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), f(1, 3, 5, 5)
    y = conv(image, kernel, bias, 1)
    dc = {"x": "n 2 h w"}
    g.case("FusedConv", {"x": image, "w": kernel, "b": bias}, [f32(np.maximum(y, 0))], dc, activation="Relu", pads=[1, 1, 1, 1])
    g.case("FusedConv", {"x": image, "w": kernel, "b": bias, "z": z}, [f32(np.clip(y + z, -0.5, 1))], None, activation="Clip", activation_params=[-0.5, 1.0], pads=[1, 1, 1, 1])
    g.case("FusedConv", {"x": image, "w": kernel}, [f32(conv(image, kernel, None, 0, 2))], None, strides=[2, 2])
    g.case("FusedConv", {"x": image, "w": kernel, "b": bias}, [f32(np.clip(y * 0.3 + 0.4, 0, 1))], None, activation="HardSigmoid", activation_params=[0.3, 0.4], pads=[1, 1, 1, 1])
    g.case("NhwcConv", {"x": nhwc(image), "w": kernel, "b": bias}, [nhwc(f32(y))], {"x": "n h w 2"}, pads=[1, 1, 1, 1])
    g.case("NhwcFusedConv", {"x": nhwc(image), "w": kernel, "b": bias, "z": nhwc(z)}, [nhwc(f32(np.maximum(y + z, 0)))], None, pads=[1, 1, 1, 1], activation="Relu")
    small = g.random.integers(0, 255, (1, 4, 4, 2)).astype(np.uint8)
    g.case("NhwcMaxPool", {"x": small}, [small.reshape(1, 2, 2, 2, 2, 2).max((2, 4))], {"x": "n h w 2"}, kernel_shape=[2, 2], strides=[2, 2])
    g.case("NhwcMaxPool", {"x": small.astype(np.int8)}, [small.astype(np.int8).max((1, 2), keepdims=True)], None, kernel_shape=[4, 4])
    return g


def pack(numbers, bits):
    per = 8 // bits
    pad = -numbers.shape[-1] % per
    numbers = np.concatenate([numbers, np.zeros((*numbers.shape[:-1], pad), np.int64)], -1) if pad else numbers
    parts = numbers.reshape(*numbers.shape[:-1], -1, per)
    return sum(parts[..., i] << (bits * i) for i in range(per)).astype(np.uint8)


def nbits():
    g = Group("contrib_nbits", 1, MS)
    f = g.floats
    def case(n, k, block, bits, zeros=None, g_idx=False, bias=False, batch=(3,), flat=False):
        blocks = -(-k // block)
        q = g.random.integers(0, 1 << bits, (n, blocks, block))
        scale, x = f(n, blocks), f(*batch, k)
        zp = np.full((n, blocks), 1 << (bits - 1), np.float64)
        inputs = {"x": x, "b": pack(q, bits), "scale": scale.reshape(-1) if flat else scale}
        if zeros == "packed":
            zp = g.random.integers(0, 1 << bits, (n, blocks))
            inputs["zp"] = pack(zp, bits).reshape(-1) if flat else pack(zp, bits)
        elif zeros == "float":
            zp = f(n, blocks) + 8
            inputs["zp"] = zp
        else:
            inputs["zp"] = None
        group = np.arange(k) // block
        if g_idx:
            group = g.random.permutation(group)
            inputs["g_idx"] = group.astype(np.int32)
        w = (q.reshape(n, -1)[:, :k] - zp[:, group]) * scale[:, group]
        y = x @ w.T
        if bias:
            inputs.setdefault("g_idx", None)
            inputs["bias"] = f(n)
            y = y + inputs["bias"]
        while list(inputs.values())[-1] is None:
            inputs.popitem()
        const = ("b", "scale", "zp", "g_idx", "bias")
        g.case("MatMulNBits", inputs, [f32(y)], {"x": f"m {k}" if len(batch) == 1 else f"b m {k}"}, const, K=k, N=n, block_size=block, bits=bits)
    case(5, 32, 16, 4)
    case(5, 48, 16, 4, "packed")
    case(4, 40, 16, 4, "packed", bias=True, batch=(2, 3))
    case(4, 32, 16, 4, "float", bias=True)
    case(4, 32, 16, 4, "packed", g_idx=True)
    case(4, 32, 16, 4, g_idx=True)
    case(4, 32, 16, 4, "float", g_idx=True)
    case(4, 32, 16, 4, "packed", flat=True)
    case(5, 32, 16, 8)
    case(5, 40, 16, 8, "packed", bias=True)
    case(3, 64, 32, 2, "packed")
    for bits, zeros, block in ((4, True, 16), (4, False, 32), (8, True, 16), (8, False, 16)):
        q, scale = g.random.integers(0, 1 << bits, (6, 64)), f(6, 64 // block)
        zp = g.random.integers(0, 1 << bits, scale.shape) if zeros else np.full(scale.shape, 1 << (bits - 1))
        ids = np.array([[5, 0, 3], [2, 2, 1]], np.int64)
        inputs = {"data": pack(q, bits), "ids": ids, "scale": scale} | ({"zp": pack(zp, bits)} if zeros else {})
        y = (q - np.repeat(zp, block, 1)) * np.repeat(scale, block, 1)
        g.case("GatherBlockQuantized", inputs, [f32(y[ids])], {"ids": "b s"}, ("data", "scale", "zp"), bits=bits, block_size=block, gather_axis=0, quantize_axis=1)
    fp4 = np.array([0, 0.005208333333, 2 / 3, 1, 1 / 3, 0.5, 1 / 6, 0.25])
    fp4 = np.concatenate([fp4, -fp4])
    n, k, block = 4, 32, 16
    q, absmax, x = g.random.integers(0, 16, n * k), np.abs(f(n * k // block)), f(3, k)
    w = (fp4[q] * np.repeat(absmax, block)).reshape(n, k)
    g.case("MatMulBnb4", {"x": x, "b": (q[0::2] << 4 | q[1::2]).astype(np.uint8), "absmax": absmax}, [f32(x @ w.T)], {"x": "m 32"}, ("b", "absmax"), K=k, N=n, block_size=block, quant_type=0)
    return g


def dynamically_quantized(x):
    """What 8 bits keep of x: between its least and largest element, and 0."""
    top, bottom = np.float32(max(x.max(), 0)), np.float32(min(x.min(), 0))
    scale = (top - bottom) / np.float32(255) if top > bottom else np.float32(1)
    zero = np.clip(np.rint(-bottom / scale), 0, 255)
    return (np.clip(np.rint(x.astype(np.float32) / scale) + zero, 0, 255) - zero) * np.float64(scale)


def lstm(x, w, r, bias, reverse=False):
    """w [inputs, gates], r [hidden, gates], gates in the order i, o, f, c. The operands of products are quantized."""
    x = dynamically_quantized(x)
    hidden = r.shape[0]
    h, c, rows = np.zeros((x.shape[1], hidden)), np.zeros((x.shape[1], hidden)), []
    for row in x[::-1] if reverse else x:
        i, o, forget, cell = np.split(row @ w + dynamically_quantized(h) @ r + bias[:4 * hidden] + bias[4 * hidden:], 4, -1)
        c = sigmoid(forget) * c + sigmoid(i) * np.tanh(cell)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.stack(rows[::-1] if reverse else rows), h, c


def lstms():
    g = Group("contrib_lstm", 1, MS)
    f = g.floats
    for dtype, directions, per_gate in ((np.int8, 1, False), (np.uint8, 1, True), (np.int8, 2, True), (np.uint8, 2, False)):
        low, hidden, size, steps = np.iinfo(dtype).min, 3, 4, 5
        q = lambda *shape: (g.random.integers(0, 256, shape) + low).astype(dtype)
        count = (directions, 4 * hidden) if per_gate else (directions,)
        scale = lambda: np.abs(f(*count)).astype(np.float32) / 128
        x, w, r, b = f(steps, 2, size), q(directions, size, 4 * hidden), q(directions, hidden, 4 * hidden), f(directions, 8 * hidden)
        ws, rs, z = scale(), scale(), np.full(count, 128 + low, dtype)
        wide = lambda t: t[:, None] if per_gate else t[:, None, None]
        real_w, real_r = (w.astype(np.float64) - wide(z)) * wide(ws), (r.astype(np.float64) - wide(z)) * wide(rs)
        runs = [lstm(x.astype(np.float64), real_w[d], real_r[d], b[d], d == 1) for d in range(directions)]
        y = [f32(np.stack([run[0] for run in runs], 1)), f32(np.stack([run[1] for run in runs])), f32(np.stack([run[2] for run in runs]))]
        inputs = {"x": x, "w": w, "r": r, "b": b, "lens": None, "h": None, "c": None, "p": None, "ws": ws, "wz": z, "rs": rs, "rz": z}
        g.case("DynamicQuantizeLSTM", inputs, y, {"x": "t n 4"}, ("w", "r", "b", "ws", "wz", "rs", "rz"), hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward")
    return g


def quantize(x, scale, zero, dtype):
    info = np.iinfo(dtype)
    return np.clip(np.rint(np.asarray(x, np.float64) / scale) + zero, info.min, info.max).astype(dtype)


def quantized():
    g = Group("contrib_quantized", 1, MS)
    f, ints = g.floats, g.random.integers
    s = lambda x: np.array(x, np.float32)
    for dtype in (np.uint8, np.int8):
        low = np.iinfo(dtype).min
        q = lambda *shape: (ints(0, 256, shape) + low).astype(dtype)
        z = lambda x: np.array(x + low, dtype)
        real = lambda x, scale, zero: (x.astype(np.float64) - float(zero)) * float(scale)
        a, b = q(2, 3, 4), q(3, 4)
        xs = [s(0.0503), z(120), s(0.0297), z(90), s(0.1131), z(133)]
        d = {"a": "n 3 4"}
        ra, rb = real(a, xs[0], xs[1]), real(b, xs[2], xs[3])
        binary = {"a": a, "as": xs[0], "az": xs[1], "b": b, "bs": xs[2], "bz": xs[3], "cs": xs[4], "cz": xs[5]}
        g.case("QLinearAdd", binary, [quantize(ra + rb, float(xs[4]), int(xs[5]), dtype)], d)
        g.case("QLinearMul", binary, [quantize(ra * rb, float(xs[4]), int(xs[5]), dtype)], d)
        unary = {"a": a, "as": xs[0], "az": xs[1], "cs": s(0.004), "cz": z(0)}
        g.case("QLinearSigmoid", unary, [quantize(sigmoid(ra), float(s(0.004)), int(z(0)), dtype)], d)
        unary = {"a": a, "as": xs[0], "az": xs[1], "cs": xs[4], "cz": xs[5]}
        g.case("QLinearLeakyRelu", unary, [quantize(np.where(ra < 0, 0.3 * ra, ra), float(xs[4]), int(xs[5]), dtype)], d, alpha=0.3)
        image = q(1, 2, 4, 4)
        ri = real(image, xs[0], xs[1])
        unary = {"a": image, "as": xs[0], "az": xs[1], "cs": xs[4], "cz": xs[5]}
        y = ri.reshape(1, 2, 2, 2, 2, 2).mean((3, 5))
        qy = lambda y: quantize(y, float(xs[4]), int(xs[5]), dtype)
        g.case("QLinearAveragePool", unary, [qy(y)], {"a": "n 2 h w"}, kernel_shape=[2, 2], strides=[2, 2])
        g.case("QLinearAveragePool", dict(unary, a=nhwc(image)), [nhwc(qy(y))], None, kernel_shape=[2, 2], strides=[2, 2], channels_last=1)
        even = q(1, 2, 4, 4)  # of equal scales, so that many averages lie halfway; the odd zero point is added first
        sums = even.reshape(1, 2, 2, 2, 2, 2).astype(np.float64).sum((3, 5)) - 4.0 * int(z(120))
        halves = np.clip(np.rint(sums / 4 + int(z(133))), low, low + 255).astype(dtype)
        g.case("QLinearAveragePool", {"a": even, "as": s(0.5), "az": z(120), "cs": s(0.5), "cz": z(133)}, [halves], {"a": "n 2 h w"}, kernel_shape=[2, 2], strides=[2, 2])
        means = np.rint((even.astype(np.float64).sum((2, 3), keepdims=True) - 16.0 * int(z(120))) / 16) + int(z(133))
        g.case("QLinearGlobalAveragePool", {"a": even, "as": s(0.5), "az": z(120), "cs": s(0.5), "cz": z(133)}, [np.clip(means, low, low + 255).astype(dtype)], {"a": "n 2 h w"})
        g.case("QLinearGlobalAveragePool", unary, [qy(ri.mean((2, 3), keepdims=True))], {"a": "n 2 h w"})
        g.case("QLinearGlobalAveragePool", dict(unary, a=nhwc(image)), [nhwc(qy(ri.mean((2, 3), keepdims=True)))], None, channels_last=1)
        e = np.exp(ra - ra.max())
        soft = {"a": a, "as": xs[0], "az": xs[1], "cs": s(1 / 256), "cz": z(0)}
        g.case("QLinearSoftmax", soft, [quantize(np.exp(ra) / np.exp(ra).sum(-1, keepdims=True), 1 / 256, int(z(0)), dtype)], d, axis=-1, opset=13)
        g.case("QLinearSoftmax", soft, [quantize(e / e.sum((1, 2), keepdims=True), 1 / 256, int(z(0)), dtype)], d, axis=1, opset=12)
        g.case("QLinearReduceMean", {"a": a, "as": xs[0], "az": xs[1], "cs": xs[2], "cz": xs[3]}, [quantize(ra.mean(1), float(xs[2]), int(xs[3]), dtype)], d, axes=[-2], keepdims=0)
        flags = ints(0, 2, (2, 3, 4)).astype(bool)
        g.case("QLinearWhere", {"flags": flags, **binary}, [quantize(np.where(flags, ra, rb), float(xs[4]), int(xs[5]), dtype)], dict(d, flags="n 3 4"))
        c = q(2, 2, 4)
        g.case("QLinearConcat", {"ys": xs[4], "yz": xs[5], "a": a, "as": xs[0], "az": xs[1], "b": c, "bs": xs[2], "bz": xs[3]},
               [quantize(np.concatenate([ra, real(c, xs[2], xs[3])], 1), float(xs[4]), int(xs[5]), dtype)], {"a": "n 3 4", "b": "n 2 4"}, axis=1)
        w = q(3, 2, 3, 3)
        wz = z(128) if dtype == np.uint8 else np.array(0, dtype)
        acc = conv(image.astype(np.float64) - float(xs[1]), w.astype(np.float64) - float(wz))
        bias = ints(-500, 500, 3).astype(np.int32)
        y = quantize((acc + bias[None, :, None, None]) * 0.0503 * 0.01, 0.3, int(z(100)), dtype)
        g.case("QLinearConv", {"a": nhwc(image), "as": xs[0], "az": xs[1], "w": w, "ws": s(0.01), "wz": wz, "ys": s(0.3), "yz": z(100), "b": bias}, [nhwc(y)], {"a": "n h w 2"}, channels_last=1)
        m, k = q(3, 4), q(4, 5)
        acc = (m.astype(np.int64) - int(xs[1])) @ (k.astype(np.int64) - int(wz))
        cc = ints(-500, 500, (3, 5)).astype(np.int32)
        gemm = {"a": m, "as": xs[0], "az": xs[1], "b": k, "bs": s(0.01), "bz": wz}
        g.case("QGemm", {**gemm, "c": cc}, [f32((acc + cc) * 0.0503 * 0.01)], {"a": "n 4"})
        g.case("QGemm", {**gemm, "a": m.T.copy(), "c": None, "ys": s(0.02), "yz": z(50)}, [quantize(acc * 0.0503 * 0.01 * 0.5, 0.02, int(z(50)), dtype)], {"a": "4 n"}, alpha=0.5, transA=1)
        perc = np.array([0.01, 0.02, 0.03, 0.04, 0.05], np.float32)
        g.case("QGemm", {**gemm, "b": k.T.copy(), "bs": perc, "bz": np.full(5, wz, dtype), "c": cc[0]}, [f32((acc + cc[0]) * 0.0503 * perc)], {"a": "n 4"}, transB=1)
        x, fb = f(2, 3, 4), f(5)
        top, bottom = max(x.max(), 0), min(x.min(), 0)
        scale = np.float32((np.float64(top) - bottom) / 255)
        zero = np.clip(np.rint(-bottom / scale), 0, 255)
        xq = np.clip(np.rint(x / scale) + zero, 0, 255) - zero
        g.case("DynamicQuantizeMatMul", {"x": x, "b": k, "bs": s(0.01), "bz": wz, "bias": fb}, [f32(xq @ (k.astype(np.float64) - float(wz)) * scale * 0.01 + fb)], {"x": "n m 4"})
        g.case("DynamicQuantizeMatMul", {"x": x, "b": k, "bs": perc}, [f32(xq @ k.astype(np.float64) * scale * perc)], {"x": "n m 4"})
        g.case("MatMulIntegerToFloat", {"a": m, "b": k, "as": xs[0], "bs": s(0.01), "az": xs[1], "bz": wz, "bias": fb}, [f32(((m.astype(np.float64) - float(xs[1])) @ (k.astype(np.float64) - float(wz))) * 0.0503 * 0.01 + fb)], {"a": "n 4"})
        g.case("MatMulIntegerToFloat", {"a": m, "b": k, "as": xs[0], "bs": perc}, [f32((m.astype(np.float64) @ k.astype(np.float64)) * 0.0503 * perc)], {"a": "n 4"})
        g.case("MulInteger", {"a": a, "az": xs[1], "b": b, "bz": xs[3]}, [((a.astype(np.int32) - int(xs[1])) * (b.astype(np.int32) - int(xs[3]))).astype(np.int32)], d)
        out = np.uint32 if dtype == np.uint8 else np.int32
        g.case("ReduceSumInteger", {"a": a}, [a.astype(np.int64).sum(1).astype(out)], d, axes=[1], keepdims=0)
        g.case("QuantizeLinear", {"x": x, "s": xs[0], "z": xs[1]}, [quantize(x, float(xs[0]), int(xs[1]), dtype)], {"x": "n 3 4"})
        per = np.array([0.1, 0.2, 0.3], np.float32)
        zs = (np.array([100, 120, 128]) + low).astype(dtype)
        g.case("DequantizeLinear", {"a": a, "s": per, "z": zs}, [f32((a.astype(np.float64) - zs[None, :, None]) * per[None, :, None])], d, axis=1)
    return g


def tensors():
    g = Group("contrib_tensors", 1, MS)
    f = g.floats
    i64 = lambda *x: np.array(x, np.int64)
    g.case("Range", {"a": i64(1)[0], "b": i64(10)[0], "c": i64(3)[0]}, [i64(1, 4, 7)])
    g.case("Range", {"a": i64(2), "b": i64(5)}, [i64(2, 3, 4)])
    g.case("Range", {"a": np.float32(1), "b": np.float32(2), "c": np.float32(0.25)}, [np.arange(1, 2, 0.25, np.float32)])
    g.case("Range", {"a": i64(5)[0], "b": i64(1)[0], "c": i64(-2)[0]}, [i64(5, 3)], None, ("a", "b", "c"))
    x = f(3, 2)
    g.case("Pad", {"x": x, "p": i64(0, 2, 1, 0)}, [np.pad(x, [(0, 1), (2, 0)])], {"x": "n 2"}, ("p",))
    g.case("Pad", {"x": x, "p": i64(0, 2, 1, 0)[None], "v": np.array([1.5], np.float32)}, [np.pad(x, [(0, 1), (2, 0)], constant_values=1.5)], {"x": "n 2"}, ("p", "v"))
    g.case("Pad", {"x": x, "p": i64(1, 1, 1, 1)}, [np.pad(x, 1, mode="edge")], None, ("p",), mode="edge")
    g.case("Pad", {"x": x, "p": i64(1, 1, 1, 1)}, [np.pad(x, 1, mode="reflect")], None, ("p",), mode="reflect")
    g.case("ExpandDims", {"x": x, "axis": np.array([-1], np.int32)[0]}, [x[..., None]], {"x": "n 2"}, ("axis",))
    g.case("ExpandDims", {"x": x, "axis": np.array([0], np.int32)[0]}, [x[None]], {"x": "n 2"}, ("axis",))
    m = f(2, 4, 4)
    g.case("Trilu", {"x": m}, [np.triu(m)], {"x": "n 4 4"})
    g.case("Trilu", {"x": m, "k": i64(-1)[0]}, [np.tril(m, -1)], {"x": "n 4 4"}, ("k",), upper=0)
    g.case("GatherND", {"x": m, "i": i64(0, 1, 1, 3).reshape(2, 2)}, [np.stack([m[0, 1], m[1, 3]])], {"x": "n 4 4", "i": "k 2"})
    g.case("GatherND", {"x": m, "i": i64(1, 0).reshape(2, 1).astype(np.int32)}, [m[[1, 0]]], {"x": "n 4 4"})
    g.case("TorchEmbedding", {"w": x, "i": i64(2, 0, 1, 1).reshape(2, 2)}, [x[i64(2, 0, 1, 1).reshape(2, 2)]], {"i": "n m"})
    w = f(2, 7)
    windows = np.stack([w[:, i:i + 3] for i in range(0, 5, 2)], 1)
    g.case("UnfoldTensor", {"x": w}, [windows], {"x": "n t"}, size=3, step=2)
    g.case("UnfoldTensor", {"x": w.T.copy()}, [np.stack([w.T[i:i + 2].T for i in range(6)], 0)], {"x": "t n"}, dim=0, size=2)
    a, b = f(3, 4), f(5, 4)
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    g.case("CDist", {"a": a, "b": b}, [f32(d)], {"a": "m k", "b": "n k"}, metric="sqeuclidean")
    g.case("CDist", {"a": a, "b": b}, [f32(np.sqrt(d))], {"a": "m 4", "b": "n 4"}, metric="euclidean")
    bad = a.copy()
    bad[1, 2] = np.inf
    g.case("IsAllFinite", {"a": a, "b": b}, [np.array(True)], {"a": "m 4", "b": "n 4"})
    g.case("IsAllFinite", {"a": bad, "b": b}, [np.array(False)])
    g.case("IsAllFinite", {"a": bad}, [np.array(True)], None, isnan_only=1)
    g.case("IsAllFinite", {"a": bad}, [np.array(False)], {"a": "m 4"}, isinf_only=1)
    g.case("Inverse", {"x": m}, [f32(np.linalg.inv(m.astype(np.float64)))], {"x": "n 4 4"})
    p = np.array([[0, 2, 0], [0, 0, 4], [1, 0, 0]], np.float32)  # without a pivot at the first place
    g.case("Inverse", {"x": p}, [f32(np.linalg.inv(p))], {"x": "k k"})
    g.case("Inverse", {"x": f(2, 2, 1, 1) + 3}, [None])
    g.cases[-1] = (*g.cases[-1][:2], [f32(1 / g.cases[-1][1]["x"])], *g.cases[-1][3:])
    g.case("Inverse", {"x": m.astype(np.float64)}, [np.linalg.inv(m.astype(np.float64))])
    return g


def groups():
    return [activations(), normalizations(), products(), nbits(), quantized(), lstms(), tensors()]
