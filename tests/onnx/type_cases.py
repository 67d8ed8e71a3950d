"""Cases that make_cases.py writes: operators that got element types in a newer version, in each of these."""
import math

import numpy as np

import formulas as f
import layers


def add(m):
    # Names of float types, and what rounds to them.
    types = {"bfloat16": m.bfloat16, "float16": lambda x: np.asarray(x).astype(np.float16),
             "double": lambda x: np.asarray(x).astype(np.float64), "float": lambda x: np.asarray(x).astype(np.float32)}
    for dtype, rounded in types.items():
        for group in functions, gates, windows, recurrent, flags, ranges:
            group(m, dtype, rounded)
    integers(m)
    real_results(m)
    open_dims(m)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def functions(m, dtype, rounded):
    exp, log1p = np.exp, np.log1p
    unary = [("Asin", np.arcsin, "unit"), ("Acos", np.arccos, "unit"), ("Atan", np.arctan, "x"), ("Asinh", np.arcsinh, "x"),
             ("Acosh", np.arccosh, "above"), ("Atanh", np.arctanh, "unit"), ("Sin", np.sin, "x"), ("Cos", np.cos, "x"),
             ("Tan", np.tan, "unit"), ("Sinh", np.sinh, "unit"), ("Cosh", np.cosh, "unit"), ("Round", np.rint, "x"),
             ("Softplus", lambda x: log1p(exp(x)), "x"), ("Softsign", lambda x: x / (1 + abs(x)), "x"),
             ("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "x"), ("Mish", lambda x: x * np.tanh(log1p(exp(x))), "x"),
             ("Elu", lambda x: np.where(x < 0, exp(x) - 1, x), "x"), ("HardSigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1), "x"),
             ("Selu", lambda x: 1.05070102214813232421875 * np.where(x > 0, x, 1.67326319217681884765625 * (exp(x) - 1)), "x"),
             ("ThresholdedRelu", lambda x: np.where(x > 1, x, 0), "x"),
             ("LpNormalization", lambda x: x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-30), "above"),
             ("Det", np.linalg.det, "square"), ("EyeLike", lambda x: np.eye(*x.shape), "x")]
    x, unit = rounded(m.numbers(3, 4, low=-20, high=21)), rounded(m.numbers(3, 4, seed="u", low=-7, high=8))
    above, square = rounded(1 + abs(m.numbers(3, 4, seed="a"))), rounded(m.numbers(2, 3, 3, seed="s", low=-16, high=17))
    nothing = rounded(np.zeros((0, 4)))
    runs = [("some", [x, unit, above, square]), ("one", [x[:1, :1], unit[:1, :1], above[:1, :1], square[:1, :1, :1]]),
            ("none", [nothing, nothing, nothing, rounded(np.zeros((0, 2, 2)))])]
    nodes = [(op, {}, name, 1, lambda x, fn=fn: rounded(fn(np.asarray(x).astype(np.float64)))) for op, fn, name in unary]
    nodes += [("EyeLike", {"k": 1}, "x", 1, lambda x: rounded(np.eye(*x.shape, k=1))),
              ("Elu", {"alpha": 0.5}, "x", 1, lambda x: rounded(np.where(x < 0, 0.5 * (exp(x.astype(float)) - 1), x))),
              ("LpNormalization", {"p": 1, "axis": 0}, "above", 1,
               lambda x: rounded(x.astype(float) / np.maximum(abs(x.astype(float)).sum(0, keepdims=True), 1e-30)))]
    m.case(f"functions_{dtype}_22", 22, f"Functions of {dtype}.",
           f"{dtype}[n,m] x; {dtype}[n,m] unit; {dtype}[n,m] above; {dtype}[s,k,k] square", runs, nodes)


def gates(m, dtype, rounded):
    x = rounded(m.numbers(3, 4, low=-20, high=21))
    gelus = [("Gelu", {}, "x", 1, lambda x: rounded(x.astype(float) / 2 * (1 + erf(x.astype(float) / math.sqrt(2))))),
             ("Gelu", {"approximate": "tanh"}, "x", 1, lambda x: rounded(x.astype(float) / 2 * (1 + np.tanh(
                 math.sqrt(2 / math.pi) * (x.astype(float) + 0.044715 * x.astype(float) ** 3))))),
             ("Swish", {}, "x", 1, lambda x: rounded(x.astype(float) * layers.sigmoid(x.astype(float)))),
             ("Swish", {"alpha": 2.0}, "x", 1, lambda x: rounded(x.astype(float) * layers.sigmoid(2 * x.astype(float))))]
    m.case(f"gates_{dtype}_24", 24, f"Gelu and Swish of {dtype}.", f"{dtype}[n,m] x", [("some", [x]), ("none", [x[:0]])], gelus)


def windows(m, dtype, rounded):
    x, w, b = rounded(m.numbers(1, 4, 5, 6)), rounded(m.numbers(4, 2, 3, 2, seed="w") / 4), rounded(m.numbers(4, seed="b"))
    s, k = rounded(m.numbers(4, seed="k")), rounded(m.numbers(4, 2, 2, 3, seed="t") / 4)
    wide = lambda a: np.asarray(a).astype(np.float64)
    largest = lambda x, **given: rounded(f.pool(wide(x), "max", **given))

    def normalized(x, s, b, epsilon=1e-5):
        x = wide(x)
        mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
        return rounded(wide(s)[:, None, None] * (x - mean) / np.sqrt(variance + epsilon) + wide(b)[:, None, None])

    nodes = [("Conv", {"group": 2}, "x w b", 1, lambda x, w, b: rounded(layers.conv(wide(x), wide(w), wide(b), group=2))),
             ("Conv", {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 2], "dilations": [1, 2]}, "x w", 1,
              lambda x, w: rounded(layers.conv(wide(x), wide(w), None, [2, 1], [1, 0, 1, 2], [1, 2], 2))),
             ("ConvTranspose", {"group": 2}, "x k b", 1, lambda x, k, b: rounded(layers.conv_transpose(wide(x), wide(k), wide(b), group=2))),
             ("ConvTranspose", {"group": 2, "strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 0]}, "x k", 1,
              lambda x, k: rounded(layers.conv_transpose(wide(x), wide(k), None, [2, 3], [1, 0, 0, 1], None, 2, [1, 0]))),
             ("MaxPool", {"kernel_shape": [2, 3]}, "x", 1, lambda x: largest(x, kernel=[2, 3])),
             ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "dilations": [1, 2]}, "x", 1,
              lambda x: largest(x, kernel=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], dilations=[1, 2])),
             ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, "x", 1,
              lambda x: largest(x, kernel=[3, 3], strides=[2, 2], ceil=True)),
             ("AveragePool", {"kernel_shape": [2, 3], "strides": [1, 2]}, "x", 1,
              lambda x: rounded(f.pool(wide(x), "average", kernel=[2, 3], strides=[1, 2]))),
             ("LpPool", {"kernel_shape": [2, 2], "p": 3}, "x", 1, lambda x: rounded(f.pool(wide(x), "lp", kernel=[2, 2], p=3))),
             ("GlobalAveragePool", {}, "x", 1, lambda x: rounded(wide(x).mean((2, 3), keepdims=True))),
             ("GlobalMaxPool", {}, "x", 1, lambda x: rounded(wide(x).max((2, 3), keepdims=True))),
             ("InstanceNormalization", {}, "x s b", 1, normalized),
             ("InstanceNormalization", {"epsilon": 0.5}, "x s b", 1, lambda x, s, b: normalized(x, s, b, 0.5))]
    m.case(f"windows_{dtype}_22", 22, f"Convolutions, pools and norms of images of {dtype}.",
           f"{dtype}[n,4,h,v] x; {dtype}[4,2,3,2] w; {dtype}[4,2,2,3] k; {dtype}[4] s; {dtype}[4] b",
           [("one image", [x, w, k, s, b]), ("two images", [rounded(m.numbers(2, 4, 4, 5, seed="v")), w, k, s, b])], nodes)


