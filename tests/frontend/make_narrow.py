#!/usr/bin/env python3
"""Writes narrow/: models over floats of 8 bits and packed elements, with inputs and what NumPy computes of them.

Run it with Debian's python3-onnx, which does not know these types: their numbers and their bytes are written here, and
the values of all codes follow from the formats' definitions. NAME.data has the names of the files of a test data folder
and what they hold, each with its length in four bytes before it.
"""
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

HERE = Path(__file__).parent
ENUM = {"float": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "half": 10, "double": 11, "e4m3fn": 17,
        "e4m3fnuz": 18, "e5m2": 19, "e5m2fnuz": 20, "uint4": 21, "int4": 22, "e2m1": 23, "e8m0": 24, "uint2": 25,
        "int2": 26}
NUMPY = {"float": np.float32, "half": np.float16, "double": np.float64, "bool": np.bool_, "uint8": np.uint8,
         "int8": np.int8, "int32": np.int32, "int64": np.int64}
BITS = {"uint4": 4, "int4": 4, "e2m1": 4, "uint2": 2, "int2": 2}
FLOAT8 = ["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"]
rng = np.random.default_rng(7)
np.seterr(all="ignore")


def table(exponent_bits, mantissa_bits, bias, nan_codes, infinities=(), signed=True):
    """The values of all codes."""
    values = []
    for code in range(1 << (exponent_bits + mantissa_bits + signed)):
        exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
        fraction = (code & ((1 << mantissa_bits) - 1)) / 2**mantissa_bits
        is_normal = exponent > 0 or mantissa_bits == 0
        value = (1 + fraction) * 2.0 ** (exponent - bias) if is_normal else fraction * 2.0 ** (1 - bias)
        value = np.inf if code & 127 in infinities else np.nan if code in nan_codes else value
        values.append(-value if signed and code >> (exponent_bits + mantissa_bits) else value)
    return np.array(values)


VALUES = {
    "e4m3fn": table(4, 3, 7, {0x7F, 0xFF}),
    "e4m3fnuz": table(4, 3, 8, {0x80}),
    "e5m2": table(5, 2, 15, {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}, {0x7C}),
    "e5m2fnuz": table(5, 2, 16, {0x80}),
    "e2m1": table(2, 1, 1, {}),
    "e8m0": table(8, 0, 127, {0xFF}, signed=False),
}
# What is too large without saturation, and NaN; the sign bit is added to codes below 0x80. Without a NaN it is -0.
BEYOND = {"e4m3fn": (0x7F, 0x7F), "e4m3fnuz": (0x80, 0x80), "e5m2": (0x7C, 0x7E), "e5m2fnuz": (0x80, 0x80)}


