"""Reductions, normalizations, and sums along an axis."""
from draw import FLOATS, NUMBERS, Unfit, is_float

AXES_INPUT = {"ReduceSum": 13}
REDUCED = FLOATS + ["int32", "int64", "float32", "float32"]


def reduce_(dtypes, kind="any"):
    def build(g):
        shape = g.shape(0, 4, 0.06)
        axes = None
        if g.chance(0.75):
            axes = g.random.sample(range(len(shape)), g.integer(0 if g.chance(0.1) else min(1, len(shape)), len(shape)))
            axes = [a - len(shape) if g.opset >= 11 and g.chance(0.4) else a for a in axes]
        by_input = g.opset >= AXES_INPUT.get(g.op, 18)
        x = g.tensor(g.one_of(dtypes), shape, kind)
        attributes = g.maybe(0.6, keepdims=g.integer(0, 1))
        tolerance = (8e-3, 4e-2) if x.dtype == "float16" else (1e-4, 1e-4)
        if by_input:
            attributes |= g.maybe(0.4, noop_with_empty_axes=g.integer(0, 1))
            return g.node([x] + ([g.ints(axes)] if axes is not None else []), tolerance=tolerance, **attributes)
        if axes:
            attributes["axes"] = axes
        g.node([x], tolerance=tolerance, **attributes)
    return build


def arg_reduce(g):
    shape = g.shape(1, 4, 0.03)
    axis = g.axis(len(shape)) if g.opset >= 11 else g.integer(0, len(shape) - 1)
    dtype = g.one_of(FLOATS + ["int32", "int8", "uint8", "float32"])
    kind = g.one_of(["any", lambda: float(g.integer(-2, 2)) if is_float(dtype) else g.integer(0, 3)])
    if shape[axis] == 0:
        raise Unfit
    attributes = g.maybe(0.6, keepdims=g.integer(0, 1))
    if g.opset >= 12:
        attributes |= g.maybe(0.5, select_last_index=g.integer(0, 1))
    if axis or g.chance(0.5):
        attributes["axis"] = axis
    g.node([g.tensor(dtype, shape, kind)], **attributes)


def softmax(g):
    shape = g.shape(1 if g.opset >= 13 else 1, 4)
    attributes = {}
    if g.chance(0.8):
        attributes["axis"] = g.axis(len(shape)) if g.opset >= 11 else g.integer(0, len(shape) - 1)
    elif g.opset < 13 and len(shape) < 2:
        raise Unfit
    g.node([g.tensor(g.one_of(FLOATS), shape)], **attributes)


def hardmax(g):
    softmax(g)


def cum_sum(g):
    shape = g.shape(1, 4)
    dtype = g.one_of(["float32", "float64", "int32", "int64"])
    axis = g.scalar(g.one_of(["int32", "int64"]), g.axis(len(shape)), shape=g.one_of([(), (1,)]) if g.chance(0.2) else ())
    g.node([g.tensor(dtype, shape), axis], tolerance=(1e-4, 1e-4),
           **g.maybe(0.5, exclusive=g.integer(0, 1), reverse=g.integer(0, 1)))


def batch_norm(g):
    shape = [g.dim(), g.integer(1, 4)] + g.shape(0, 3)
    channels = shape[1]
    dtype = g.one_of(FLOATS)
    x = g.tensor(dtype, shape, "small")
    vector = lambda kind: g.tensor(dtype, [channels], kind, g.chance(0.6))
    attributes = g.maybe(0.5, epsilon=0.001, momentum=0.75)
    if g.opset >= 14 and g.chance(0.2):
        g.node([x, vector("small"), vector("small"), vector("small"), vector("positive")], count=3, training_mode=1,
               tolerance=(1e-3, 1e-3), **attributes)
    else:
        g.node([x, vector("small"), vector("small"), vector("small"), vector("positive")], tolerance=(1e-3, 1e-4),
               **attributes)


def instance_norm(g):
    shape = [g.integer(1, 3), g.integer(1, 4)] + g.shape(1, 3, 0)
    dtype = g.one_of(FLOATS)
    vector = lambda: g.tensor(dtype, [shape[1]], "small", g.chance(0.6))
    g.node([g.tensor(dtype, shape, "fine"), vector(), vector()], tolerance=(2e-3, 1e-3) if dtype != "float16" else (2e-2, 4e-2),
           **g.maybe(0.7, epsilon=0.01))


def layer_norm(g):
    shape = g.shape(1, 4, 0.02)
    axis = g.axis(len(shape))
    part = shape[axis % len(shape):]
    dtype = g.one_of(FLOATS)
    inputs = [g.tensor(dtype, shape, "fine"), g.tensor(dtype, part, "fine")]
    if g.chance(0.6):
        inputs.append(g.tensor(dtype, part, "fine"))
    g.node(inputs, count=g.one_of([1, 1, 3]), tolerance=(2e-2, 4e-2) if dtype == "float16" else (2e-3, 1e-3),
           **({"axis": axis} if axis != -1 or g.chance(0.5) else {}), **g.maybe(0.7, epsilon=0.01))