def recurrent(m, dtype, rounded):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}
    wide = lambda a: None if a is None else np.asarray(a).astype(np.float64)
    small = lambda *shape, seed: rounded(m.numbers(*shape, seed=seed) / 4)
    inputs, values, nodes = [f"{dtype}[t,n,3] x"], [rounded(m.numbers(4, 2, 3))], []
    h, c, p = small(2, 2, 2, seed="h"), small(2, 2, 2, seed="c"), small(2, 6, seed="p")
    inputs += [f"{dtype}[2,n,2] h", f"{dtype}[2,n,2] c", f"{dtype}[2,6] p"]
    values += [h, c, p]
    for kind, count in gates.items():
        rows = 2 * count
        name = kind[0].lower()
        inputs += [f"{dtype}[2,{rows},3] {name}w", f"{dtype}[2,{rows},2] {name}r", f"{dtype}[2,{2 * rows}] {name}b"]
        values += [small(2, rows, 3, seed=kind + "w"), small(2, rows, 2, seed=kind + "r"), small(2, 2 * rows, seed=kind + "b")]
        results = 3 if kind == "LSTM" else 2

        def layer(*operands, kind=kind, **attributes):
            return [rounded(y) for y in layers.recurrent(kind, *map(wide, operands), **attributes)]

        both = {"hidden_size": 2, "direction": "bidirectional"}
        nodes.append((kind, both, f"x {name}w {name}r {name}b", results,
                      lambda x, w, r, b, layer=layer: layer(x, w, r, b, direction="bidirectional")))
        if kind == "LSTM":
            nodes.append((kind, both, "x lw lr lb - h c p", results,
                          lambda x, w, r, b, _, h, c, p, layer=layer: layer(x, w, r, b, h, c, p, direction="bidirectional")))
        else:
            more = {"linear_before_reset": 1} if kind == "GRU" else {}
            nodes.append((kind, {**both, **more}, f"x {name}w {name}r {name}b - h", results,
                          lambda x, w, r, b, _, h, layer=layer, more=more: layer(x, w, r, b, h, direction="bidirectional", **more)))
    other = [rounded(m.numbers(1, 2, 3, seed="o"))] + values[1:]
    m.case(f"recurrent_{dtype}_22", 22, f"Recurrent layers of {dtype} in both directions.", "; ".join(inputs),
           [("four steps", values), ("one step", other)], nodes)


