#!/usr/bin/env python3
"""Writes odd/: models that say something odd and are right all the same, with inputs and expected outputs.

Run it with Debian's python3-onnx after adding a function here, add a line to odd/cases.txt, and commit what it wrote.
A function gives a model, its inputs and its outputs.
"""
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
FLOAT, INT64, UINT16, BFLOAT16 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT16, TensorProto.BFLOAT16
makers = {}


def odd(make):
    makers[make.__name__] = make
    return make


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" ") if inputs else [], outputs.split(" "), **attributes)


def model(nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, "odd", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def ints(name, *values):
    return helper.make_tensor(name, INT64, [len(values)], values)


X = (np.arange(6, dtype=np.float32) - 2.5).reshape(2, 3)
RELU = np.maximum(X, 0)


@odd
def unknown_dim():
    """A dim of -1 is one that is not known."""
    return model([node("Relu", "x", "y")], [value("x", [-1, 3])], [value("y", [-1, 3])]), [X], [RELU]


@odd
def unknown_attribute():
    return model([node("Relu", "x", "y", flavour="vanilla")], [value("x", [2, 3])], [value("y", [2, 3])]), [X], [RELU]


@odd
def output_shape_lie():
    return model([node("Relu", "x", "y")], [value("x", [2, 3])], [value("y", [2, 7])]), [X], [RELU]


@odd
def output_rank_lie():
    return model([node("Relu", "x", "y")], [value("x", [2, 3])], [value("y", [6])]), [X], [RELU]


@odd
def squeeze_empty_axes():
    """ONNX Runtime 1.27 takes axes that name nothing like axes that are not given."""
    nodes = [node("Squeeze", "x axes", "y")]
    x = X.reshape(1, 2, 1, 3)
    return model(nodes, [value("x", [1, 2, 1, 3])], [value("y", [2, 3])], [ints("axes")]), [x], [X]


@odd
def mean_variance_rank3():
    nodes = [node("MeanVarianceNormalization", "x", "y")]
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 1.5
    mean, deviation = x.mean((0, 2), keepdims=True), x.std((0, 2), keepdims=True)
    y = ((x - mean) / (deviation + 1e-9)).astype(np.float32)
    return model(nodes, [value("x", [2, 3, 4])], [value("y", [2, 3, 4])]), [x], [y]


@odd
def bfloat16_as_uint16():
    """The data of the test are tensors of uint16; the graph's are of bfloat16."""
    bits = (X.view(np.uint32) >> 16).astype(np.uint16)
    made = model([node("Neg", "x", "y")], [value("x", [2, 3], BFLOAT16)], [value("y", [2, 3], BFLOAT16)])
    return made, [bits], [bits ^ np.uint16(0x8000)]


def branch(name, nodes, output, initializers=()):
    return helper.make_graph(nodes, name, [], [value(output, None)], list(initializers))


@odd
def names_used_again():
    """Branches that give the names of outer values, also one which they read first, to values of their own."""
    then_branch = branch("then", [node("Neg", "x", "x"), node("Add", "x w", "w")], "w")
    own = helper.make_tensor("w", FLOAT, [1], [100.0])
    else_branch = branch("else", [node("Add", "x w", "y")], "y", [own])
    weight = helper.make_tensor("w", FLOAT, [1], [10.0])
    nodes = [
        node("If", "c", "y", then_branch=then_branch, else_branch=else_branch),
        node("If", "constant_true", "z", then_branch=then_branch, else_branch=else_branch),
    ]
    true = helper.make_tensor("constant_true", TensorProto.BOOL, [], [True])
    inputs = [value("x", [2, 3]), value("c", [], TensorProto.BOOL)]
    made = model(nodes, inputs, [value("y", [2, 3]), value("z", [2, 3])], [weight, true])
    return made, [X, np.array(False)], [X + 100, 10 - X]


@odd
def loop_names_used_again():
    """A loop's body that names its state and its results as the graph around it does."""
    body = helper.make_graph(
        [node("Add", "y x", "y_next"), node("Identity", "go", "go_next"), node("Neg", "y_next", "x")],
        "body",
        [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("y", [2, 3])],
        [value("go_next", [], TensorProto.BOOL), value("y_next", [2, 3])],
    )
    trips = helper.make_tensor("trips", INT64, [], [3])
    made = model([node("Loop", "trips  x", "y", body=body)], [value("x", [2, 3])], [value("y", [2, 3])], [trips])
    return made, [X], [4 * X]


def function(name, inputs, outputs, nodes, domain="mine", overload=b""):
    made = helper.make_function(domain, name, inputs, outputs, nodes, [helper.make_opsetid("", 18)])
    if overload:
        made.MergeFromString(bytes([13 << 3 | 2, len(overload)]) + overload)  # a field that is newer than our schema
    return made


def call(name, inputs, outputs, overload=b""):
    made = node(name, inputs, outputs)
    made.domain = "mine"
    if overload:
        made.MergeFromString(bytes([8 << 3 | 2, len(overload)]) + overload)
    return made


@odd
def function_overloads():
    """Two functions of one name (IR version 10), one that calls the other, and one without an overload's name."""
    made = model([call("f", "x", "a", b"twice"), call("f", "a", "b", b"negative"), call("f", "b", "y")],
                 [value("x", [2, 3])], [value("y", [2, 3])])
    made.ir_version = 10
    made.opset_import.append(helper.make_opsetid("mine", 1))
    made.functions.extend([
        function("f", ["x"], ["y"], [node("Add", "x x", "y")], overload=b"twice"),
        function("f", ["x"], ["y"], [call("f", "x", "t", b"twice"), node("Neg", "t", "y")], overload=b"negative"),
        function("f", ["x"], ["y"], [node("Relu", "x", "y")]),
    ])
    made.functions[1].opset_import.append(helper.make_opsetid("mine", 1))
    return made, [X], [np.maximum(-4 * X, 0)]


@odd
def function_absent_input():
    """An optional input that a call leaves out is absent in the body, and in a branch of the body, too; an output that
    nobody reads; a value of the caller that a branch reads; IR version 13."""
    clip = helper.make_graph([node("Clip", "x low high", "then_y")], "then", [], [value("then_y", [2, 3])])
    other = helper.make_graph([node("Neg", "x", "else_y")], "else", [], [value("else_y", [2, 3])])
    body = [node("Clip", "x low high", "t"), node("If", "flag", "y", then_branch=clip, else_branch=other), node("Neg", "t", "unused")]
    made = model([call("g", "x flag  high", "y"), node("Identity", "x", "unused")],
                 [value("x", [2, 3]), value("flag", [], TensorProto.BOOL)], [value("y", [2, 3])],
                 [helper.make_tensor("high", FLOAT, [], [1.0])])
    made.ir_version = 13
    made.opset_import.append(helper.make_opsetid("mine", 1))
    made.functions.append(function("g", ["x", "flag", "low", "high"], ["y", "unused"], body))
    return made, [X, np.array(True)], [np.minimum(X, 1)]


def graph(nodes, inputs, outputs, initializers=()):
    return helper.make_graph(nodes, "inner", inputs, outputs, list(initializers))


@odd
def captures():
    """A branch inside of a loop's body that reads an input and a weight of the main graph, and the loop's state."""
    then_branch = graph([node("Add", "x state", "t")], [], [value("t", None)])
    else_branch = graph([node("Sub", "state w", "e")], [], [value("e", None)])
    body = graph(
        [node("Identity", "go", "go_next"), node("ReduceSum", "state", "sum", keepdims=0),
         node("Greater", "sum zero", "flag"), node("If", "flag", "next", then_branch=then_branch, else_branch=else_branch),
         node("Identity", "next", "row")],
        [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("state", [2, 3])],
        [value("go_next", [], TensorProto.BOOL), value("next", [2, 3]), value("row", [2, 3])])
    w = np.array([-1, -2, -3], np.float32)
    made = model([node("Loop", "trips  start", "y rows", body=body)], [value("x", [2, 3]), value("start", [2, 3])],
                 [value("y", [2, 3]), value("rows", [3, 2, 3])],
                 [numpy_helper.from_array(w, "w"), helper.make_tensor("trips", INT64, [], [3]),
                  helper.make_tensor("zero", FLOAT, [], [0.0])])
    state, rows = np.zeros((2, 3), np.float32), []
    for _ in range(3):
        state = X + state if state.sum() > 0 else state - w
        rows.append(state)
    return made, [X, np.zeros((2, 3), np.float32)], [state, np.stack(rows)]


@odd
def captured_result():
    """Branches without nodes, whose results are a value of the graph around them and a weight of their own."""
    outer, own = graph([], [], [value("x", None)]), graph([], [], [value("k", [2, 3])], [numpy_helper.from_array(RELU, "k")])
    made = model([node("If", "c", "y", then_branch=outer, else_branch=own),
                  node("If", "not_c", "z", then_branch=outer, else_branch=own)],
                 [value("x", [2, 3]), value("c", [], TensorProto.BOOL), value("not_c", [], TensorProto.BOOL)],
                 [value("y", [2, 3]), value("z", [2, 3])])
    return made, [X, np.array(True), np.array(False)], [X, RELU]


@odd
def unused_parts():
    """An input, nodes, weights, and value_info that nothing reads, one weight of a type that we do not have; two nodes
    of one name; IR version 3, where weights are inputs, too."""
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="n"), helper.make_node("Add", ["a", "w"], ["y"], name="n"),
             node("Neg", "x", "dead"), node("Mul", "dead dead", "deader")]
    strange = TensorProto(name="strange", data_type=TensorProto.COMPLEX64, dims=[1], raw_data=bytes(8))
    made = model(nodes, [value("x", [2, 3]), value("w", [3]), value("unused", [7])], [value("y", [2, 3])],
                 [numpy_helper.from_array(np.ones(3, np.float32), "w"),
                  numpy_helper.from_array(np.ones(5, np.float32), "unused_weight"), strange], opset=11)
    made.ir_version = 3
    made.graph.value_info.append(value("nothing", [3]))
    return made, [X, np.zeros(7, np.float32)], [RELU + 1]