def nearest(x, dtype, saturate=True):
    """The codes of the numbers nearest to x, the even code of two."""
    values = VALUES[dtype]
    codes = np.array([c for c in range(len(values) // 2) if np.isfinite(values[c])])
    x = np.asarray(x, np.float64)
    magnitude, finite = np.abs(np.nan_to_num(x, nan=0)), values[codes]
    beyond = 2 * finite[-1] - finite[-2]  # the number that would be next
    i = np.clip(np.searchsorted(finite, magnitude), 1, len(finite) - 1)
    below, above = magnitude - finite[i - 1], finite[i] - magnitude
    i = np.where((below < above) | ((below == above) & (codes[i - 1] % 2 == 0)), i - 1, i)
    code, sign = codes[i], 8 if dtype == "e2m1" else 128
    last_is_odd = codes[-1] % 2 == 1
    is_beyond = (magnitude > (finite[-1] + beyond) / 2) | (last_is_odd & (magnitude == (finite[-1] + beyond) / 2))
    if dtype != "e2m1":
        code = np.where(is_beyond & (not saturate), BEYOND[dtype][0], code)
    has_negative_zero = not dtype.endswith("uz")
    code = np.where(np.signbit(x) & ((code > 0) | has_negative_zero), code | sign, code)
    return np.where(np.isnan(x), 8 if dtype == "e2m1" else BEYOND[dtype][1], code)


def power_of_two(x, mode, saturate):
    """The codes of e8m0, of float32 numbers >= 0."""
    codes = []
    for value in x.ravel():
        mantissa, exponent = np.frexp(np.float64(value))
        up = {"up": mantissa > 0.5, "down": False, "nearest": mantissa >= 0.75}[mode]
        code = 255 if not np.isfinite(value) else 0 if value <= 2.0**-127 else max(exponent - 1 + up + 127, 0)
        codes.append(min(code, 254) if saturate and np.isfinite(value) else code)
    return np.array(codes).reshape(x.shape)


class Values:
    """A tensor: numbers, or the codes of a narrow float."""

    def __init__(self, dtype, numbers):
        self.dtype, self.numbers = dtype, np.asarray(numbers)

    def real(self):
        return VALUES[self.dtype][self.numbers] if self.dtype in VALUES else self.numbers.astype(np.float64)

    def raw(self):
        if self.dtype in NUMPY:
            return self.numbers.astype(NUMPY[self.dtype]).tobytes()
        bits = BITS.get(self.dtype, 8)
        codes = self.numbers.ravel().astype(np.int64) & ((1 << bits) - 1)
        codes = np.concatenate([codes, np.zeros(-len(codes) % (8 // bits), np.int64)]).reshape(-1, 8 // bits)
        return (codes << (np.arange(8 // bits) * bits)).sum(1).astype(np.uint8).tobytes()

    def proto(self, name, typed=False):
        proto = TensorProto(name=name, data_type=ENUM[self.dtype], dims=self.numbers.shape)
        if typed:
            proto.int32_data.extend(self.raw())
        else:
            proto.raw_data = self.raw()
        return proto


def limits(dtype):
    bits = BITS.get(dtype, 8)
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def cast(x, dtype, saturate=True):
    real = x.real()
    if dtype in VALUES:
        return Values(dtype, nearest(real, dtype, saturate))
    if dtype not in BITS:
        return Values(dtype, real.astype(NUMPY[dtype]))
    low, high = limits(dtype)
    return Values(dtype, (real.astype(np.int64) - low) % (high - low + 1) + low)  # the low bits


def some(dtype, shape):
    if dtype in VALUES:
        return Values(dtype, rng.integers(0, len(VALUES[dtype]), shape))
    low, high = limits(dtype)
    return Values(dtype, rng.integers(low, high + 1, shape))


class Model:
    """Collects nodes whose results are all outputs."""

    def __init__(self, name, opset):
        self.name, self.opset, self.nodes, self.outputs, self.constants, self.inputs = name, opset, [], {}, [], {}

    def input(self, name, values):
        self.inputs[name] = values
        return name

    def constant(self, values, typed=False):
        self.constants.append(values.proto(f"c{len(self.constants)}", typed))
        return self.constants[-1].name

    def node(self, op, inputs, expected, **attributes):
        name = f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.outputs[name] = expected
        return name

    def write(self):
        (HERE / "narrow").mkdir(exist_ok=True)
        info = lambda items: [helper.make_tensor_value_info(n, ENUM[v.dtype], v.numbers.shape) for n, v in items]
        graph = helper.make_graph(self.nodes, self.name, info(self.inputs.items()), info(self.outputs.items()),
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        (HERE / "narrow" / f"{self.name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
        items = []
        for kind, values in (("input", self.inputs), ("output", self.outputs)):
            for i, (name, value) in enumerate(values.items()):
                items += [f"{kind}_{i}.pb".encode(), value.proto(name).SerializeToString(deterministic=True)]
        data = b"".join(len(item).to_bytes(4, "little") + item for item in items)
        (HERE / "narrow" / f"{self.name}.data").write_bytes(data)


def casts(opset):
    special = [0.47892547, 0.48033667, 0.49968487, 0.81910545, 1e6, 1e-7, np.nan, np.inf, -np.inf, -1e-7, -1e6, 0.0, -0.0]
    bits = rng.integers(0, 1 << 32, 200, dtype=np.uint64).astype(np.uint32)
    bits[::2] = (bits[::2] & 0x81FFFFFF) | 0x3E000000
    model = Model(f"cast_{opset}", opset)
    for dtype in FLOAT8 + (["e2m1"] if opset >= 23 else []):
        finite = np.sort(VALUES[dtype][np.isfinite(VALUES[dtype])])
        halves = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
        x = np.concatenate([special, bits.view(np.float32)]).astype(np.float32)
        if opset in (19, 25):
            x = np.concatenate([x, finite, halves, np.nextafter(halves, np.float32(np.inf)),
                                np.nextafter(halves, np.float32(-np.inf))]).astype(np.float32)
        for source in ("float", "half", "double"):
            name = f"{dtype}_{source}"
            data = Values(source, x.astype(NUMPY[source]))
            model.input(name, data)
            for saturate in (True, False) if dtype != "e2m1" else (True,):
                model.node("Cast", [name], cast(data, dtype, saturate), to=ENUM[dtype], saturate=int(saturate))
        like = model.constant(some(dtype, (1,)))
        model.node("CastLike", [f"{dtype}_float", like], cast(Values("float", x), dtype))
        codes = model.input(f"{dtype}_codes", Values(dtype, np.arange(len(VALUES[dtype]))))
        for target in ("float", "half", "double") + tuple(t for t in FLOAT8 if t != dtype):
            model.node("Cast", [codes], cast(model.inputs[codes], target), to=ENUM[target])
    model.write()


def integer_casts(opset, dtypes):
    model = Model(f"cast_integers_{opset}", opset)
    ints = model.input("ints", Values("int32", rng.integers(-40, 40, (5, 7))))
    bools = model.input("bools", Values("bool", rng.integers(0, 2, 9)))
    floats = model.input("floats", Values("float", np.concatenate([np.arange(-9, 16), [0.5, 1.5, 2.5, -0.5, -1.5]])))
    for dtype in dtypes:
        for name in (ints, bools, floats):
            model.node("Cast", [name], cast(model.inputs[name], dtype), to=ENUM[dtype])
        if dtype in VALUES:
            continue
        low, high = limits(dtype)
        codes = model.input(dtype, Values(dtype, list(range(low, high + 1)) + [1]))  # an odd count
        wide = "uint8" if dtype[0] == "u" else "int8"
        for target in [wide, "int32", "float", "half", "e4m3fn"] + [d for d in dtypes if d != dtype]:
            model.node("Cast", [codes], cast(model.inputs[codes], target), to=ENUM[target])
    model.write()


def powers_of_two():
    model = Model("cast_e8m0_24", 24)
    x = np.array([0, 0.124, 0.25, 0.5, 1.1, 1.5, 2, 3, 4, 5.9, 6, 6.1, 8, 3e38, 1.8e38, 1e-38, 5.9e-39, 8e-39, 9e-39,
                  1e-45, np.nan, np.inf], np.float32)
    bits = rng.integers(0, 0x7F800000, 300).astype(np.uint32).view(np.float32)
    data = model.input("x", Values("float", np.concatenate([x, bits])))
    for mode in ("up", "down", "nearest"):
        for saturate in (True, False):
            expected = power_of_two(model.inputs[data].numbers, mode, saturate)
            model.node("Cast", [data], Values("e8m0", expected), to=24, round_mode=mode, saturate=int(saturate))
    codes = model.input("codes", Values("e8m0", np.arange(256)))
    for target in ("float", "half", "double"):
        model.node("Cast", [codes], cast(model.inputs[codes], target), to=ENUM[target])
    model.write()


def movements(dtype):
    model = Model(f"move_{dtype}", 25)
    x = some(dtype, (3, 5, 7))
    a, data = x.numbers, model.input("x", x)
    ints = lambda *values: model.constant(Values("int64", values))
    result = lambda numbers: Values(dtype, numbers)
    model.node("Reshape", [data, ints(5, 21)], result(a.reshape(5, 21)))
    model.node("Transpose", [data], result(a.transpose(2, 0, 1)), perm=[2, 0, 1])
    model.node("Flatten", [data], result(a.reshape(15, 7)), axis=2)
    wide = model.node("Unsqueeze", [data, ints(1)], result(a[:, None]))
    model.node("Squeeze", [wide, ints(1)], x)
    model.node("Identity", [data], x)
    model.node("Concat", [data, model.constant(x, typed=True)], result(np.concatenate([a, a], 2)), axis=2)
    ends = [ints(1, 0, 1), ints(3, 5, 6), ints(0, 1, 2), ints(1, 2, 1)]
    model.node("Slice", [data] + ends, result(a[1:3, ::2, 1:6]))
    model.node("Gather", [data, ints(4, 0, 2, 2)], result(a[:, [4, 0, 2, 2]]), axis=1)
    one = Values(dtype, 1)
    padded = np.pad(a, ((0, 1), (2, 0), (1, 1)), constant_values=1)
    model.node("Pad", [data, ints(0, 2, 1, 1, 0, 1), model.constant(one)], result(padded))
    model.node("Tile", [data, ints(1, 2, 3)], result(np.tile(a, (1, 2, 3))))
    model.node("Expand", [data, ints(2, 3, 5, 7)], result(np.broadcast_to(a, (2, 3, 5, 7))))
    model.node("ConstantOfShape", [ints(3, 5)], result(np.full((3, 5), 1)), value=Values(dtype, [1]).proto("v"))
    model.node("Constant", [], x, value=x.proto("v"))
    model.node("Shape", [data], Values("int64", [3, 5, 7]))
    model.node("Size", [data], Values("int64", 105))
    large = some(dtype, (33, 65))
    model.node("Transpose", [model.input("large", large)], result(large.numbers.T))
    model.write()


def quantized(x, scale, zero_point, dtype, saturate=True):
    ratio = (x / scale).astype(np.float32)
    if dtype in VALUES:
        return Values(dtype, nearest(ratio, dtype, saturate))
    return Values(dtype, np.clip(np.rint(ratio) + zero_point, *limits(dtype)))


def dequantized(x, scale, zero_point):
    zero_point = 0 if x.dtype in VALUES else zero_point
    return Values("float", (x.real() - zero_point).astype(np.float32) * scale.astype(np.float32))


def quantization(opset, dtypes):
    for dtype in dtypes:
        model = Model(f"quantize_{dtype}_{opset}", opset)
        x = (rng.standard_normal((3, 5, 6)) * 20).astype(np.float32)
        x.ravel()[:2] = [1e6, -1e6]
        q, zero = some(dtype, (3, 5, 6)), lambda shape: Values(dtype, rng.integers(0, 1 if dtype in VALUES else 2, shape))
        data, codes = model.input("x", Values("float", x)), model.input("q", q)
        # How parameters spread over the tensor: of the whole one, of an axis, of blocks.
        forms = [((), {}), ((5,), {"axis": -2})]
        for axis, size in ((2, 2), (2, 4), (1, 3), (0, 1)) if opset >= 21 else ():
            shape = tuple(-(-d // size) if i == axis else d for i, d in enumerate(x.shape))
            forms.append((shape, {"axis": axis, "block_size": size}))
        for shape, attributes in forms:
            scale, point = (rng.random(shape) + 0.5).astype(np.float32), zero(shape)
            full = lambda v: v[:, None] if v.ndim == 1 else v
            if "block_size" in attributes:
                axis, size = attributes["axis"], attributes["block_size"]
                full = lambda v: np.take(np.repeat(v, size, axis), range(x.shape[axis]), axis)
            parameters = [model.constant(Values("float", scale)), model.constant(point)]
            s, z = full(scale), full(point.numbers)
            model.node("QuantizeLinear", [data] + parameters, quantized(x, s, z, dtype), **attributes)
            model.node("DequantizeLinear", [codes] + parameters, dequantized(q, s, z), **attributes)
            model.node("DequantizeLinear", [model.constant(q)] + parameters, dequantized(q, s, z), **attributes)
        scale = Values("float", np.float32(1.7))
        name = model.constant(scale)
        model.node("DequantizeLinear", [codes, name], dequantized(q, scale.numbers, 0))
        if dtype in FLOAT8:
            point = model.constant(zero(()))
            expected = quantized(x, scale.numbers, 0, dtype, False)
            model.node("QuantizeLinear", [data, name, point], expected, saturate=0)
        if opset >= 21:
            expected = quantized(x, scale.numbers, 0, dtype)
            model.node("QuantizeLinear", [data, name], expected, output_dtype=ENUM[dtype])
        if opset >= 23:
            h, half = model.input("h", Values("half", x.astype(np.float16))), np.float16(1.7)
            parameters = [model.constant(Values("half", half)), model.constant(zero(()))]
            point = Values(dtype, 0 if dtype in VALUES else 1)
            parameters[1] = model.constant(point)
            xh = model.inputs[h].numbers
            model.node("QuantizeLinear", [h] + parameters, quantized(xh, half, point.numbers, dtype))
            precise = quantized(xh.astype(np.float32), half.astype(np.float32), point.numbers, dtype)
            model.node("QuantizeLinear", [h] + parameters, precise, precision=1)
            result = dequantized(q, scale.numbers, 0).numbers.astype(np.float16)
            model.node("DequantizeLinear", [codes, name], Values("half", result), output_dtype=10)
        model.write()


for opset in (19, 21, 23, 24, 25):
    casts(opset)
integer_casts(21, ["int4", "uint4"])
integer_casts(25, ["int4", "uint4", "int2", "uint2", "e2m1"] + FLOAT8)
powers_of_two()
for dtype in FLOAT8 + ["e8m0", "e2m1", "int4", "uint4", "int2", "uint2"]:
    movements(dtype)
quantization(19, ["e4m3fn", "e5m2"])
quantization(21, ["int4", "uint4", "e4m3fnuz"])
quantization(23, ["int4", "e2m1", "e5m2fnuz"])
quantization(25, ["uint2", "int2", "uint4", "e2m1", "e4m3fn"])
