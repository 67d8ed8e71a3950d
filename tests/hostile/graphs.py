"""Files that are no models, graphs that do not hold together, and functions without end, for make.py."""
import onnx
from onnx import TensorProto, helper

from builders import FLOAT, add_weight, floats, model, model_file, node, value

# --- files that are no models


@model_file
def empty():
    return b""


@model_file
def not_a_model():
    return b"this is a text about neural networks, not a neural network\n"


@model_file
def truncated():
    whole = add_weight(floats("w", 2, 3)).SerializeToString()
    return whole[: len(whole) * 2 // 3]


@model_file
def deep_nesting():
    """If inside If, deeper than the limit of messages in messages."""
    graph = helper.make_graph([node("Relu", "x", "r")], "leaf", [], [value("r")])
    for _ in range(200):
        graph = helper.make_graph([node("If", "c", "r", then_branch=graph)], "branch", [], [value("r")])
    return model(list(graph.node), inputs=[value("x"), value("c", (), TensorProto.BOOL)], outputs=[value("r")])


# --- graphs that do not hold together


@model_file
def dangling_input():
    return model([node("Add", "x nowhere", "y")])


@model_file
def dangling_output():
    return model([node("Relu", "x", "z")])


@model_file
def no_graph_output():
    return model([node("Relu", "x", "y")], outputs=[])


@model_file
def duplicate_output():
    return model([node("Relu", "x", "y", "first"), node("Neg", "x", "y", "second")])


@model_file
def duplicate_input():
    return model([node("Relu", "x", "y")], inputs=[value("x"), value("x", (4,))])


@model_file
def cyclic():
    return model([node("Add", "x b", "a", "head"), node("Relu", "a", "b", "tail"), node("Neg", "b", "y")])


@model_file
def self_cyclic():
    return model([node("Add", "x y", "y", "ouroboros")])


@model_file
def no_opset():
    made = model([node("Relu", "x", "y")])
    del made.opset_import[:]
    return made


@model_file
def no_graph():
    made = model([node("Relu", "x", "y")])
    made.ClearField("graph")
    return made


@model_file
def untyped_input():
    return model([node("Relu", "x", "y")], inputs=[onnx.ValueInfoProto(name="x")])


@model_file
def missing_operand():
    return model([node("Add", "x", "y")])


@model_file
def surplus_operand():
    return model([node("Relu", "x x x", "y")])


@model_file
def control_characters():
    """Names that would break or colour a terminal, and one that is not UTF-8."""
    made = model([node("Add", "x nowhere", "y", "new\nline\x1b[31mred\x00nul")])
    return made.SerializeToString().replace(b"nowhere", b"now\xff\xfere")


@model_file
def long_name():
    return model([node("Add", "x nowhere", "y", "n" * 5000)])


# --- model functions


def function(name, nodes):
    return helper.make_function(
        "local", name, ["a"], ["r"], nodes, [helper.make_opsetid("", 13), helper.make_opsetid("local", 1)]
    )


def call(name, inputs, outputs):
    return node(name, inputs, outputs, domain="local")


@model_file
def names_for_a_terminal():
    """A model that is right, in which every name would turn the terminal red, forge a line, or run backwards."""

    def name(text):
        return f"{text}\nEVIL {text}\x1b[31m\u009b31m\u202e\x7f"

    x = helper.make_tensor_value_info(name("x"), FLOAT, [name("batch"), 3])
    y = helper.make_tensor_value_info(name("y"), FLOAT, [name("batch"), 3])
    nodes = [
        helper.make_node("MatMul", [name("x"), name("w")], [name("h")], name("the_matmul")),
        helper.make_node("Softmax", [name("h")], [name("y")], name("the_softmax")),
    ]
    weight = floats(name("w"), 3, 3)
    return helper.make_model(
        helper.make_graph(nodes, name("graph"), [x], [y], [weight]), opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8, producer_name=name("producer"),
    )


@model_file
def refused_and_wrong():
    """An operator that does not exist beside a node that is wrong."""
    return model([node("Frobnicate", "x", "a", "mystery"), node("Relu", "x x x", "y", "the_relu")])


@model_file
def recursive_function():
    return model(
        [call("forever", "x", "y")], domains=["local"], functions=[function("forever", [call("forever", "a", "r")])]
    )


@model_file
def mutual_recursion():
    return model(
        [call("ping", "x", "y")], domains=["local"],
        functions=[function("ping", [call("pong", "a", "r")]), function("pong", [call("ping", "a", "r")])],
    )


@model_file
def function_bomb():
    """Forty functions, each calling the next one twice: 2^40 nodes when expanded."""
    last = 40
    bombs = [
        function(f"f{depth}", [call(f"f{depth + 1}", "a", "m"), call(f"f{depth + 1}", "m", "r")])
        for depth in range(last)
    ]
    bombs.append(function(f"f{last}", [node("Relu", "a", "r")]))
    return model([call("f0", "x", "y")], domains=["local"], functions=bombs)
