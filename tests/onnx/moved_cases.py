"""Cases that make_cases.py writes: operators that move elements or hold graphs, in the versions that only add types, and
those whose results are text or would be random."""
import re

import numpy as np


def add(m):
    i64 = lambda *values: np.array(values, np.int64)
    f32 = lambda *values: np.array(values, np.float32)
    for opset in (21, 23, 24, 25):
        moved(m, opset, i64)
        quantized(m, opset, i64, f32)
    for opset in (19, 21, 23, 24, 25):
        graphs(m, opset, i64)
    pads(m, i64)
    sequences(m)
    texts(m)
    optionals(m)
    certain(m, i64, f32)


class Source(str):
    """The value of an attribute, as the model's text has it."""


def moved(m, opset, i64):
    fives = Source("int64[1] {5}")
    nodes = [("Identity", {}, "x", 1, lambda x: x), ("Identity", {}, "k", 1, lambda k: k), ("Size", {}, "k", 1, lambda k: np.int64(k.size)),
             ("Squeeze", {}, "x ends", 1, lambda x, _: x[0, ..., 0]), ("Squeeze", {}, "k", 1, lambda k: k[:, 0]),
             ("Unsqueeze", {}, "x inner", 1, lambda x, _: x[:, :, None, :, None]), ("Unsqueeze", {}, "k ends", 1, lambda k, _: k[None, ..., None]),
             ("Transpose", {}, "x", 1, lambda x: x.transpose()), ("Transpose", {"perm": [1, 0]}, "k", 1, lambda k: k.T),
             ("Flatten", {}, "x", 1, lambda x: x.reshape(len(x), -1)), ("Flatten", {"axis": 0}, "k", 1, lambda k: k.reshape(1, -1)),
             ("Flatten", {"axis": 3}, "x", 1, lambda x: x.reshape(-1, x.shape[3])),
             ("Constant", {"value_int": 7}, "", 1, lambda: np.int64(7)), ("Constant", {"value_ints": [3, -4]}, "", 1, lambda: i64(3, -4)),
             ("Constant", {"value_float": 1.5}, "", 1, lambda: np.float32(1.5)),
             ("Constant", {"value": fives}, "", 1, lambda: i64(5)),
             ("ConstantOfShape", {"value": fives}, "size", 1, lambda s: np.full(s, 5)),
             ("ConstantOfShape", {}, "size", 1, lambda s: np.zeros(s, np.float32))]
    runs = [("some", [m.numbers(1, 2, 3, 1), m.integers(3, 1), i64(2, 3)]), ("other", [m.numbers(1, 3, 2, 1), m.integers(4, 1), i64(0, 2)])]
    m.case(f"moved_{opset}", opset, "Elements that keep their order, and constants.", "float[1,n,k2,1] x; int64[q,1] k; int64[2] size", runs, nodes,
           {"ends": i64(0, -1), "inner": i64(2, -2)})
    if opset == 21:
        m.case("constant_of_shape_20", 20, "Tensors of one number.", "int64[2] size", [(title, arrays[2:]) for title, arrays in runs],
               [node for node in nodes if node[0] == "ConstantOfShape"])


def pads(m, i64):
    padded = lambda x, before, after, **how: np.pad(x, list(zip(before, after)), **how)
    nodes = [("Pad", {}, "x ends", 1, lambda x, p: padded(x, p[:2], p[2:])),
             ("Pad", {}, "x ends value", 1, lambda x, p, v: padded(x, p[:2], p[2:], constant_values=v)),
             ("Pad", {"mode": "reflect"}, "x ends", 1, lambda x, p: padded(x, p[:2], p[2:], mode="reflect")),
             ("Pad", {"mode": "edge"}, "x last - axis", 1, lambda x, p, _, a: padded(x, [0, p[0]], [0, p[1]], mode="edge")),
             ("Pad", {"mode": "wrap"}, "x last - axis", 1, lambda x, p, _, a: padded(x, [0, p[0]], [0, p[1]], mode="wrap"))]
    for opset in (23, 24, 25):
        m.case(f"pad_{opset}", opset, "All modes, of all axes and of one.", "float[n,m] x; int64[4] ends; float value",
               [("some", [m.numbers(2, 3), i64(1, 0, 0, 2), np.float32(0.5)]), ("other", [m.numbers(3, 4), i64(0, 2, 1, 1), np.float32(-2)])],
               nodes, {"last": i64(2, 1), "axis": i64(-1)})