def integers(m):
    ints = {"int8": -20, "int16": -300, "int32": -70000, "int64": -1 << 40, "uint8": 0, "uint16": 0, "uint32": 0, "uint64": 0}
    for dtype, low in ints.items():
        kind = np.dtype(dtype)
        high = 200 if dtype == "uint8" else 20 if dtype == "int8" else 300
        draw = lambda *shape, seed: m.integers(*shape, seed=seed + dtype, low=low, high=high, dtype=kind)
        runs = [("some", [draw(2, 3, seed="a"), draw(2, 3, seed="b"), draw(3, seed="c")]),
                ("none", [draw(0, 3, seed="a"), draw(0, 3, seed="b"), draw(3, seed="c")])]
        nodes = []
        for op, function in (("BitwiseAnd", np.bitwise_and), ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor)):
            nodes += [(op, {}, "a b", 1, function), (op, {}, "a c", 1, function)]
        m.case(f"bitwise_{dtype}_18", 18, f"Bits of {dtype}, with operands that broadcast.", f"{dtype}[n,3] a; {dtype}[n,3] b; {dtype}[3] c", runs,
               nodes + [("BitwiseNot", {}, "a", 1, np.invert)])


def flags(m, dtype, rounded):
    x = rounded(np.array([[1, np.inf, -np.inf], [np.nan, 0, -3.5]]))
    both = lambda x, positive=1, negative=1: np.isinf(x) & (((x > 0) & bool(positive)) | ((x < 0) & bool(negative)))
    m.case(f"infinite_{dtype}_20", 20, f"Infinities and numbers that are none, of {dtype}.", f"{dtype}[n,m] x",
           [("some", [x]), ("none", [x[:0]])],
           [("IsNaN", {}, "x", 1, lambda x: np.isnan(np.asarray(x))), ("IsInf", {}, "x", 1, lambda x: both(np.asarray(x))),
            ("IsInf", {"detect_negative": 0}, "x", 1, lambda x: both(np.asarray(x), 1, 0)),
            ("IsInf", {"detect_positive": 0}, "x", 1, lambda x: both(np.asarray(x), 0, 1)),
            ("IsInf", {"detect_positive": 0, "detect_negative": 0}, "x", 1, lambda x: both(np.asarray(x), 0, 0))])


def ranges(m, dtype, rounded):
    scalar = lambda value: rounded(np.float64(value))
    counted = lambda a, b, d: rounded(float(a) + np.arange(max(math.ceil((float(b) - float(a)) / float(d)), 0)) * float(d))
    m.case(f"range_{dtype}_27", 27, f"Numbers of {dtype} at even distances.", f"{dtype} start; {dtype} limit; {dtype} delta",
           [("up", [scalar(1), scalar(5), scalar(2)]), ("down", [scalar(3), scalar(-1.5), scalar(-0.75)]),
            ("none", [scalar(2), scalar(1), scalar(0.5)])],
           [("Range", {}, "start limit delta", 1, counted), ("Range", {}, "limit start delta", 1, counted)])


