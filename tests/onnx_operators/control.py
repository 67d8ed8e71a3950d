"""Branches and loops, sequences and optionals. What ONNX Runtime's Node binding cannot pass stays within the model."""
from draw import ALL, FLOATS, Unfit
import wire


def if_(g):
    dtype = g.one_of(["float32", "int64", "string", "bool"])
    shape = g.shape(0, 3)
    x = g.tensor(dtype, shape)
    other = g.tensor(dtype, shape if g.chance(0.6) else g.shape(0, 3))
    def branch(operand):
        return lambda: [g.inner("Identity", [operand])]
    condition = g.scalar("bool", g.chance(0.5), 0.2, g.one_of([(), (1,)]))
    g.node([condition], then_branch=g.subgraph([], branch(x)), else_branch=g.subgraph([], branch(other)))


def loop(g):
    shape = g.shape(0, 2)
    dtype = g.one_of(["float32", "int64", "int32", "float64"])
    trips = g.one_of([0, 1, 2, 5]) if g.chance(0.8) else None
    limit = g.integer(0, 6)
    has_condition = trips is None or g.chance(0.5)
    scans = g.integer(0, 1)
    x, step = g.tensor(dtype, shape, "small"), g.tensor(dtype, shape, "small")
    bound = g.given("int64", [], [limit], True)
    def body():
        total = g.inner("Add", ["state", step])
        going = g.inner("Less", ["i", bound]) if has_condition else g.inner("Identity", ["going"])
        return [(going, "bool", []), (total, dtype, shape)] + [(g.inner("Mul", [total, total]), dtype, shape)] * scans
    graph = g.subgraph([("i", "int64", []), ("going", "bool", []), ("state", dtype, shape)], body)
    inputs = [g.scalar("int64", trips, 0.5, g.one_of([(), (1,)])) if trips is not None else "",
              g.scalar("bool", g.chance(0.85), 0.5) if has_condition else "", x]
    g.node(inputs, count=1 + scans, body=graph, tolerance=(1e-4, 1e-4))


def scan(g):
    steps, width = g.integer(1, 5), g.integer(1, 4)
    dtype = g.one_of(["float32", "int64"])
    back, flipped = g.integer(0, 1), g.integer(0, 1)
    axis = g.integer(0, 1)
    shape = [steps, width] if axis == 0 else [width, steps]
    def body():
        total = g.inner("Add", ["state", "item"])
        return [(total, dtype, [width]), (g.inner("Mul", [total, "item"]), dtype, [width])]
    graph = g.subgraph([("state", dtype, [width]), ("item", dtype, [width])], body)
    attributes = {"body": graph, "num_scan_inputs": 1}
    if axis or g.chance(0.3):
        attributes["scan_input_axes"] = [axis - 2 if g.chance(0.3) and g.opset >= 11 else axis]
    attributes |= g.maybe(0.4, scan_input_directions=[back], scan_output_directions=[flipped],
                          scan_output_axes=[g.integer(0, 1)])
    g.node([g.tensor(dtype, [width], "small"), g.tensor(dtype, shape, "small")], count=2, tolerance=(1e-4, 1e-4), **attributes)


def sequence(g, dtype=None, rank=None):
    """A sequence of one to three tensors of one rank; their first dims differ."""
    dtype = dtype or g.one_of(ALL + ["string"])
    shape = g.shape(1, 3) if rank is None else [g.dim() for _ in range(rank)]
    items = [g.tensor(dtype, [g.dim()] + shape[1:]) for _ in range(g.integer(1, 3))]
    return g.inner("SequenceConstruct", items), len(items), dtype, shape


def position(g, count, insert=0):
    at = g.integer(-count, count - 1 + insert)
    return g.scalar(g.one_of(["int64", "int32"]), at)


def sequence_at(g):
    items, count, dtype, shape = sequence(g)
    g.node([items, position(g, count)])


def sequence_length(g):
    items, count, dtype, shape = sequence(g)
    if g.chance(0.2):
        items = g.inner("SequenceEmpty", [], dtype=1)
    g.node([items])


def sequence_insert(g):
    items, count, dtype, shape = sequence(g)
    inputs = [items, g.tensor(dtype, [g.dim()] + shape[1:])] + ([position(g, count, 1)] if g.chance(0.7) else [])
    result = g.node(inputs)[0]
    g.outputs = [g.inner("ConcatFromSequence", [result], axis=0), g.inner("SequenceLength", [result])]