def quantized(m, opset, i64, f32):
    def spread(values, shape, axis, block):
        return values if values.ndim == 0 else np.repeat(values, block, axis) if block else np.expand_dims(values, tuple(
            d for d in range(len(shape)) if d != axis))

    def quantize(axis=1, block=0):
        def function(x, scale, point):
            s, z = (spread(v.astype(np.float64), x.shape, axis, block) for v in (scale, point))
            return np.clip(np.rint(x / s) + z, *((0, 255) if point.dtype == np.uint8 else (-128, 127))).astype(point.dtype)
        return function

    def dequantize(axis=1, block=0):
        def function(x, scale, point):
            s, z = (spread(v.astype(np.float64), x.shape, axis, block) for v in (scale, point))
            return ((x - z) * s).astype(np.float32)
        return function

    u8, i8 = (lambda *v: np.array(v, np.uint8)), (lambda *v: np.array(v, np.int8))
    constants = {"whole": np.float32(0.25), "zero": np.uint8(3), "signed": np.int8(-2), "parts": f32(0.5, 0.25, 2, 1), "points": u8(0, 7, 1, 250),
                 "blocks": f32([0.5, 0.25], [1, 2]), "centers": i8([1, -3], [0, 5])}
    forms = [("whole zero", {}, (1, 0), "u"), ("whole signed", {}, (1, 0), "i"), ("parts points", {"axis": -1}, (1, 0), "u"),
             ("blocks centers", {"axis": 1, "block_size": 2}, (1, 2), "i")]
    nodes = [("QuantizeLinear", attributes, f"x {names}", 1, quantize(*how)) for names, attributes, how, _ in forms]
    nodes += [("DequantizeLinear", attributes, f"{kind} {names}", 1, dequantize(*how)) for names, attributes, how, kind in forms]
    integers = lambda seed, low, high, dtype: m.integers(2, 4, seed=seed, low=low, high=high, dtype=dtype)
    m.case(f"quantize_{opset}", opset, "Scales of all, of columns and of blocks.", "float[2,4] x; uint8[2,4] u; int8[2,4] i",
           [(title, [m.numbers(2, 4, seed=title, low=-300, high=300), integers(title, 0, 256, np.uint8), integers(title, -128, 128, np.int8)])
            for title in ("some", "other")], nodes, constants)


def graphs(m, opset, i64):
    branches = {"then_branch": Source("first () => (float[a,b] u) { u = Add (x, x) }"),
                "else_branch": Source("second () => (float[c] u) { zero = Constant <value_int = 0> () u = Gather (x, zero) }")}
    turned = {"then_branch": branches["else_branch"], "else_branch": branches["then_branch"]}
    body = Source("step (int64 i, bool go, float[p,q] s) => (bool going, float[p,q] t, float[p,q] row) "
                  "{ going = Identity (go) t = Add (s, x) row = Mul (t, t) }")
    until = Source("step (int64 i, bool go, float[p,q] s) => (bool going, float[p,q] t) "
                   "{ t = Add (s, x) three = Constant <value_int = 3> () going = Less (i, three) }")
    scanned = Source("step (float[q] s, float[q] item) => (float[q] t, float[q] row) { t = Add (s, item) row = Mul (t, item) }")

    def scan(start, x):
        rows, total = [], start
        for item in x:
            total = total + item
            rows.append(total * item)
        return total, np.array(rows, np.float32).reshape(x.shape)

    def backwards(start, x):
        total, rows = scan(start, x[::-1])
        return total, rows[::-1]

    sums = lambda n, x: np.array([((k + 2) * x) ** 2 for k in range(int(n))], np.float32).reshape((int(n),) + x.shape)
    nodes = [("If", branches, "flag", 1, lambda flag, x=None: None), ("If", turned, "flag", 1, lambda flag, x=None: None),
             ("Loop", {"body": body}, "count - x", 2, lambda n, _, x: ((int(n) + 1) * x, sums(n, x))),
             ("Loop", {"body": until}, "many true x", 1, lambda _, __, x: 5 * x),
             ("Scan", {"num_scan_inputs": 1, "body": scanned}, "start x", 2, scan),
             ("Scan", {"num_scan_inputs": 1, "scan_input_directions": [1], "scan_output_directions": [1], "body": scanned}, "start x", 2, backwards)]
    runs = [("some", [m.numbers(3, 2), np.bool_(True), np.int64(3), m.numbers(2, seed="s")]),
            ("other", [m.numbers(1, 3), np.bool_(False), np.int64(0), m.numbers(3, seed="s")])]
    # A branch reads x, which is not an operand of the node.
    for k, chosen in enumerate((True, False)):
        nodes[k] = nodes[k][:2] + ("flag", 1, lambda flag, chosen=chosen: runs[0 if flag else 1][1][0] * 2 if bool(flag) == chosen
                                   else runs[0 if flag else 1][1][0][0])
    m.case(f"graphs_{opset}", opset, "Branches and loops, whose graphs read what is outside of them.",
           "float[n,m] x; bool flag; int64 count; float[m] start", runs, nodes, {"true": np.bool_(True), "many": np.int64(100)})


