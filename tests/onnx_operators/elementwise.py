"""Operators that compute each element alone."""
from draw import ALL, FLOATS, INTEGERS, NUMBERS, Unfit, bits_of, is_float, limits_of, size_of
import formulas
import wire

SIGNED = FLOATS + ["int32", "int64", "int8", "int16"]


def unary(dtypes, kind="any", **options):
    def build(g):
        g.node([g.tensor(g.one_of(dtypes), g.shape(), kind)], **options)
    return build


def activation(dtypes=FLOATS, **ranges):
    """Each attribute is a multiple of an eighth of its range, or absent."""
    def build(g):
        attributes = {name: low + g.integer(0, 8) * (high - low) / 8 for name, (low, high) in ranges.items()
                      if g.chance(0.6)}
        g.node([g.tensor(g.one_of(dtypes), g.shape())], **attributes)
    return build


def binary(dtypes, kinds=("any", "any"), tolerance=None):
    def build(g):
        dtype = g.one_of(dtypes)
        shape = g.shape()
        operands = [g.tensor(dtype, shape, kinds[0]), g.tensor(dtype, g.partner(shape), kinds[1])]
        if kinds[0] == kinds[1] and g.chance(0.5):
            operands.reverse()
        g.node(operands, tolerance=tolerance)
    return build


def division(g):
    dtype = g.one_of(NUMBERS)
    shape = g.shape()
    if is_float(dtype):
        divisor = "any"
    else:  # the division by zero, and the one that overflows, are undefined
        divisor = lambda: g.one_of([1, 2, 3, 5, 7, limits_of(dtype)[1]])
    g.node([g.tensor(dtype, shape), g.tensor(dtype, g.partner(shape), divisor)])


def modulus(g):
    dtype = g.one_of(NUMBERS)
    fmod = 1 if is_float(dtype) else g.integer(0, 1)
    shape = g.shape()
    low = limits_of(dtype)[0] if not is_float(dtype) else -1
    divisor = "any" if is_float(dtype) else (lambda: g.one_of([1, 2, 3, 5, 7] + ([-2, -3] if low < 0 else [])))
    g.node([g.tensor(dtype, shape), g.tensor(dtype, g.partner(shape), divisor)],
           **({"fmod": fmod} if fmod or g.chance(0.5) else {}))


def power(g):
    base = g.one_of(FLOATS + ["int32", "int64"])
    exponent = base if g.opset < 12 else g.one_of(FLOATS + ["int32", "int64"])
    shape = g.shape()
    small = (lambda: g.integer(0, 3)) if not is_float(exponent) else None
    part = small or ("any" if is_float(base) else (lambda: float(g.integer(0, 3))))
    g.node([g.tensor(base, shape, "any" if is_float(base) else "small"), g.tensor(exponent, g.partner(shape), part)],
           tolerance=(1e-3, 1e-4))


def variadic(dtypes, since_many=1):
    def build(g):
        dtype = g.one_of(dtypes)
        shape = g.shape()
        g.node([g.tensor(dtype, g.partner(shape) if i else shape) for i in range(g.integer(1, 4))],
               tolerance=(8e-3, 4e-2) if dtype == "float16" else None)
    return build


def comparison(dtypes):
    return binary(dtypes)


def where(g):
    shape = g.shape()
    dtype = g.one_of(ALL + ["string"])
    g.node([g.tensor("bool", g.partner(shape)), g.tensor(dtype, shape), g.tensor(dtype, g.partner(shape))])


def clip(g):
    dtype = g.one_of(FLOATS if g.opset < 12 else NUMBERS)
    x = g.tensor(dtype, g.shape())
    low, high = (-1.0, 1.5) if is_float(dtype) else (1, 3)
    if g.chance(0.1):
        low, high = high, low
    if g.opset < 11:
        return g.node([x], **g.maybe(0.7, min=float(low), max=float(high)))
    bounds = [g.scalar(dtype, bound) if g.chance(0.7) else "" for bound in (low, high)]
    g.node([x] + bounds)


def prelu(g):
    dtype = g.one_of(FLOATS + ["int32", "int64", "uint32", "uint64"] if g.opset > 8 else FLOATS)
    shape = g.shape(1, 4)
    slope = [1 if g.chance(0.4) else dim for dim in shape][g.integer(0, len(shape)):]
    inputs = [g.tensor(dtype, shape), g.tensor(dtype, slope)]
    g.node(inputs)
    formulas.prelu(g, *inputs)


