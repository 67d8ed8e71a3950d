"""Operators whose results are random: dtype and shape are compared, and the elements with their limits."""
import wire


def number_type(g):
    """Attributes that choose the dtype of random floats."""
    return g.maybe(0.6, dtype=wire.ELEMENT_TYPES[g.one_of(["float32", "float64"])])


def seed(g):
    return g.maybe(0.5, seed=g.integer(0, 100) / 4)


def uniform(like):
    def build(g):
        low = g.integer(-16, 16) / 8
        bounds = g.maybe(0.7, low=low, high=low + g.integer(1, 16) / 8)
        if len(bounds) == 1 and bounds.get("low", 0) >= bounds.get("high", 1):
            bounds = {}
        g.random_within(bounds.get("low", 0.0), bounds.get("high", 1.0))
        source(g, like, bounds)
    return build


def normal(like):
    def build(g):
        shape = g.maybe(0.7, mean=g.integer(-16, 16) / 8, scale=g.integer(1, 16) / 8)
        mean, scale = shape.get("mean", 0.0), shape.get("scale", 1.0)
        g.random_within(mean - 12 * scale, mean + 12 * scale)
        source(g, like, shape)
    return build


def source(g, like, attributes):
    attributes = attributes | seed(g)
    if not like:
        return g.node([], shape=g.shape(1, 4), **attributes, **number_type(g))
    dtype = g.one_of(["float32", "float64", "int64", "bool", "float16", "uint8"])
    x = g.tensor(dtype, g.shape())
    chosen = number_type(g)
    if not dtype.startswith("float"):
        chosen = {"dtype": wire.ELEMENT_TYPES["float32"]}
    g.node([x], **attributes, **chosen)


def bernoulli(g):
    dtype = g.one_of(["float32", "float64"])
    edge = g.one_of([0.0, 1.0]) if g.chance(0.2) else None
    g.random_within(edge if edge is not None else 0.0, edge if edge is not None else 1.0)
    x = g.tensor(dtype, g.shape(), lambda: edge if edge is not None else g.integer(0, 8) / 8)
    g.node([x], **seed(g), **g.maybe(0.5, dtype=wire.ELEMENT_TYPES[g.one_of(["float32", "float64", "int32", "int64", "bool", "uint8"])]))


def multinomial(g):
    classes = g.integer(1, 5)
    g.random_within(0, classes - 1)
    x = g.tensor(g.one_of(["float32", "float32", "float16"]), [g.integer(1, 4), classes], "small")
    g.node([x], **seed(g), **g.maybe(0.6, sample_size=g.integer(1, 6), dtype=wire.ELEMENT_TYPES[g.one_of(["int32", "int64"])]))


def dropout_in_training(g):
    g.opset = max(g.opset, 12)
    ratio = g.integer(0, 7) / 8
    dtype = g.one_of(["float32", "float64"])
    x = g.tensor(dtype, g.shape(), "small")
    most = max([abs(item) for item in x.data] + [0.0]) / (1 - ratio)
    g.random_within(-max(most, 1.0) * 1.001, max(most, 1.0) * 1.001)
    inputs = [x, g.scalar("float32", ratio) if g.chance(0.7) else "", g.scalar("bool", True)]
    if inputs[1] == "":
        g.random_within(-100, 100)
    g.node(inputs, op="Dropout", count=g.integer(1, 2), **g.maybe(0.5, seed=g.integer(0, 100)))


OPERATORS = {
    "RandomUniform": ((7, 22), uniform(False)), "RandomUniformLike": ((7, 22), uniform(True)),
    "RandomNormal": ((7, 22), normal(False)), "RandomNormalLike": ((7, 22), normal(True)),
    "Bernoulli": ((15, 22), bernoulli), "Multinomial": ((7, 22), multinomial),
    "DropoutInTraining": ((12, 13, 22), dropout_in_training),
}