@odd
def results_without_nodes():
    """A weight and an input as outputs, and one value as two; a node's first output that nobody takes."""
    made = model([node("Relu", "x", "z"), helper.make_node("TopK", ["x", "k"], ["", "places"])], [value("x", [2, 3])],
                 [value("w", [3]), value("x", [2, 3]), value("z", [2, 3]), value("z", [2, 3]), value("places", [2, 2], INT64)],
                 [numpy_helper.from_array(np.ones(3, np.float32), "w"), ints("k", 2)])
    return made, [X], [np.ones(3, np.float32), X, RELU, RELU, np.array([[2, 1], [2, 1]])]


@odd
def no_elements():
    """A batch of nothing through a product, a convolution, sums and layouts."""
    nodes = [node("MatMul", "x w", "a"), node("Softmax", "a", "p"), node("Concat", "p a", "c", axis=0),
             node("Transpose", "c", "y", perm=[1, 0]), node("ReduceSum", "a axes", "sum", keepdims=0),
             node("Conv", "image filter", "convolved", pads=[1, 1, 1, 1])]
    made = model(nodes, [value("x", ["n", 3]), value("image", ["n", 3, 4, 4])],
                 [value("y", [4, "m"]), value("sum", [4]), value("convolved", ["n", 2, 4, 4])],
                 [numpy_helper.from_array(np.ones((3, 4), np.float32), "w"), ints("axes", 0),
                  numpy_helper.from_array(np.ones((2, 3, 3, 3), np.float32), "filter")])
    return made, [np.zeros((0, 3), np.float32), np.zeros((0, 3, 4, 4), np.float32)], [
        np.zeros((4, 0), np.float32), np.zeros(4, np.float32), np.zeros((0, 2, 4, 4), np.float32)]