def rms_norm(g):
    shape = g.shape(1, 4, 0.02)
    axis = g.axis(len(shape))
    dtype = g.one_of(FLOATS)
    g.node([g.tensor(dtype, shape, "fine"), g.tensor(dtype, shape[axis % len(shape):], "fine")],
           tolerance=(2e-2, 4e-2) if dtype == "float16" else (2e-3, 1e-3),
           **({"axis": axis} if axis != -1 or g.chance(0.5) else {}), **g.maybe(0.7, epsilon=0.01))


def group_norm(g):
    groups = g.integer(1, 3)
    channels = groups * g.integer(1, 3)
    shape = [g.integer(1, 3), channels] + g.shape(1, 3, 0)
    dtype = g.one_of(FLOATS)
    count = channels if g.opset >= 21 else groups
    g.node([g.tensor(dtype, shape, "fine"), g.tensor(dtype, [count], "fine"), g.tensor(dtype, [count], "fine")],
           num_groups=groups, tolerance=(3e-2, 6e-2) if dtype == "float16" else (2e-3, 1e-3), **g.maybe(0.7, epsilon=0.01))


def mean_variance(g):
    shape = g.shape(4, 4, 0)
    axes = g.random.sample(range(4), g.integer(1, 4))
    g.node([g.tensor("float32", shape, "fine")], tolerance=(1e-2, 1e-3),
           **({"axes": [a - 4 if g.chance(0.3) else a for a in axes]} if g.chance(0.7) else {}))


def lp_norm(g):
    shape = g.shape(1, 4)
    attributes = g.maybe(0.6, p=g.integer(1, 2))
    axis = g.axis(len(shape))
    if axis != -1 or g.chance(0.5):
        attributes["axis"] = axis
    g.node([g.tensor(g.one_of(["float32", "float64", "float16"]), shape, "positive")], **attributes)


def lrn(g):
    shape = [g.dim(), g.integer(1, 6)] + g.shape(2, 2)
    size = g.one_of([1, 3, 5])
    g.node([g.tensor(g.one_of(["float32", "float32", "float16"]), shape, "small")], size=size, tolerance=(1e-3, 1e-4),
           **g.maybe(0.5, alpha=0.25, beta=0.5, bias=2.0))


def loss(negative):
    def build(g):
        batch, classes = g.integer(1, 4), g.integer(1, 5)
        rest = g.shape(0, 2, 0)
        dtype = g.one_of(["float32", "float32", "float64"])
        ignored = g.integer(-1, classes - 1) if g.chance(0.4) else None
        labels = lambda: g.integer(0, classes - 1) if ignored is None or g.chance(0.7) else ignored
        inputs = [g.tensor(dtype, [batch, classes] + rest, "small"),
                  g.tensor(g.one_of(["int64", "int32"]), [batch] + rest, labels)]
        if g.chance(0.4):
            inputs.append(g.tensor(dtype, [classes], "positive"))
        attributes = g.maybe(0.7, reduction=g.one_of(["none", "sum", "mean"]))
        if ignored is not None:
            attributes["ignore_index"] = ignored
        g.node(inputs, count=1 if negative else g.integer(1, 2), tolerance=(1e-3, 1e-4), **attributes)
    return build


OPERATORS = {
    "ReduceSum": ((7, 11, 13), reduce_(REDUCED)), "ReduceMean": ((7, 11, 13, 18), reduce_(REDUCED)),
    "ReduceMax": ((7, 11, 12, 13, 18, 20), reduce_(REDUCED + ["int8", "uint8"])),
    "ReduceMin": ((7, 11, 12, 13, 18, 20), reduce_(REDUCED + ["int8", "uint8"])),
    "ReduceProd": ((7, 11, 13, 18), reduce_(REDUCED, "small")), "ReduceL1": ((7, 11, 13, 18), reduce_(REDUCED)),
    "ReduceL2": ((7, 11, 13, 18), reduce_(REDUCED, "small")),
    "ReduceLogSum": ((7, 11, 13, 18), reduce_(REDUCED, "positive")),
    "ReduceLogSumExp": ((7, 11, 13, 18), reduce_(REDUCED, "small")),
    "ReduceSumSquare": ((7, 11, 13, 18), reduce_(REDUCED, "small")),
    "ArgMax": ((7, 11, 12, 13), arg_reduce), "ArgMin": ((7, 11, 12, 13), arg_reduce),
    "Softmax": ((7, 11, 13), softmax), "LogSoftmax": ((7, 11, 13), softmax), "Hardmax": ((7, 11, 13), hardmax),
    "CumSum": ((11, 14), cum_sum), "BatchNormalization": ((7, 9, 14, 15), batch_norm),
    "InstanceNormalization": ((7, 22), instance_norm), "LayerNormalization": ((17,), layer_norm),
    "RMSNormalization": ((23,), rms_norm), "GroupNormalization": ((18, 21), group_norm),
    "MeanVarianceNormalization": ((9, 13), mean_variance), "LpNormalization": ((7, 22), lp_norm),
    "LRN": ((7, 13), lrn), "NegativeLogLikelihoodLoss": ((12, 13, 22), loss(True)),
    "SoftmaxCrossEntropyLoss": ((12, 13), loss(False)),
}
