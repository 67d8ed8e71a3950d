"""Operators of ai.onnx that the standard defines by a function: activations, normalizations, losses, Einsum."""
import math

import numpy as np
from make_composed import Group

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def f32(x):
    return np.asarray(x).astype(np.float32)


def activations():
    g = Group("functions_activations", 24)
    x = g.floats(2, 3, 4) * 3
    scalar, none, half = g.floats(), g.floats(0, 4), (g.floats(5) * 2).astype(np.float16)
    d = {3: "n 3 4", 0: "", 2: "n 4", 1: "n"}
    forms = [
        ("Swish", lambda x, alpha=1.0: x * sigmoid(alpha * x), [{}, {"alpha": 0.5}]),
        ("Mish", lambda x: x * np.tanh(np.log1p(np.exp(x))), [{}]),
        ("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), [{}]),
        ("Gelu", lambda x, approximate="none": 0.5 * x * (1 + (erf(x / math.sqrt(2)) if approximate == "none" else np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))),
         [{}, {"approximate": "tanh"}]),
        ("Celu", lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(0, alpha * (np.exp(x / alpha) - 1)), [{}, {"alpha": 2.0}]),
        ("Elu", lambda x, alpha=1.0: np.where(x < 0, alpha * (np.exp(x) - 1), x), [{}, {"alpha": 0.5}]),
        ("Selu", lambda x, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875: gamma * np.where(x > 0, x, alpha * np.exp(x) - alpha), [{}, {"alpha": 2.0, "gamma": 3.0}]),
        ("ThresholdedRelu", lambda x, alpha=1.0: np.where(x > alpha, x, 0), [{}, {"alpha": 2.0}]),
        ("Shrink", lambda x, lambd=0.5, bias=0.0: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)), [{}, {"lambd": 1.5, "bias": 1.0}]),
        ("Softsign", lambda x: x / (1 + np.abs(x)), [{}]),
        ("HardSigmoid", lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1), [{}, {"alpha": 0.5, "beta": 0.6}]),
    ]
    for op, formula, options in forms:
        for attributes in options:
            g.case(op, {"x": x}, [f32(formula(x.astype(np.float64), **attributes))], {"x": d[3]}, **attributes)
        for other in (scalar, none) + (() if op == "Celu" else (half,)):
            y = formula(other.astype(np.float64), **options[-1]) if other.size else other
            g.case(op, {"x": other}, [np.asarray(y).astype(other.dtype)], {"x": d[other.ndim]}, **options[-1])
    # Limits in the wrong order give the upper one.
    for low, high, const in ((-1.0, 1.0, ()), (1.0, -1.0, ("low", "high")), (2.0, 1.0, ()), (None, 0.5, ()), (-0.5, None, ("low",)), (None, None, ())):
        y = x if low is None else np.maximum(x, np.float32(low))
        y = y if high is None else np.minimum(y, np.float32(high))
        limits = {"low": None if low is None else np.array(low, np.float32), "high": None if high is None else np.array(high, np.float32)}
        inputs = {"x": x, **limits}
        while list(inputs.values())[-1] is None:
            inputs.popitem()
        g.case("Clip", inputs, [y], {"x": d[3]}, const)
    for dtype in (np.int8, np.uint8, np.int64, np.float64):
        v = np.array([1, 5, 100, 7], dtype)
        g.case("Clip", {"x": v, "low": np.array(3, dtype), "high": np.array(60, dtype)}, [np.clip(v, 3, 60).astype(dtype)], {"x": "n"})
    return g