def sequences(m):
    """The first and the last item of a sequence, each in a branch."""
    first = Source("first () => (float[a,b] u) { one = Constant <value_int = 1> () zero = Constant <value_int = 0> () "
                   "parts = SplitToSequence <axis = 1> (x, one) u = SequenceAt (parts, zero) }")
    last = Source("last () => (float[c] u) { end = Constant <value_int = -1> () "
                  "parts = SplitToSequence <keepdims = 0> (x) u = SequenceAt (parts, end) }")
    x, y = m.numbers(3, 2), m.numbers(1, 3)
    chosen = lambda then: lambda flag: (x if flag else y)[:, :1] if bool(flag) == then else (x if flag else y)[-1]
    m.case("split_to_sequence_24", 24, "Parts of one column, and rows.", "float[n,m] x; bool flag",
           [("some", [x, np.bool_(True)]), ("other", [y, np.bool_(False)])],
           [("If", {"then_branch": first, "else_branch": last}, "flag", 1, chosen(True)),
            ("If", {"then_branch": last, "else_branch": first}, "flag", 1, chosen(False))])


def texts(m):
    words = np.array([["a.b", "", "c"], ["1.5", "20", "x..y"]], dtype=object)

    def split(x, delimiter=None, most=-1):
        parts = [word.split(delimiter, most) for word in x.ravel()]
        longest = max([len(part) for part in parts] + [0])
        padded = np.array([part + [""] * (longest - len(part)) for part in parts], dtype=object).reshape(x.shape + (longest,))
        return padded, np.array([len(part) for part in parts], np.int64).reshape(x.shape)

    match = lambda pattern: lambda x: np.array([re.fullmatch(pattern, word) is not None for word in x.ravel()]).reshape(x.shape)
    nodes = [("StringSplit", {"delimiter": "."}, "x", 2, lambda x: split(x, ".")),
             ("StringSplit", {"delimiter": ".", "maxsplit": 1}, "x", 2, lambda x: split(x, ".", 1)), ("StringSplit", {}, "x", 2, split)]
    nodes += [("RegexFullMatch", {"pattern": pattern}, "x", 1, match(pattern)) for pattern in ("[a-c.]*", "[0-9]+[.]?[0-9]*", ".?")]
    nodes += [("StringConcat", {}, operands, 1, lambda x, y: x + y) for operands in ("x x", "x y")]
    m.case("strings_20", 20, "Text that is split, matched and joined.", "string[n,3] x; string[3] y",
           [("some", [words, words[1]]), ("a row", [words[:1], words[0]])], nodes)


