"""Operators with indices, and those whose result's shape depends on the data."""
from draw import ALL, FLOATS, NUMBERS, Unfit, is_float, size_of
import formulas

ANY = ALL + ["string"]


def index_into(g, extent, shape, dtype=None, constant=None):
    """Positions in a dim, some counted from the end."""
    if extent == 0:
        if size_of(shape):
            raise Unfit
        extent = 1
    low = -extent if g.chance(0.5) else 0
    return g.tensor(dtype or g.one_of(["int64", "int64", "int32"]), shape, lambda: g.integer(low, extent - 1), constant)


def gather(g):
    shape = g.shape(1, 4)
    axis = g.axis(len(shape))
    index = index_into(g, shape[axis], g.shape(0, 2))
    g.node([g.tensor(g.one_of(ANY), shape), index], **({"axis": axis} if axis or g.chance(0.5) else {}))


def gather_elements(g):
    shape = g.shape(1, 4)
    axis = g.axis(len(shape))
    at = [g.integer(0 if g.chance(0.1) else min(1, dim), dim) for dim in shape]
    at[axis] = g.dim()
    x = g.tensor(g.one_of(ANY), shape)
    g.node([x, index_into(g, shape[axis], at)], **({"axis": axis} if axis or g.chance(0.5) else {}))


def gather_nd(g):
    shape = g.shape(1, 4)
    batch = g.integer(0, len(shape) - 1) if g.opset >= 12 and g.chance(0.4) else 0
    depth = g.integer(1, len(shape) - batch)
    at = shape[:batch] + g.shape(0, 2) + [depth]
    if len(at) == batch or 0 in shape[batch:batch + depth] and size_of(at):
        raise Unfit
    extents = shape[batch:batch + depth]
    data = [g.integer(-extents[i % depth] if g.chance(0.4) else 0, extents[i % depth] - 1) for i in range(size_of(at))]
    g.node([g.tensor(g.one_of(ANY), shape), g.given("int64", at, data)], **({"batch_dims": batch} if batch else {}))


def reduction_of(g, dtype, last):
    choices = ["none"]
    if g.opset >= 16:
        choices += ["add", "mul"]
    if g.opset >= 18:
        choices += ["max", "min"]
    choice = g.one_of(choices) if dtype not in ("bool", "string") else "none"
    return choice, ({"reduction": choice} if choice != "none" or (g.opset >= 16 and g.chance(0.3)) else {})


