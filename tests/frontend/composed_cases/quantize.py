"""Products and convolutions of ai.onnx on quantized numbers, and FlexAttention."""
import numpy as np
from attention import softmax
from contrib import conv, f32
from make_composed import Group
from onnx import TensorProto, helper


def quantize(x, scale, zero, dtype):
    info = np.iinfo(dtype)
    return np.clip(np.rint(np.asarray(x, np.float64) / scale) + zero, info.min, info.max).astype(dtype)


def products(opset):
    g = Group(f"quantized_products_{opset}", opset)
    s = lambda *x: np.array(x if len(x) > 1 else x[0], np.float32)

    def numbers(dtype, *shape):
        return (g.random.integers(0, 256, shape) + np.iinfo(dtype).min).astype(dtype)

    def zero(dtype, x):
        return (np.asarray(x) + np.iinfo(dtype).min).astype(dtype)

    def matmul(a, b, az, bz, dims=None):
        wide = lambda x, z: x.astype(np.int64) - (0 if z is None else z.astype(np.int64))
        column = az[:, None] if az is not None and az.ndim == 1 and a.ndim > 1 else az
        y = (wide(a, column) @ wide(b, bz)).astype(np.int32)
        inputs = {"a": a, "b": b, "az": az, "bz": bz}
        while list(inputs.values())[-1] is None:
            inputs.popitem()
        g.case("MatMulInteger", inputs, [y], dims)

    d = {"a": "m k", "b": "k n"}
    for ta, tb in ((np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8), (np.int8, np.uint8)):
        a, b = numbers(ta, 3, 4), numbers(tb, 4, 5)
        matmul(a, b, None, None, d)
        matmul(a, b, zero(ta, 100), zero(tb, 120), d)
        matmul(a, b, zero(ta, [100, 120, 130]), zero(tb, [1, 2, 100, 120, 130]), dict(d, az="m", bz="n"))
        matmul(numbers(ta, 2, 3, 4), numbers(tb, 2, 4, 5), zero(ta, [[[100], [120], [130]], [[90], [80], [70]]]), zero(tb, [[[1, 2, 3, 4, 5]], [[9, 8, 7, 6, 5]]]))
        matmul(numbers(ta, 2, 3, 4), b, None, zero(tb, 120), {"a": "l m k", "b": "k n"})

        def qlinear(a, sa, za, b, sb, zb, sy, zy, dims=None):
            column = lambda x: x[:, None] if x.ndim == 1 and x.size > 1 else x
            real = (a.astype(np.float64) - column(za)) * column(sa)
            y = quantize(real @ ((b.astype(np.float64) - zb) * sb), float(np.asarray(sy).reshape(-1)[0]), int(np.asarray(zy).reshape(-1)[0]), ta)
            g.case("QLinearMatMul", {"a": a, "sa": sa, "za": za, "b": b, "sb": sb, "zb": zb, "sy": sy, "zy": zy}, [y], dims)
        qlinear(a, s(0.0211), zero(ta, 113), b, s(0.0123), zero(tb, 114), s(0.0511), zero(ta, 118), d)
        qlinear(a, s([0.0211]), zero(ta, [113]), b, s([0.0123]), zero(tb, [114]), s([0.0511]), zero(ta, [118]), d)
        qlinear(a, s(0.0211, 0.0303, 0.0127), zero(ta, [113, 99, 130]), b, s(0.01, 0.02, 0.03, 0.04, 0.05), zero(tb, [1, 2, 3, 100, 120]), s(0.0511), zero(ta, 118), d)
        qlinear(numbers(ta, 2, 3, 4), s(0.0211), zero(ta, 113), numbers(tb, 2, 4, 5), s(0.0123), zero(tb, 114), s(0.0511), zero(ta, 118), {"a": "l m k", "b": "l k n"})

        x, w = numbers(ta, 1, 2, 4, 4), numbers(tb, 3, 2, 3, 3)
        xz, wz = zero(ta, 118), zero(tb, [100, 110, 128])
        acc = conv(x.astype(np.float64) - float(xz), w.astype(np.float64) - wz[:, None, None, None].astype(np.float64), None, 1)
        dc = {"x": "n 2 h w"}
        g.case("ConvInteger", {"x": x, "w": w, "xz": xz, "wz": wz}, [acc.astype(np.int32)], dc, pads=[1, 1, 1, 1])
        plain = conv(x.astype(np.float64), w.astype(np.float64))
        g.case("ConvInteger", {"x": x, "w": w}, [plain.astype(np.int32)], dc)
        bias, per = g.random.integers(-500, 500, 3).astype(np.int32), s(0.011, 0.012, 0.013)
        y = quantize((acc + bias[:, None, None]) * 0.0503 * per[:, None, None].astype(np.float64), 0.317, int(zero(ta, 100)), ta)
        g.case("QLinearConv", {"x": x, "xs": s(0.0503), "xz": xz, "w": w, "ws": per, "wz": wz, "ys": s(0.317), "yz": zero(ta, 100), "b": bias}, [y], dc, pads=[1, 1, 1, 1])
    if opset >= 21:
        half = lambda x: np.array(x, np.float16)
        a, b = numbers(np.uint8, 3, 4), numbers(np.int8, 4, 5)
        y = (a.astype(np.float64) - 120) * float(half(0.0211)) @ ((b.astype(np.float64) - 3) * float(half(0.0123)))
        g.case("QLinearMatMul", {"a": a, "sa": half(0.0211), "za": np.uint8(120), "b": b, "sb": half(0.0123), "zb": np.int8(3), "sy": half(0.0511), "zy": np.uint8(118)}, [quantize(y, float(half(0.0511)), 118, np.uint8)], d)
    return g


def flex():
    g = Group("flex_attention", 1, "ai.onnx.preview")
    f = g.floats

    def graph(name, op, value):
        real = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        constant = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.FLOAT, [], [value]))
        return helper.make_graph([constant, helper.make_node(op, ["x", "c"], ["y"])], name, [real("x")], [real("y")])

    def case(q, k, v, score=None, prob=None, dims=None, scale=None, **attrs):
        group = q.shape[1] // k.shape[1]
        s = q.astype(np.float64) @ np.repeat(k, group, 1).swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3]))
        if score:
            attrs["score_mod"], s = graph("score", "Mul", score), s * score
        p = softmax(s)
        if prob:
            attrs["prob_mod"], p = graph("prob", "Add", prob), p + prob
        if scale:
            attrs["scale"] = scale
        g.case("FlexAttention", {"q": q, "k": k, "v": v}, [f32(p @ np.repeat(v, group, 1))], dims, **attrs)

    d = {"q": "b 4 s 8", "k": "b 4 t 8", "v": "b 4 t 6"}
    case(f(2, 4, 3, 8), f(2, 4, 5, 8), f(2, 4, 5, 6), dims=d)
    case(f(2, 4, 3, 8), f(2, 4, 5, 8), f(2, 4, 5, 6), 0.5, dims=d)
    case(f(2, 4, 3, 8), f(2, 4, 5, 8), f(2, 4, 5, 6), None, 0.25, dims=d, scale=0.3)
    case(f(2, 4, 3, 8), f(2, 2, 5, 8), f(2, 2, 5, 6), 2.0, 0.5, dims=dict(d, k="b 2 t 8", v="b 2 t 6"))
    return g


def groups():
    return [products(10), products(21), flex()]