def optionals(m):
    x = m.numbers(2, 3)
    m.case("optionals_18", 18, "Tensors in the place of optionals.", "float[n,m] x; int64[k] y",
           [("some", [x, m.integers(3)]), ("other", [x[:1], m.integers(1)])],
           [("OptionalHasElement", {}, "x", 1, lambda x: np.bool_(True)), ("OptionalHasElement", {}, "", 1, lambda: np.bool_(False)),
            ("OptionalGetElement", {}, "x", 1, lambda x: x), ("OptionalGetElement", {}, "y", 1, lambda y: y)])
    softplus = lambda x: np.log1p(np.exp(x.astype(float)))
    m.case("mish_18", 18, "A smooth step.", "float[n,m] x; float16[k] y",
           [("some", [x, m.numbers(3).astype(np.float16)]), ("none", [x[:0], m.numbers(1).astype(np.float16)])],
           [("Mish", {}, name, 1, lambda x: (x * np.tanh(softplus(x))).astype(x.dtype)) for name in ("x", "y")])


def certain(m, i64, f32):
    """Random numbers of which nothing is left to chance, and what does nothing outside of training."""
    def loss(x, target, weight=None, reduction="mean", ignored=None):
        picked = -np.take_along_axis(x, np.maximum(target, 0)[:, None], 1)[:, 0].astype(float)
        w = np.ones(target.shape) if weight is None else weight.astype(float)[np.maximum(target, 0)]
        w = np.where(target == ignored, 0, w) if ignored is not None else w
        return np.float32({"none": lambda: picked * w, "sum": lambda: (picked * w).sum(), "mean": lambda: (picked * w).sum() / w.sum()}[reduction]())

    losses = [({}, "p t", {}), ({"reduction": "sum"}, "p t w", {"reduction": "sum"}), ({"reduction": "none", "ignore_index": 1}, "p t w",
              {"reduction": "none", "ignored": 1}), ({"reduction": "mean", "ignore_index": 0}, "p t w", {"ignored": 0})]
    nodes = [("NegativeLogLikelihoodLoss", attributes, used, 1, lambda *a, more=more: np.asarray(loss(*a, **more), np.float32))
             for attributes, used, more in losses]
    nodes += [("Dropout", {}, "p", 1, lambda p: p), ("Dropout", {}, "p half no", 2, lambda p, _, __: (p, np.ones(p.shape, bool))),
              ("Bernoulli", {}, "sure", 1, lambda s: s), ("Bernoulli", {"dtype": 6, "seed": 1.0}, "sure", 1, lambda s: s.astype(np.int32)),
              ("Multinomial", {"sample_size": 3}, "one", 1, lambda x: np.repeat(i64(1, 0)[:, None], 3, 1).astype(np.int32)),
              ("Multinomial", {"sample_size": 2, "dtype": 7}, "one", 1, lambda x: np.repeat(i64(1, 0)[:, None], 2, 1)),
              ("RandomNormal", {"mean": 2.5, "scale": 0.0, "shape": [2, 3]}, "", 1, lambda: np.full((2, 3), 2.5, np.float32)),
              ("RandomNormal", {"mean": -1.0, "scale": 0.0, "shape": [0, 2], "dtype": 11}, "", 1, lambda: np.zeros((0, 2))),
              ("RandomNormalLike", {"mean": 0.5, "scale": 0.0}, "p", 1, lambda p: np.full_like(p, 0.5)),
              ("RandomNormalLike", {"mean": 0.5, "scale": 0.0, "dtype": 11}, "t", 1, lambda t: np.full(t.shape, 0.5))]
    targets = np.array([2, 0, 1])
    m.case("certain_22", 22, "Losses, dropout outside of training, and random numbers that leave nothing to chance.",
           "float[n,3,d] p; int64[n,d] t; float[3] w", [("some", [m.numbers(3, 3, 2), np.stack([targets, targets[::-1]], 1), f32(1, 2, 0.5)]),
                                                         ("one", [m.numbers(1, 3, 1), i64([2]), f32(1, 2, 0.5)])], nodes,
           {"half": np.float32(0.5), "no": np.bool_(False), "sure": f32(0, 1, 1, 0), "one": f32([-1000, 0, -1000], [0, -1000, -1000])})
