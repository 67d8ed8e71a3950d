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
