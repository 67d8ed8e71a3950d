"""Operators that move elements, and those that make tensors from shapes."""
from draw import ALL, FLOATS, INTEGERS, NUMBERS, Unfit, is_float, size_of
import formulas
import wire

ANY = ALL + ["string"]


def transpose(g):
    shape = g.shape()
    attributes = {"perm": g.permutation(len(shape))} if g.chance(0.8) and shape else {}
    g.node([g.tensor(g.one_of(ANY), shape)], **attributes)


def reshape(g):
    shape = g.shape()
    target = []
    left = size_of(shape)
    for _ in range(g.integer(0, 3)):
        factors = [f for f in range(1, 9) if left and left % f == 0] or [g.dim()]
        factor = g.one_of(factors)
        target.append(factor)
        left = left // factor if factor else left
    target.insert(g.integer(0, len(target)), left)
    allowzero = g.opset >= 14 and g.chance(0.3)
    if size_of(shape) == 0 and size_of(target) != 0:
        target = [0] + target if allowzero else shape
    if size_of(target) and size_of(shape) and g.chance(0.6):
        target[g.integer(0, len(target) - 1)] = -1
    elif not allowzero:
        target = [0 if i < len(shape) and shape[i] == dim and g.chance(0.5) else dim for i, dim in enumerate(target)]
    if size_of(shape) == 1 and g.chance(0.2):
        target = []
    attributes = {"allowzero": 1} if allowzero else {}
    g.node([g.tensor(g.one_of(ANY), shape), g.ints(target)], **attributes)


def flatten(g):
    shape = g.shape(0 if g.opset < 13 else 0, 4)
    rank = len(shape)
    attributes = {"axis": g.integer(-rank if g.opset >= 11 else 0, rank)} if g.chance(0.8) else {}
    if not attributes and rank < 1:
        raise Unfit
    g.node([g.tensor(g.one_of(ANY), shape)], **attributes)


def squeeze(g):
    shape = [1 if g.chance(0.5) else dim for dim in g.shape()]
    ones = [i for i, dim in enumerate(shape) if dim == 1]
    axes = g.random.sample(ones, g.integer(0, len(ones))) if ones else []
    if g.opset < 11:
        axes = sorted(axes)
    else:
        axes = [axis - len(shape) if g.chance(0.4) else axis for axis in axes]
    x = g.tensor(g.one_of(ANY), shape)
    if not axes:
        return g.node([x])
    g.node([x], axes=axes) if g.opset < 13 else g.node([x, g.ints(axes)])


def unsqueeze(g):
    shape = g.shape(0, 3)
    count = g.integer(1, 2)
    rank = len(shape) + count
    axes = g.random.sample(range(rank), count)
    axes = sorted(axes) if g.opset < 11 else [axis - rank if g.chance(0.4) else axis for axis in axes]
    x = g.tensor(g.one_of(ANY), shape)
    g.node([x], axes=axes) if g.opset < 13 else g.node([x, g.ints(axes)])


def concat(g):
    shape = g.shape(1, 4)
    axis = g.axis(len(shape))
    dtype = g.one_of(ANY)
    operands = []
    for _ in range(g.integer(1, 4)):
        part = list(shape)
        part[axis] = g.dim(0.1)
        operands.append(g.tensor(dtype, part))
    g.node(operands, axis=axis if g.opset >= 11 else axis % len(shape))