def norm_group(opset):
    g = Group(f"functions_normalizations_{opset}", opset)
    f = g.floats
    x, image = f(2, 3, 4), f(2, 6, 3, 2)
    d = {"x": "n 3 4"}

    def layer(x, scale, bias=None, axis=-1, epsilon=1e-5):
        axes = tuple(range(axis % x.ndim, x.ndim))
        mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        y = (x - mean) / np.sqrt(var + epsilon) * scale
        return f32(y if bias is None else y + bias), f32(mean), f32(1 / np.sqrt(var + epsilon))

    s, b = f(4), f(4)
    g.case("LayerNormalization", {"x": x, "s": s, "b": b}, list(layer(x, s, b)), d)
    g.case("LayerNormalization", {"x": x, "s": s}, list(layer(x, s, None, -1, 0.1)), d, epsilon=0.1)
    s2, b2 = f(3, 4), f(3, 4)
    g.case("LayerNormalization", {"x": x, "s": s2, "b": b2}, list(layer(x, s2, b2, 1)), d, axis=1)
    y = list(layer(x, s2, b2, -2))
    g.case("LayerNormalization", {"x": x, "s": s2, "b": b2}, [y[0], None, y[2]], d, axis=-2)
    if opset >= 23:
        def rms(x, s, axis=-1, epsilon=1e-5):
            axes = tuple(range(axis % x.ndim, x.ndim))
            return f32(x / np.sqrt((x.astype(np.float64) ** 2).mean(axes, keepdims=True) + epsilon) * s)
        g.case("RMSNormalization", {"x": x, "s": s}, [rms(x, s)], d)
        g.case("RMSNormalization", {"x": x, "s": s2}, [rms(x, s2, 1, 0.01)], d, axis=1, epsilon=0.01)
        g.case("RMSNormalization", {"x": x, "s": f(1) * 0 + 2}, [rms(x, 2, 0)], d, axis=0)
        g.case("RMSNormalization", {"x": x, "s": s}, [rms(x, s, 2)], d, axis=2, stash_type=1)
    per = 6 if opset >= 21 else 2
    def group(groups, s, b, epsilon=1e-5):
        y = image.reshape(2, groups, -1)
        y = ((y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + epsilon)).reshape(image.shape)
        if opset < 21:
            s, b = np.repeat(s, 6 // groups), np.repeat(b, 6 // groups)
        return f32(y * s[:, None, None] + b[:, None, None])
    for groups, options in ((2, {}), (2, {"epsilon": 0.1}), (3, {}), (6, {}), (1, {})):
        s, b = f(6 if opset >= 21 else groups), f(6 if opset >= 21 else groups)
        g.case("GroupNormalization", {"x": image, "s": s, "b": b}, [group(groups, s, b, **options)], {"x": "n 6 h w"}, num_groups=groups, **options)
    for axes in (None, [0, 2, 3], [1, 2], [-1], [0, 1, 2, 3]):
        a = tuple(axes or [0, 2, 3])
        y = (image - image.mean(a, keepdims=True)) / (image.std(a, keepdims=True) + 1e-9)
        g.case("MeanVarianceNormalization", {"x": image}, [f32(y)], {"x": "n 6 h w"}, **({"axes": axes} if axes else {}))
    return g


def losses():
    g = Group("functions_losses", 13)
    f = g.floats
    for shape in ((3, 5), (3, 5, 2), (2, 4, 2, 3)):
        x, w = f(*shape), np.abs(f(shape[1]))
        target = g.random.integers(0, shape[1], (shape[0], *shape[2:])).astype(np.int64)
        names = ["n", str(shape[1])] + ["u", "v"][:len(shape) - 2]
        d = {"x": " ".join(names), "t": " ".join(names[:1] + names[2:])}
        log = x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))
        for reduction in ("mean", "sum", "none"):
            for weight, ignored in ((None, None), (w, None), (w, int(target.flat[0])), (None, -1)):
                t = target.copy()
                if ignored == -1:
                    t.flat[1] = -1
                seen = np.where(t == ignored, 0, t) if ignored is not None else t
                factor = np.ones(t.shape) if weight is None else weight[seen].astype(np.float64)
                factor = np.where(t == ignored, 0, factor) if ignored is not None else factor
                loss = -np.take_along_axis(log, seen[:, None], 1)[:, 0] * factor
                loss = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / factor.sum()}[reduction]
                inputs = {"x": x, "t": t} | ({} if weight is None else {"w": weight})
                options = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
                g.case("SoftmaxCrossEntropyLoss", inputs, [f32(loss), f32(log)], d, **options)
                if ignored != -1:
                    g.case("NegativeLogLikelihoodLoss", {**inputs, "x": f32(log)}, [f32(loss)], d, **options)
    return g


def einsums():
    g = Group("functions_einsum", 12)
    f = g.floats
    shapes = dict(i=2, j=3, k=4, b=2, h=2)
    for equation, dims in (("ij,jk->ik", None), ("ij,jk", None), (" i j , j k -> i k ", None), ("bij,bjk->bik", None), ("ij->ji", None), ("ij->", None), ("ij->i", None),
                           ("ii->i", "ii"), ("ii", "ii"), ("i,i->", None), ("i,j->ij", None), ("ij,ij->ij", None), ("bhik,bhjk->bhij", None), ("ji", None),
                           ("ij,jk,ki->", None), ("i,ij,j->", None), ("bii->bi", None), ("Aj,jk->Ak", None), (",i->i", None)):
        terms = equation.replace(" ", "").split("->")[0].split(",")
        values = [f(*[shapes.get(c, shapes["i"]) for c in term]) for term in terms]
        inputs = {chr(ord("a") + n): np.asarray(v) for n, v in enumerate(values)}
        g.case("Einsum", inputs, [f32(np.einsum(equation.replace(" ", ""), *[v.astype(np.float64) for v in values]))],
               {name: " ".join(c.lower() if c != "A" else "q" for c in term) for name, term in zip(inputs, terms)}, equation=equation)
    for equation, left, right in (("...ij,...jk->...ik", (2, 3, 2, 4), (2, 3, 4, 2)), ("...ij,jk->...ik", (2, 3, 4), (4, 2)), ("...i->...", (2, 3), None), ("i...->...i", (2, 3, 4), None),
                                  ("...ij,...jk", (1, 3, 2), (5, 2, 3))):
        values = [f(*left)] + ([] if right is None else [f(*right)])
        g.case("Einsum", {chr(ord("a") + n): v for n, v in enumerate(values)}, [f32(np.einsum(equation, *[v.astype(np.float64) for v in values]))], equation=equation)
    return g


def ranges():
    g = Group("functions_range", 11)
    for dtype in (np.float32, np.float64, np.int16, np.int32, np.int64):
        for start, limit, delta in ((1, 10, 3), (5, 1, -2), (3, 3, 1), (3, 1, 1)):
            s = lambda v: np.array(v, dtype)
            g.case("Range", {"a": s(start), "b": s(limit), "c": s(delta)}, [np.arange(start, limit, delta, dtype=dtype)])
    return g


def groups():
    return [activations(), norm_group(18), norm_group(23), losses(), einsums(), ranges()]