@odd
def rank_zero():
    """Scalars through arithmetic, a list of two, a choice from it, and their shape and size."""
    nodes = [node("Add", "x one", "a"), node("Unsqueeze", "a axes", "b"), node("Concat", "b b", "c", axis=0),
             node("Gather", "c i", "y"), node("ReduceSum", "y", "z"), node("Shape", "y", "shape"), node("Size", "y", "size")]
    made = model(nodes, [value("x", [])], [value("y", []), value("z", []), value("shape", [0], INT64), value("size", [], INT64)],
                 [helper.make_tensor("one", FLOAT, [], [1.0]), ints("axes", 0), helper.make_tensor("i", INT64, [], [1])])
    return made, [np.float32(2.5)], [np.float32(3.5), np.float32(3.5), np.zeros(0, np.int64), np.array(1)]


@odd
def function_captures():
    """A function that calls another one, and a branch in it that reads what the call gave; one with an older opset than
    the model, where axes are an attribute, which is the call's."""
    scale = function("scale", ["a"], ["b"], [node("Constant", "", "k", value_float=2.0), node("Mul", "a k", "b")])
    twice = function("twice", ["a", "c"], ["b"], [
        call("scale", "a", "t"),
        node("If", "c", "b", then_branch=graph([node("Neg", "t", "q")], [], [value("q", None)]),
             else_branch=graph([node("Identity", "a", "q")], [], [value("q", None)]))])
    total = node("ReduceSum", "a", "b", keepdims=0)
    axes = total.attribute.add(name="axes", ref_attr_name="dims")
    axes.type = 7  # INTS
    old = helper.make_function("mine", "total", ["a"], ["b"], [total], [helper.make_opsetid("", 11)], ["dims"])
    last = call("total", "h", "y")
    last.attribute.append(helper.make_attribute("dims", [1]))
    made = model([call("twice", "x c", "h"), last], [value("x", [2, 3]), value("c", [], TensorProto.BOOL)], [value("y", [2])])
    twice.opset_import.append(helper.make_opsetid("mine", 1))
    made.opset_import.append(helper.make_opsetid("mine", 1))
    made.functions.extend([scale, twice, old])
    return made, [X, np.array(True)], [(-2 * X).sum(1)]


