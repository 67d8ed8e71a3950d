"""Draws models of single operators within the specification, with inputs: dtypes, shapes (of rank 0, without elements,
with open dims), attributes, constants and graph inputs, special numbers.

usage: draw.py FOLDER COUNT SEED OPERATOR...   writes FOLDER/OPERATOR/0/model.onnx, test_data_set_0/input_0.pb, about.txt
       draw.py --list                          the operators, one a line

about.txt holds one line that describes the draw, and one with the relative and the absolute tolerance; the least and the
largest element follow there where the results are random, so that nothing else can be compared. A draw that knows its
results by a formula writes them as test_data_set_0/expected_0.pb.
"""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire

FLOATS = ["float32", "float32", "float32", "float64", "float16"]
INTEGERS = ["int32", "int64", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"]
NUMBERS = FLOATS + FLOATS + INTEGERS
ALL = NUMBERS + ["bool", "bool"]
# Those that onnxruntime-node cannot pass: they stay within the model.
INNER_TYPES = ["bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "int4", "uint4"]
TOLERANCES = {"float32": (1e-4, 1e-5), "float64": (1e-6, 1e-9), "float16": (4e-3, 2e-3)}
NEWEST_OPSET = 26  # the newest that ONNX Runtime runs
LATER_OPSETS = [13, 17, 18, 21, 23, 24, 25, NEWEST_OPSET]


class Unfit(Exception):
    """The draw leads nowhere; the next one is made in its place."""


class Operand:
    def __init__(self, name, dtype, shape, data):
        self.name, self.dtype, self.shape, self.data = name, dtype, list(shape), data

    @property
    def rank(self):
        return len(self.shape)


def size_of(shape):
    size = 1
    for dim in shape:
        size *= dim
    return size


def bits_of(dtype):
    return 8 if dtype == "bool" else int("".join(c for c in dtype if c.isdigit()))


def is_float(dtype):
    return "float" in dtype


def limits_of(dtype):
    bits = bits_of(dtype)
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


class Draw:
    def __init__(self, op, versions, seed):
        self.random = random.Random(seed)
        self.op = op
        self.opset = self.one_of(versions) if isinstance(versions, (list, tuple)) else versions
        if self.chance(0.5) and "." not in op:
            self.opset = max(self.opset, self.one_of([v for v in versions] + LATER_OPSETS))
        self.nodes, self.initializers, self.inputs, self.outputs, self.values = [], [], [], [], []
        self.count = 0
        self.words = []
        self.tolerance = [0.0, 0.0]
        self.limits = None    # of the elements of random results
        self.expected = []    # results by a formula
        self.is_wild = self.chance(0.2)   # whether there are special numbers in it
        self.is_open = self.chance(0.4)   # whether dims are symbols
        self.is_small = self.chance(0.06)  # whether many tensors have no elements, or are scalars
        self.symbols = {}

    # ---- Numbers
    def chance(self, probability):
        return self.random.random() < probability

    def one_of(self, items):
        return self.random.choice(list(items))

    def integer(self, low, high):
        return self.random.randint(low, high)

    def dim(self, zero=0.04):
        return 0 if self.chance(10 * zero if self.is_small else zero) else 1 if self.chance(0.15) else self.integer(2, 5)

    def shape(self, low=0, high=4, zero=0.04):
        if self.is_small and low == 0 and self.chance(0.5):
            return []
        return [self.dim(zero) for _ in range(self.integer(low, high))]

    def axis(self, rank, insert=0):
        """An axis of that rank, sometimes counted from the end."""
        if rank + insert == 0:
            raise Unfit
        axis = self.integer(0, rank + insert - 1)
        return axis - rank - insert if self.chance(0.4) else axis

    def partner(self, shape):
        """A shape that broadcasts with this one, in one direction or in both."""
        other = [1 if self.chance(0.25) else dim for dim in shape]
        if self.chance(0.4):
            other = other[self.integer(0, len(other)):]
        elif self.chance(0.1) and len(shape) < 4:
            other = [self.dim()] + other
        return other

    def permutation(self, count):
        return self.random.sample(range(count), count)

    def maybe(self, probability=0.5, **attributes):
        """These attributes, each with this probability."""
        return {key: value for key, value in attributes.items() if self.chance(probability)}

    # ---- Contents
    def element(self, dtype, kind):
        if dtype == "bool":
            return self.chance(0.5)
        if dtype == "string":
            return self.one_of(["", "a", "b", "A", "ab", "abc", "aBc", "Ünï", "日本", "a b", "x,y", "1", "-2.5", "cat", "dog"])
        if callable(kind):
            return kind()
        if is_float(dtype):
            if kind == "any" and self.is_wild and self.chance(0.3):
                return self.one_of([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 65504.0, -65504.0, 1e-7, 0.5, -2.5]
                                   + ([1e30, -1e30, 1e-40] if dtype != "float16" else []))
            if kind == "positive":
                return self.integer(1, 32) / 8
            if kind == "unit":
                return self.integer(-8, 8) / 8
            if kind == "fine":
                return self.random.gauss(0, 1)
            return self.integer(-32, 32) / 8
        low, high = limits_of(dtype)
        if kind == "any" and self.is_wild and self.chance(0.3):
            return self.one_of([low, high, low + 1, high - 1, 0])
        if kind == "positive":
            return self.integer(1, 5)
        return self.integer(max(low, -5), 5)

    # ---- Graph
    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def tensor(self, dtype, shape, kind="any", constant=None):
        """A graph input or an initializer. `kind` is "any", "positive", "unit", "small", "fine" or a function."""
        data = [self.element(dtype, kind) for _ in range(size_of(shape))]
        return self.given(dtype, shape, data, constant)

    def given(self, dtype, shape, data, constant=None):
        if size_of(shape) > 20000:
            raise Unfit
        is_constant = self.chance(0.3) if constant is None else constant
        operand = Operand(self.name("c" if is_constant else "x"), dtype, shape, data)
        if is_constant:
            self.initializers.append(wire.tensor(operand.name, dtype, shape, data))
        else:
            dims = None if self.is_open and self.chance(0.03) else [self.declared(dim) for dim in shape]
            self.inputs.append(wire.value_info(operand.name, dtype, dims))
            self.values.append(wire.tensor(operand.name, dtype, shape, data))
        shown = ",".join(str(dim) for dim in shape)
        self.words.append(f"{'const ' if is_constant else ''}{dtype}[{shown}]")
        if size_of(shape) <= 8 and (is_constant or dtype in ("int64", "int32")):
            self.words[-1] += "=" + ",".join(str(item) for item in data)
        return operand

    def declared(self, dim):
        if not self.is_open or self.chance(0.3) or (dim == 1 and self.chance(0.95)):
            return dim
        return f"d{dim}" if dim != 1 else self.name("one")

    def ints(self, data, dtype="int64", constant=0.8):
        return self.given(dtype, [len(data)], list(data), self.chance(constant))

    def scalar(self, dtype, value, constant=0.7, shape=()):
        return self.given(dtype, shape, [value], self.chance(constant))

    def inner(self, op, inputs, count=1, domain="", **attributes):
        """A node whose results are not those of the model."""
        names = [item.name if isinstance(item, Operand) else item for item in inputs]
        while names and not names[-1]:
            names.pop()
        results = [self.name("y") for _ in range(count)]
        self.nodes.append(wire.node(op, names, results, domain, attributes))
        return results if count > 1 else results[0]

    def node(self, inputs, count=1, domain="", tolerance=None, op=None, **attributes):
        """The operator itself; its results are those of the model."""
        names = [item.name if isinstance(item, Operand) else item for item in inputs]
        self.words += [f"{key}={self.show(value)}" for key, value in attributes.items()]
        for item in inputs:
            if isinstance(item, Operand):
                self.allow(*TOLERANCES.get(item.dtype, (0, 0)))
        if tolerance:
            self.allow(*tolerance)
        while names and not names[-1]:
            names.pop()
        results = [self.name("y") for _ in range(count)]
        self.nodes.append(wire.node(op or self.op.rpartition(".")[2], names, results, domain, attributes))
        self.outputs += results
        self.call = inputs, attributes
        return results

    def expect(self, dtype, shape, data):
        """States the next result of the model, as an independent formula gives it."""
        self.expect_file(wire.tensor("expected", dtype, shape, list(data)))

    def expect_file(self, content):
        self.expected.append(content)

    def expect_by(self, formula):
        """States the results by a formula of contrib_formulas.py."""
        if not self.expected:
            for result in formula(self, *self.call):
                self.expect(*result)

    def random_within(self, low, high):
        """States that the results are random, and between these."""
        self.limits = (low, high)

    @staticmethod
    def show(value):
        return "{...}" if isinstance(value, (wire.Graph, wire.TensorBytes)) else str(value).replace(" ", "")

    def allow(self, relative, absolute):
        self.tolerance = [max(self.tolerance[0], relative), max(self.tolerance[1], absolute)]

    def outputs_as(self, dtype):
        """Casts the results so far, which stay within the model, to this dtype."""
        results, self.outputs = self.outputs, []
        self.outputs = [self.inner("Cast", [name], to=wire.ELEMENT_TYPES[dtype]) for name in results]

    def narrow(self, dtype, shape, kind="any"):
        """A tensor of any dtype; one that inputs cannot have comes from a Cast."""
        if dtype not in INNER_TYPES:
            return self.tensor(dtype, shape, kind)
        bound = {"uint4": (0, 15), "int4": (-8, 7)}.get(dtype)
        integer = (lambda: float(self.integer(*bound))) if bound else kind if callable(kind) else (lambda: self.integer(-16, 16) / 8)
        x = self.tensor("float32", shape, integer)
        self.words.append(f"as {dtype}")
        return Operand(self.inner("Cast", [x], to=wire.ELEMENT_TYPES[dtype]), dtype, shape, x.data)

    def subgraph(self, inputs, build):
        """A graph of its own: inputs are (name, dtype, dims); build() adds nodes and returns the names of outputs."""
        kept = self.nodes, self.initializers
        self.nodes, self.initializers = [], []
        outputs = build()
        content = wire.graph(self.nodes, self.initializers, [wire.value_info(*item) for item in inputs],
                             [wire.value_info(*item) if isinstance(item, tuple) else wire.value_info(item)
                              for item in outputs])
        self.nodes, self.initializers = kept
        return wire.Graph(content)

    def write(self, folder):
        os.makedirs(f"{folder}/test_data_set_0", exist_ok=True)
        opsets = {"": self.opset if "." not in self.op or self.opset > 6 else 17}
        if "." in self.op:
            domain = self.op.rsplit(".", 1)[0]
            opsets[domain] = 1 if domain == "com.microsoft" else self.ml_version()
        content = wire.graph(self.nodes, self.initializers, self.inputs, [wire.value_info(name) for name in self.outputs])
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(wire.model(content, opsets, 10 if self.opset > 18 else 8))
        for i, value in enumerate(self.values):
            with open(f"{folder}/test_data_set_0/input_{i}.pb", "wb") as file:
                file.write(value)
        for i, value in enumerate(self.expected):
            with open(f"{folder}/test_data_set_0/expected_{i}.pb", "wb") as file:
                file.write(value)
        numbers = self.tolerance + list(self.limits or [])
        with open(f"{folder}/about.txt", "w") as file:
            file.write(f"{self.op} {self.opset} " + " ".join(self.words) + (" wild" if self.is_wild else "")
                       + "\n" + " ".join(str(number) for number in numbers) + "\n")

    def ml_version(self):
        return getattr(self, "version", 3)


def operators():
    import elementwise, layout, index, reductions, network, quantized, control, text, learned, contrib
    import chance, contrib_layers, contrib_products, newest, training
    rows = {}
    for group in (elementwise, layout, index, reductions, network, quantized, control, text, learned, contrib, chance, newest,
                  training, contrib_layers, contrib_products):
        rows.update(group.OPERATORS)
    return rows


def main():
    from contrib_formulas import FORMULAS
    rows = operators()
    if sys.argv[1] == "--list":
        print("\n".join(rows))
        return
    folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for op in sys.argv[4:]:
        attempt = 0
        for i in range(count):
            while True:
                draw = Draw(op, rows[op][0], f"{op} {seed} {attempt}")
                attempt += 1
                try:
                    rows[op][1](draw)
                    if op in FORMULAS:
                        draw.expect_by(FORMULAS[op])
                    break
                except Unfit:
                    continue
            draw.write(f"{folder}/{op}/{i}")


if __name__ == "__main__":
    import draw  # the same module that the rows import, so that there is one class Unfit
    draw.main()