def split(g):
    shape = g.shape(1, 4)
    axis = g.axis(len(shape))
    if g.opset < 11:
        axis %= len(shape)
    count = g.integer(1, 4)
    attributes = {"axis": axis} if axis != 0 or g.chance(0.5) else {}
    sizes = None
    if g.chance(0.6):
        sizes = [g.dim(0.1) for _ in range(count)]
        shape[axis] = sum(sizes)
    elif g.opset < 18 or g.chance(0.4):
        shape[axis] = count * g.integer(1, 3)
    if g.opset >= 18 and sizes is None:
        shape[axis] = max(shape[axis], count)
        if shape[axis] % count and -(-shape[axis] // count) * (count - 1) >= shape[axis]:
            raise Unfit
        attributes["num_outputs"] = count
    x = g.tensor(g.one_of(ANY), shape)
    if sizes is None:
        return g.node([x], count=count, **attributes)
    if g.opset < 13:
        return g.node([x], count=count, split=sizes, **attributes)
    g.node([x, g.ints(sizes)], count=count, **attributes)


def slice_(g):
    shape = g.shape(1, 4)
    rank = len(shape)
    count = g.integer(1, rank)
    axes = g.random.sample(range(rank), count)
    far = g.one_of([2 ** 31 - 1, 2 ** 63 - 1, 1000])
    bound = lambda: g.integer(-7, 7) if g.chance(0.8) else g.one_of([far, -far, -2 ** 63, 0])
    starts, ends = [bound() for _ in axes], [bound() for _ in axes]
    dtype = g.one_of(ANY)
    x = g.tensor(dtype, shape)
    if g.opset < 10:
        return g.node([x], starts=starts, ends=ends, **({"axes": axes} if g.chance(0.7) or axes != list(range(count)) else {}))
    index = "int64" if g.chance(0.8) else "int32"
    fit = lambda numbers: numbers if index == "int64" else [max(-2 ** 31, min(2 ** 31 - 1, number)) for number in numbers]
    inputs = [x, g.ints(fit(starts), index), g.ints(fit(ends), index)]
    named = g.chance(0.7) or axes != list(range(count))
    if named:
        inputs.append(g.ints([axis - rank if g.chance(0.4) else axis for axis in axes], index))
    if g.chance(0.6):
        steps = [g.one_of([1, 2, 3, -1, -2, -3, far, -far]) for _ in axes]
        inputs += ([] if named else [""]) + [g.ints(fit(steps), index)]
    g.node(inputs)


def pad(g):
    shape = g.shape(1, 4)
    mode = g.one_of(["constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    dtype = g.one_of(ALL if g.opset >= 13 else FLOATS)
    axes = list(range(len(shape)))
    if g.opset >= 18 and g.chance(0.4):
        axes = g.random.sample(axes, g.integer(0, len(axes)))
    def amount(dim):
        most = {"constant": 3, "edge": 3 if dim else 0, "wrap": dim, "reflect": max(dim - 1, 0)}[mode]
        low = -1 if g.chance(0.2) and dim > 2 and mode != "wrap" else 0  # around what is left, or before it, is not said
        return g.integer(low, min(most, 3))
    pads = [amount(shape[axis]) for axis in axes] + [amount(shape[axis]) for axis in axes]
    x = g.tensor(dtype, shape)
    attributes = {"mode": mode} if mode != "constant" or g.chance(0.3) else {}
    if g.opset < 11:
        return g.node([x], pads=pads, **attributes, **({"value": 1.5} if g.chance(0.4) else {}))
    inputs = [x, g.ints(pads)]
    has_value = g.chance(0.5)
    if has_value:
        inputs.append(g.tensor(dtype, [], constant=g.chance(0.7)))
    if g.opset >= 18 and axes != list(range(len(shape))):
        index = g.one_of(["int64", "int32"])
        inputs += ([] if has_value else [""]) + [g.ints([a - len(shape) if g.chance(0.3) else a for a in axes], index)]
    g.node(inputs, **attributes)


def tile(g):
    shape = g.shape(0, 4)
    g.node([g.tensor(g.one_of(ANY), shape), g.ints([g.one_of([1, 1, 2, 3, 0]) if g.chance(0.9) else 0 for _ in shape])])


def expand(g):
    shape = g.shape(0, 3)
    x = [1 if g.chance(0.4) else dim for dim in shape]
    target = [1 if g.chance(0.3) else dim for dim in shape]
    if g.chance(0.3):
        target = [g.dim()] + target
    elif g.chance(0.3):
        target = target[g.integer(0, len(target)):]
    g.node([g.tensor(g.one_of(ANY), x), g.ints(target)])


def depth_to_space(g):
    block = g.integer(1, 3)
    shape = [g.dim(), block * block * g.integer(1, 2), g.dim(), g.dim()]
    attributes = {"mode": g.one_of(["DCR", "CRD"])} if g.opset >= 11 and g.chance(0.7) else {}
    x = g.tensor(g.one_of(ALL), shape)
    g.node([x], blocksize=block, **attributes)
    formulas.depth_to_space(g, x, block, attributes.get("mode", "DCR"))


def space_to_depth(g):
    block = g.integer(1, 3)
    shape = [g.dim(), g.integer(1, 3), block * g.dim(), block * g.dim()]
    x = g.tensor(g.one_of(ALL), shape)
    g.node([x], blocksize=block)
    formulas.space_to_depth(g, x, block)


def shape_(g):
    x = g.tensor(g.one_of(ANY), g.shape(0, 4, 0.1))
    g.node([x], **(g.maybe(0.5, start=g.integer(-6, 6), end=g.integer(-6, 6)) if g.opset >= 15 else {}))


def size(g):
    g.node([g.tensor(g.one_of(ANY), g.shape(0, 4, 0.1))])


def constant_of_shape(g):
    attributes = {}
    if g.chance(0.8):
        dtype = g.one_of(ALL)
        attributes["value"] = wire.TensorBytes(wire.tensor("value", dtype, [1], [g.element(dtype, "any")]))
        g.words.append(dtype)
    g.node([g.ints(g.shape(0, 3, 0.15))], **attributes)


def range_(g):
    dtype = g.one_of(["float32", "float64", "int16", "int32", "int64"])
    number = (lambda: g.integer(-40, 40) / 4) if is_float(dtype) else (lambda: g.integer(-20, 20))
    step = 0
    while step == 0:
        step = number() / 8 if is_float(dtype) else g.integer(-4, 4)
    g.node([g.scalar(dtype, number(), 0.5), g.scalar(dtype, number(), 0.5), g.scalar(dtype, step, 0.5)])


def eye_like(g):
    shape = g.shape(2, 2)
    attributes = g.maybe(0.5, dtype=wire.ELEMENT_TYPES[g.one_of(["float32", "float64", "int32", "int64", "uint64", "float16"])],
                         k=g.integer(-4, 4))
    g.node([g.tensor(g.one_of(NUMBERS), shape)], **attributes)


def constant(g):
    kind = g.integer(0, 5)
    if kind == 0 or g.opset < 12:
        dtype, shape = g.one_of(ANY), g.shape(0, 3, 0.1)
        data = [g.element(dtype, "any") for _ in range(size_of(shape))]
        return g.node([], value=wire.TensorBytes(wire.tensor("value", dtype, shape, data)))
    name = ["", "value_float", "value_int", "value_floats", "value_ints", "value_strings"][kind]
    value = [None, 1.5, -7, [0.5, -2.0], [1, 2, 3], ["a", "bc"]][kind]
    g.node([], **{name: value})


def reverse_sequence(g):
    shape = [g.dim(), g.dim()] + g.shape(0, 2)
    time = g.integer(0, 1)
    steps, batch = shape[time], shape[1 - time]
    if steps == 0:
        raise Unfit
    lengths = [g.integer(1, steps) for _ in range(batch)]
    attributes = {"time_axis": time, "batch_axis": 1 - time} if time or g.chance(0.5) else {}
    g.node([g.tensor(g.one_of(ANY), shape), g.given("int64", [batch], lengths)], **attributes)


def center_crop_pad(g):
    shape = g.shape(1, 4)
    axes = list(range(len(shape)))
    attributes = {}
    if g.chance(0.5):
        axes = g.random.sample(axes, g.integer(1, len(axes)))
        attributes["axes"] = [a - len(shape) if g.chance(0.4) else a for a in axes]
    x, sizes = g.tensor(g.one_of(ALL), shape), [g.integer(0, 7) for _ in axes]
    g.node([x, g.ints(sizes, g.one_of(["int64", "int32"]))], **attributes)
    formulas.center_crop_pad(g, x, axes, sizes)


def compress(g):
    shape = g.shape(1, 4)
    if g.chance(0.3):
        length = size_of(shape)
        attributes = {}
    else:
        axis = g.axis(len(shape))
        length = shape[axis]
        attributes = {"axis": axis}
    condition = g.tensor("bool", [g.integer(0, length)])
    g.node([g.tensor(g.one_of(ANY), shape), condition], **attributes)


OPERATORS = {
    "Transpose": ((7, 13, 21), transpose), "Reshape": ((7, 13, 14, 19, 21), reshape),
    "Flatten": ((7, 9, 11, 13, 21), flatten), "Squeeze": ((7, 11, 13, 21), squeeze),
    "Unsqueeze": ((7, 11, 13, 21), unsqueeze), "Concat": ((7, 11, 13), concat), "Split": ((7, 11, 13, 18), split),
    "Slice": ((7, 10, 11, 13), slice_), "Pad": ((7, 11, 13, 18, 19, 21), pad), "Tile": ((7, 13), tile),
    "Expand": ((8, 13), expand), "DepthToSpace": ((7, 11, 13), depth_to_space),
    "SpaceToDepth": ((7, 13), space_to_depth), "Shape": ((7, 13, 15, 19, 21), shape_),
    "Size": ((7, 13, 19, 21), size), "ConstantOfShape": ((9, 20, 21), constant_of_shape), "Range": ((11,), range_),
    "EyeLike": ((9, 22), eye_like), "Constant": ((7, 11, 12, 13), constant),
    "ReverseSequence": ((10,), reverse_sequence), "CenterCropPad": ((18,), center_crop_pad),
    "Compress": ((9, 11), compress),
}