def scatter_elements(g):
    shape = g.shape(1, 3)
    axis = g.axis(len(shape))
    dtype = g.one_of(ANY)
    choice, attributes = reduction_of(g, dtype, 18)
    at = [g.integer(min(1, dim), dim) for dim in shape]
    extent = shape[axis]
    if choice != "none":
        at[axis] = g.dim()
        index = index_into(g, extent, at)
    else:  # no position twice along the axis
        if extent == 0:
            raise Unfit
        at[axis] = g.integer(0 if g.chance(0.1) else 1, extent)
        lines = {}
        data = []
        axis_ = axis % len(shape)
        inner = size_of(at[axis_ + 1:])
        for flat in range(size_of(at)):
            line = (flat // (inner * at[axis_]) if inner and at[axis_] else 0, flat % inner if inner else 0)
            order = lines.setdefault(line, g.permutation(extent))
            position = order[(flat // inner) % at[axis_]]
            data.append(position - extent if g.chance(0.3) else position)
        index = g.given(g.one_of(["int64", "int32"]), at, data)
    kind = "small" if choice == "mul" else "any"
    inputs = [g.tensor(dtype, shape, kind), index, g.tensor(dtype, at, kind)]
    g.node(inputs, **attributes, **({"axis": axis} if axis or g.chance(0.5) else {}))
    if choice == "none":
        formulas.scatter(g, *inputs, axis)


def scatter_nd(g):
    shape = g.shape(1, 4)
    depth = g.integer(1, len(shape))
    dtype = g.one_of(ANY)
    choice, attributes = reduction_of(g, dtype, 18)
    spots = size_of(shape[:depth])
    if spots == 0:
        raise Unfit
    count = g.integer(0 if g.chance(0.05) else 1, min(spots, 4))
    chosen = g.random.sample(range(spots), count) if choice == "none" else [g.integer(0, spots - 1) for _ in range(count)]
    data = []
    for spot in chosen:
        place = []
        for extent in reversed(shape[:depth]):
            place.append(spot % extent - (extent if g.chance(0.2) else 0))
            spot //= extent
        data += reversed(place)
    kind = "small" if choice == "mul" else "any"
    g.node([g.tensor(dtype, shape, kind), g.given("int64", [count, depth], data),
            g.tensor(dtype, [count] + shape[depth:], kind)], **attributes)


def one_hot(g):
    depth = g.integer(1, 5)
    index_type, depth_type = g.one_of(["int64", "int32", "float32"]), g.one_of(["int64", "int32", "float32"])
    shape = g.shape(0, 3)
    values = g.tensor(g.one_of(["float32", "int64", "int32", "string"]), [2])
    number = lambda: float(g.integer(-depth - 1, depth)) if index_type == "float32" else g.integer(-depth - 1, depth)
    axis = g.axis(len(shape), 1)
    depth_value = float(depth) if depth_type == "float32" else depth
    if g.opset < 11:
        number_ = number
        number = lambda: abs(number_()) % depth
    indices = g.tensor(index_type, shape, number)
    g.node([indices, g.scalar(depth_type, depth_value, shape=g.one_of([(), (1,)])), values],
           **({"axis": axis} if axis != -1 or g.chance(0.5) else {}))
    formulas.one_hot(g, indices, depth, values, axis)


def topk(g):
    shape = g.shape(1, 4)
    axis = g.axis(len(shape))
    dtype = g.one_of(FLOATS if g.opset < 11 else FLOATS + ["int64", "int32", "int8", "uint8"])
    kind = g.one_of(["any", lambda: float(g.integer(-2, 2)) if is_float(dtype) else g.integer(0, 3)])
    if dtype in ("float32", "float64", "float16") and kind == "any" and g.is_wild:
        kind = "small"
    k = g.integer(0, shape[axis])
    attributes = {"axis": axis} if axis != -1 or g.chance(0.5) else {}
    if g.opset >= 11:
        attributes |= g.maybe(0.5, largest=g.integer(0, 1), sorted=1)
    x = g.tensor(dtype, shape, kind)
    if g.opset < 10:
        return g.node([x], count=2, k=max(k, 1), **attributes)
    g.node([x, g.ints([k])], count=2, **attributes)


def non_zero(g):
    dtype = g.one_of(["bool", "float32", "int32", "int64", "uint8"])
    kind = lambda: g.one_of([0, 0, 1, 2]) if not is_float(dtype) else g.one_of([0.0, -0.0, 1.5, float("nan")])
    g.node([g.tensor(dtype, g.shape(0, 4, 0.08), kind)])


def unique(g):
    shape = g.shape(1, 3, 0.02)
    dtype = g.one_of(["float32", "int64", "int8", "float64", "string"])
    kind = (lambda: float(g.integer(-2, 2))) if is_float(dtype) else (lambda: g.integer(-2, 2))
    attributes = g.maybe(0.5, sorted=g.integer(0, 1))
    if g.chance(0.6):
        attributes["axis"] = g.axis(len(shape))
    g.node([g.tensor(dtype, shape, kind)], count=g.integer(1, 4), **attributes)


def suppression(g):
    images, classes, boxes = g.integer(1, 2), g.integer(1, 3), g.integer(0 if g.chance(0.05) else 1, 8)
    center = g.integer(0, 1)
    data = []
    for _ in range(images * boxes):
        y, x, h, w = (g.integer(0, 40) / 4 for _ in range(4))
        box = [x, y, w + 0.25, h + 0.25] if center else [y, x, y + h + 0.25, x + w + 0.25]
        if not center and g.chance(0.2):
            box = box[2:] + box[:2]
        data += box
    order = g.permutation(images * classes * boxes)
    inputs = [g.given("float32", [images, boxes, 4], data),
              g.given("float32", [images, classes, boxes], [value / 64 for value in order])]
    inputs.append(g.scalar("int64", g.integer(0, 5), shape=g.one_of([(), (1,)])) if g.chance(0.85) else "")
    inputs.append(g.scalar("float32", g.integer(0, 8) / 8, shape=g.one_of([(), (1,)])) if g.chance(0.7) else "")
    inputs.append(g.scalar("float32", g.integer(0, 12) / 32, shape=(1,)) if g.chance(0.6) else "")
    g.node(inputs, **({"center_point_box": center} if center or g.chance(0.3) else {}))


def tensor_scatter(g):
    batch, heads, length, width = g.integer(1, 3), g.integer(1, 2), g.integer(2, 5), g.integer(1, 4)
    count = g.integer(1, length)
    mode = g.one_of(["linear", "circular"])
    starts = [g.integer(0, length - count if mode == "linear" else length - 1) for _ in range(batch)]
    dtype = g.one_of(ALL)
    inputs = [g.tensor(dtype, [batch, heads, length, width]), g.tensor(dtype, [batch, heads, count, width])]
    if g.chance(0.7):
        inputs.append(g.given("int64", [batch], starts))
    g.node(inputs, **({"mode": mode} if mode != "linear" or g.chance(0.5) else {}))


OPERATORS = {
    "Gather": ((7, 11, 13), gather), "GatherElements": ((11, 13), gather_elements),
    "GatherND": ((11, 12, 13), gather_nd), "ScatterElements": ((11, 13, 16, 18), scatter_elements),
    "Scatter": ((9, 10), lambda g: scatter_elements(g)), "ScatterND": ((11, 13, 16, 18), scatter_nd),
    "OneHot": ((9, 11), one_hot), "TopK": ((7, 10, 11), topk), "NonZero": ((9, 13), non_zero),
    "Unique": ((11,), unique), "NonMaxSuppression": ((10, 11), suppression),
    "TensorScatter": ((24,), tensor_scatter),
}