# Operators that are evaluated while importing where their operands are shapes: attributes, and further operands.
FOLDED = [
    ("Cast", dict(to=FLOAT, saturate=1), []),
    ("Cast", dict(to=FLOAT, saturate=0, round_mode="up"), []),
    ("Cast", dict(to=TensorProto.INT32, saturate=1), []),
    ("Cast", dict(to=TensorProto.BOOL), []),
    ("Mod", dict(fmod=0), [ints("c", 2)]),
    ("Mod", dict(fmod=1), [ints("c", 2)]),
    ("Gather", dict(axis=0), [ints("c", 2, -1)]),
    ("Gather", dict(axis=-1), [ints("c", 1)]),
    ("Concat", dict(axis=0), [ints("c", 9, 8)]),
    ("Concat", dict(axis=-1), [ints("c", 9, 8)]),
    ("ReduceProd", dict(keepdims=0, axes=[0]), []),
    ("ReduceProd", dict(keepdims=1, axes=[-1]), []),
    ("ReduceSum", dict(keepdims=0, noop_with_empty_axes=1), []),
    ("ReduceSum", dict(keepdims=1, noop_with_empty_axes=0), []),
    ("ReduceSum", dict(noop_with_empty_axes=1), [ints("c", 0)]),
    ("ReduceMax", dict(keepdims=0), []),
    ("ReduceMin", dict(keepdims=1), []),
    ("Reshape", dict(allowzero=1), [ints("c", 3)]),
    ("Reshape", dict(allowzero=0), [ints("c", 0)]),
    ("Slice", dict(), [ints("c", 0), ints("d", 9), ints("e", -1), ints("f", 2)]),
    ("Slice", dict(), [ints("c", -1), ints("d", -9), ints("e", 0), ints("f", -1)]),
    ("Squeeze", dict(), []),
    ("Unsqueeze", dict(), [ints("c", -1)]),
]


@odd
def folded_twins():
    """Each operator on a shape, known while importing, and on the same numbers as an input: pairs of outputs."""
    nodes, outputs, initializers = [node("Shape", "x", "folded", start=0, end=3)], [], []
    for i, (op, attributes, operands) in enumerate(FOLDED):
        names = []
        for operand in operands:
            operand.name = f"{operand.name}_{i}"
            names.append(operand.name)
        initializers += operands
        for kind in ("folded", "given"):
            name = f"{op.lower()}_{i}_{kind}"
            nodes.append(node(op, " ".join([kind] + names), name, **attributes))
            outputs.append(value(name, None, attributes.get("to", INT64)))
    # Fractions beside dims.
    halves = helper.make_tensor("halves", FLOAT, [2], [0.5, -1.5])
    initializers.append(halves)
    for kind in ("folded", "given"):
        nodes.append(node("Cast", kind, f"float_{kind}", to=FLOAT))
        nodes.append(node("Concat", f"float_{kind} halves", f"mixed_{kind}", axis=0))
        outputs.append(value(f"mixed_{kind}", None))
    inputs = [value("x", [2, "n", 4]), value("given", [3], INT64)]
    return model(nodes, inputs, outputs, initializers, opset=17), [np.zeros((2, 3, 4), np.float32),
                                                                  np.array([2, 3, 4])], None


def main():
    for name, make in makers.items():
        made, inputs, outputs = make()
        folder = HERE / "odd" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(made.SerializeToString())
        for kind, tensors in (("input", inputs), ("output", outputs or [])):
            for i, tensor in enumerate(tensors):
                data = numpy_helper.from_array(np.asarray(tensor), f"{kind}_{i}").SerializeToString()
                (folder / f"{kind}_{i}.pb").write_bytes(data)


if __name__ == "__main__":
    main()