def real_results(m):
    """Integers of which an operator computes a real number, whose fraction is lost."""
    whole = lambda y, x: np.trunc(y).astype(x.dtype)
    real = lambda x: x.astype(np.float64)
    for dtype in ("int32", "uint32", "int64", "uint64"):
        kind = np.dtype(dtype)
        x = m.integers(3, 4, seed=dtype, low=1, high=9, dtype=kind)
        axes = lambda a: {"axis": tuple(int(i) for i in a), "keepdims": True}
        m.case(f"real_results_{dtype}_18", 18, f"Roots and logarithms of {dtype}, rounded towards zero.", f"{dtype}[n,m] x; int64[1] axes",
               [("rows", [x, np.array([1])]), ("columns", [x[:, :1], np.array([0])])],
               [("ReduceL2", {}, "x axes", 1, lambda x, a: whole(np.sqrt((real(x) ** 2).sum(**axes(a))), x)),
                ("ReduceLogSum", {}, "x axes", 1, lambda x, a: whole(np.log(real(x).sum(**axes(a))), x)),
                ("ReduceLogSumExp", {}, "x axes", 1, lambda x, a: whole(np.log(np.exp(real(x)).sum(**axes(a))), x)),
                ("Erf", {}, "x", 1, lambda x: whole(erf(real(x)), x))])
    for dtype in ("uint8", "int32", "int64"):
        x = m.integers(1, 2, 4, 5, seed=dtype, low=0, high=200, dtype=np.dtype(dtype))
        grid = m.numbers(1, 3, 2, 2, seed="grid", low=-8, high=9)
        m.case(f"grid_sample_{dtype}_20", 20, f"Samples of {dtype}, rounded towards zero.", f"{dtype}[n,c,h,w] x; float[n,p,q,2] grid",
               [("some", [x, grid])],
               [("GridSample", {"mode": mode, "padding_mode": pads, "align_corners": corners}, "x grid", 1,
                 lambda x, g, mode=mode, pads=pads, corners=corners: whole(f.grid_sample(real(x), real(g), mode, pads, corners), x))
                for mode, pads, corners in (("nearest", "border", 1), ("nearest", "zeros", 0), ("linear", "border", 0), ("linear", "zeros", 1))])


def open_dims(m):
    """Dims that are constants in most models, and symbolic here."""
    x, w, r, b = m.numbers(3, 2, 3), m.numbers(1, 8, 3, seed="w") / 4, m.numbers(1, 8, 2, seed="r") / 4, m.numbers(1, 16, seed="b") / 4
    p = m.numbers(1, 6, seed="p") / 4
    m.case("recurrent_open_22", 22, "Weights of which only hidden_size says the dims.",
           "float[t,n,i] x; float[d,g,i] w; float[d,g,h] r; float[d,a] b; float[d,e] p", [("three steps", [x, w, r, b, p]), ("one step", [x[:1], w, r, b, p])],
           [("LSTM", {"hidden_size": 2}, "x w r", 3, lambda x, w, r: [y.astype(np.float32) for y in layers.recurrent("LSTM", x, w, r)]),
            ("LSTM", {"hidden_size": 2}, "x w r b - - - p", 3,
             lambda x, w, r, b, *rest: [y.astype(np.float32) for y in layers.recurrent("LSTM", x, w, r, b, None, None, rest[-1])])])
    signal = m.numbers(2, 6, 2)
    m.case("dft_open_20", 20, "Signals of which only the run knows whether they are complex.", "float[n,m,p] x; float[n,m,q] real",
           [("complex numbers", [signal, signal[:, :, :1]]), ("real numbers", [signal[:, :, :1], signal[:, :, 1:]])],
           [("DFT", {}, "x", 1, lambda x: f.dft(x, 1)), ("DFT", {"inverse": 1}, "x", 1, lambda x: f.dft(x, 1, None, True)),
            ("DFT", {"onesided": 1}, "real", 1, lambda x: f.dft(x, 1, None, False, True)),
            ("STFT", {"onesided": 1}, "real two - four", 1, lambda x, step, _, length: f.stft(x, int(step), None, int(length)))],
           {"two": np.int64(2), "four": np.int64(4)})