def gelu(g):
    g.node([g.tensor(g.one_of(FLOATS), g.shape())], **g.maybe(0.7, approximate=g.one_of(["none", "tanh"])))


def shift(g):
    dtype = g.one_of(["uint8", "uint16", "uint32", "uint64"])
    shape = g.shape()
    amount = lambda: g.integer(0, bits_of(dtype) - 1)
    g.node([g.tensor(dtype, shape), g.tensor(dtype, g.partner(shape), amount)], direction=g.one_of(["LEFT", "RIGHT"]))


def infinite(g):
    attributes = g.maybe(0.4, detect_negative=g.integer(0, 1), detect_positive=g.integer(0, 1))
    g.node([g.tensor(g.one_of(FLOATS), g.shape())], **attributes)


CASTS = ALL + ["bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "string", "int4", "uint4"]


def cast_number(g, source, target):
    """Numbers that the target holds: what else becomes is undefined for floats."""
    if not is_float(source) or is_float(target) or target in ("bool", "string"):
        return "any" if target != "string" else "small"
    low = 0 if target.startswith("u") else -8
    high = 7 if target == "int4" else 15
    return lambda: g.integer(low * 8, high * 8) / 8


def cast(g):
    source, target = g.one_of(ALL + ["bfloat16", "float8e4m3fn", "float8e5m2", "string"]), g.one_of(CASTS)
    if "8e" in source + target and g.opset < 19 or "int4" in target and g.opset < 21 or "b" == target[0] and g.opset < 13:
        g.opset = 21
    shape = g.shape()
    if source == "string":
        if "8e" in target or target in ("string", "bool", "int4", "uint4"):
            raise Unfit
        texts = ["1", "25", "100"] if target.startswith("u") else ["-1", "25", "0"]
        if is_float(target):
            texts += ["3.5", "1e3", "-2.5E-2", "INF", "-INF", "NaN", "+INF"]
        x = g.given("string", shape, [g.one_of(texts) for _ in range(size_of(shape))])
    else:
        x = g.narrow(source, shape, cast_number(g, source, target))
    attributes = {"to": wire.ELEMENT_TYPES[target]}
    if "8" in target and "float8" in target and g.chance(0.4):
        attributes["saturate"] = g.integer(0, 1)
    g.node([x], **attributes)
    if target in ("bfloat16", "int4", "uint4") or "float8" in target:
        g.outputs_as("float32")


def cast_like(g):
    source, target = g.one_of(ALL), g.one_of(ALL)
    x = g.tensor(source, g.shape(), cast_number(g, source, target))
    g.node([x, g.tensor(target, g.shape(0, 2))])


def bitwise(dtypes=INTEGERS):
    return binary(dtypes)


def dropout(g):
    x = g.tensor(g.one_of(FLOATS), g.shape())
    if g.opset < 12:
        return g.node([x], count=1, **g.maybe(ratio=0.5))
    ratio = [g.scalar("float32", 0.5)] if g.chance(0.5) else []
    mode = [g.scalar("bool", False)] if ratio and g.chance(0.5) else []
    g.node([x] + ratio + mode, count=g.integer(1, 2))


def domain(low, high):
    """Floats of the interval, and special numbers sometimes."""
    def build(g):
        kind = "any" if g.chance(0.3) else (lambda: low + (high - low) * g.integer(0, 64) / 64)
        g.node([g.tensor(g.one_of(FLOATS), g.shape(), kind)])
    return build


def trilu(g):
    shape = g.shape(2, 4)
    inputs = [g.tensor(g.one_of(ALL), shape)]
    k = g.integer(-6, 6) if g.chance(0.7) else 0
    if k or g.chance(0.2):
        inputs.append(g.scalar("int64", k, shape=g.one_of([(), (1,)]) if g.chance(0.2) else ()))
    attributes = g.maybe(0.7, upper=g.integer(0, 1))
    g.node(inputs, **attributes)
    formulas.trilu(g, inputs[0], k, attributes.get("upper", 1))


OPERATORS = {
    "Abs": ((7, 13), unary(NUMBERS)),
    "Neg": ((7, 13), unary(SIGNED)),
    "Relu": ((7, 13, 14), unary(FLOATS)),
    "Identity": ((7, 13, 14, 16, 19, 21), unary(ALL + ["string"])),
    "Sign": ((9, 13), unary(NUMBERS)),
    "Floor": ((7, 13), unary(FLOATS)),
    "Ceil": ((7, 13), unary(FLOATS)),
    "Round": ((11, 22), unary(FLOATS)),
    "IsNaN": ((9, 13, 20), unary(FLOATS)),
    "IsInf": ((10, 20), infinite),
    "Not": ((7,), unary(["bool"])),
    "Exp": ((7, 13), domain(-10, 6)),
    "Log": ((7, 13), domain(0.01, 50)),
    "Sqrt": ((7, 13), domain(0, 50)),
    "Reciprocal": ((7, 13), domain(-4, 4)),
    "Sigmoid": ((7, 13), domain(-20, 20)),
    "Tanh": ((7, 13), domain(-10, 10)),
    "Erf": ((9, 13), domain(-4, 4)),
    "Sin": ((7, 22), domain(-60, 60)), "Cos": ((7, 22), domain(-60, 60)), "Tan": ((7, 22), domain(-1.4, 1.4)),
    "Sinh": ((9, 22), domain(-6, 6)), "Cosh": ((9, 22), domain(-6, 6)),
    "Asin": ((7, 22), domain(-1, 1)), "Acos": ((7, 22), domain(-1, 1)), "Atan": ((7, 22), domain(-60, 60)),
    "Asinh": ((9, 22), domain(-50, 50)), "Acosh": ((9, 22), domain(1, 50)), "Atanh": ((9, 22), domain(-1, 1)),
    "Softplus": ((7, 22), domain(-60, 60)), "Softsign": ((7, 22), domain(-20, 20)),
    "HardSwish": ((14, 22), domain(-6, 6)), "Mish": ((18, 22), domain(-20, 20)), "Gelu": ((20,), gelu),
    "Swish": ((24,), activation(alpha=(-1, 2))),
    "LeakyRelu": ((7, 16), activation(alpha=(-0.5, 1.5))),
    "Elu": ((7, 22), activation(alpha=(0.5, 2))),
    "Celu": ((12,), activation(["float32"], alpha=(0.5, 2))),
    "Selu": ((7, 22), activation(alpha=(0.5, 2), gamma=(0.5, 2))),
    "HardSigmoid": ((7, 22), activation(alpha=(0.1, 1), beta=(0, 1))),
    "ThresholdedRelu": ((10, 22), activation(alpha=(0, 2))),
    "Shrink": ((9,), activation(NUMBERS, bias=(0, 1), lambd=(0, 2))),
    "PRelu": ((7, 9, 16), prelu),
    "Clip": ((7, 11, 12, 13), clip),
    "Add": ((7, 13, 14), binary(NUMBERS)), "Sub": ((7, 13, 14), binary(NUMBERS)),
    "Mul": ((7, 13, 14), binary(NUMBERS)), "Div": ((7, 13, 14), division),
    "Mod": ((10, 13), modulus), "Pow": ((7, 12, 13, 15), power),
    "Max": ((8, 12, 13), variadic(NUMBERS)), "Min": ((8, 12, 13), variadic(NUMBERS)),
    "Sum": ((8, 13), variadic(FLOATS)), "Mean": ((8, 13), variadic(FLOATS)),
    "Equal": ((7, 11, 13, 19), comparison(ALL + ["string"])),
    "Less": ((7, 9, 13), comparison(NUMBERS)), "Greater": ((7, 9, 13), comparison(NUMBERS)),
    "LessOrEqual": ((12, 16), comparison(NUMBERS)), "GreaterOrEqual": ((12, 16), comparison(NUMBERS)),
    "And": ((7,), binary(["bool"])), "Or": ((7,), binary(["bool"])), "Xor": ((7,), binary(["bool"])),
    "BitShift": ((11,), shift),
    "BitwiseAnd": ((18,), bitwise()), "BitwiseOr": ((18,), bitwise()), "BitwiseXor": ((18,), bitwise()),
    "BitwiseNot": ((18,), unary(INTEGERS)),
    "Where": ((9, 16), where),
    "Cast": ((9, 13, 19, 21), cast), "CastLike": ((15, 19, 21), cast_like),
    "Dropout": ((7, 10, 12, 13), dropout),
    "Trilu": ((14,), trilu),
}