def sequence_erase(g):
    items, count, dtype, shape = sequence(g)
    result = g.node([items] + ([position(g, count)] if g.chance(0.7) else []))[0]
    g.outputs = [g.inner("SequenceLength", [result])]
    if count > 1:
        g.outputs.append(g.inner("ConcatFromSequence", [result], axis=0))


def sequence_construct(g):
    dtype = g.one_of(ALL + ["string"])
    shape = g.shape(1, 3)
    result = g.node([g.tensor(dtype, [g.dim()] + shape[1:]) for _ in range(g.integer(1, 3))])[0]
    g.outputs = [g.inner("ConcatFromSequence", [result], axis=0)]


def sequence_empty(g):
    result = g.node([], dtype=wire.ELEMENT_TYPES[g.one_of(ALL)])[0]
    g.outputs = [g.inner("SequenceLength", [result])]


def concat_from_sequence(g):
    dtype = g.one_of(ALL + ["string"])
    shape = g.shape(1, 3)
    new_axis = g.integer(0, 1)
    items = []
    axis = g.axis(len(shape), new_axis)
    for _ in range(g.integer(1, 3)):
        part = list(shape)
        if not new_axis:
            part[axis] = g.dim()
        items.append(g.tensor(dtype, part))
    g.node([g.inner("SequenceConstruct", items)], axis=axis, **({"new_axis": new_axis} if new_axis or g.chance(0.4) else {}))


def split_to_sequence(g):
    shape = g.shape(1, 3)
    axis = g.axis(len(shape))
    form = g.integer(0, 2)
    inputs, attributes = [], {"axis": axis}
    if form == 1:
        inputs = [g.scalar("int64", g.integer(1, 3))]
    if form == 2:
        sizes = [g.dim() for _ in range(g.integer(1, 3))]
        shape[axis] = sum(sizes)
        inputs = [g.ints(sizes)]
    keeps = True
    if form == 0:
        attributes |= (chosen := g.maybe(0.6, keepdims=g.integer(0, 1)))
        keeps = chosen.get("keepdims", 1)
    if shape[axis] == 0:
        raise Unfit
    result = g.node([g.tensor(g.one_of(ALL), shape)] + inputs, **attributes)[0]
    g.outputs = [g.inner("SequenceLength", [result]), g.inner("SequenceAt", [result, g.scalar("int64", -1, 1)])]


def sequence_map(g):
    items, count, dtype, shape = sequence(g, g.one_of(["float32", "int64"]))
    other = g.tensor(dtype, [], "small")
    graph = g.subgraph([("item", dtype, None), ("other", dtype, [])], lambda: [(g.inner("Add", ["item", "other"]), dtype, None)])
    result = g.node([items, other], body=graph)[0]
    g.outputs = [g.inner("ConcatFromSequence", [result], axis=0)]


def optional(g):
    x = g.tensor(g.one_of(ALL), g.shape())
    result = g.node([x])[0]
    g.outputs = [g.inner("OptionalHasElement", [result]), g.inner("OptionalGetElement", [result])]


def optional_has(g):
    x = g.tensor(g.one_of(ALL), g.shape())
    if g.opset >= 18 and g.chance(0.3):
        return g.node([x])
    g.node([g.inner("Optional", [x])])


def optional_get(g):
    x = g.tensor(g.one_of(ALL), g.shape())
    if g.opset >= 18 and g.chance(0.3):
        return g.node([x])
    g.node([g.inner("Optional", [x])])


OPERATORS = {
    "If": ((7, 11, 13, 16, 19, 21), if_), "Loop": ((7, 11, 13, 16, 19, 21), loop), "Scan": ((9, 11, 16, 19, 21), scan),
    "SequenceAt": ((11,), sequence_at), "SequenceLength": ((11,), sequence_length),
    "SequenceInsert": ((11,), sequence_insert), "SequenceErase": ((11,), sequence_erase),
    "SequenceConstruct": ((11,), sequence_construct), "SequenceEmpty": ((11,), sequence_empty),
    "ConcatFromSequence": ((11,), concat_from_sequence), "SplitToSequence": ((11,), split_to_sequence),
    "SequenceMap": ((17,), sequence_map), "Optional": ((15,), optional),
    "OptionalHasElement": ((15, 18), optional_has), "OptionalGetElement": ((15, 18), optional_get),
}
