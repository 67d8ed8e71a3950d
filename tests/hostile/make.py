#!/usr/bin/env python3
"""Writes the hostile and broken models of this folder: models/, secret.bin. Needs Debian's python3-onnx.

cases.txt says what `relaxc run` must answer to each. None may crash, hang, read out of bounds or allocate without
bound. A model is one function below, named like its file; onnx.checker would refuse most of them, so it is not asked.
The file is above 600 lines because it is one list of models.
"""
import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import values

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE / "models"
FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
HUGE = 1 << 40

makers = {}


def model_file(make):
    makers[make.__name__] = make
    return make


def value(name, shape=(2, 3), dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op, inputs, outputs, name=None, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name or f"the_{op.lower()}", **attributes)


def constant(name, array):
    return numpy_helper.from_array(numpy.asarray(array), name)


def floats(name, *shape):
    return constant(name, numpy.linspace(-1, 1, int(numpy.prod(shape)), dtype=numpy.float32).reshape(shape))


def model(nodes, initializers=(), inputs=None, outputs=None, opset=13, functions=(), domains=()):
    graph = helper.make_graph(
        nodes, "hostile", [value("x")] if inputs is None else inputs, [value("y")] if outputs is None else outputs,
        list(initializers),
    )
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def raw_tensor(name, dims, data, dtype=FLOAT):
    return TensorProto(name=name, data_type=dtype, dims=dims, raw_data=data)


def external_tensor(name, dims, location, **more):
    tensor = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def add_weight(weight, **more):
    """y = x + w, where w is the tensor under attack."""
    return model([node("Add", "x w", "y")], [weight], **more)


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


# --- operators and attributes


@model_file
def unknown_op():
    """One run reports all of it: two operators and an attribute that nobody knows."""
    return model(
        [
            node("Frobnicate", "x", "a", "mystery_one"),
            node("Relu", "a", "b", "odd_relu", flavour="vanilla"),
            node("Quux", "b", "y", "mystery_two", domain="com.example"),
        ],
        domains=["com.example"],
    )


@model_file
def bad_attr_type():
    return model(
        [node("MaxPool", "x", "y", kernel_shape=[2.0, 2.0])],
        inputs=[value("x", (1, 1, 4, 4))], outputs=[value("y", (1, 1, 3, 3))],
    )


@model_file
def missing_attr():
    return model([node("Concat", "x x", "y")], outputs=[value("y", (4, 3))])


@model_file
def conv_scalar_bias():
    return model(
        [node("Conv", "x w b", "y")], [floats("w", 4, 2, 3, 3), floats("b")],
        inputs=[value("x", (1, 2, 8, 8))], outputs=[value("y", (1, 4, 6, 6))],
    )


@model_file
def conv_wide_bias():
    return model(
        [node("Conv", "x w b", "y")], [floats("w", 1, 2, 3, 3), floats("b", 7)],
        inputs=[value("x", (1, 2, 8, 8))], outputs=[value("y", (1, 1, 6, 6))],
    )


@model_file
def norm_scale_of_other_rank():
    return model([node("LayerNormalization", "x s", "y")], [floats("s", 1, 1, 3)], opset=17)


@model_file
def group_norm_without_channels():
    return model(
        [node("GroupNormalization", "x s s", "y", num_groups=1)], [floats("s", 1)],
        inputs=[value("x", (3,))], outputs=[value("y", (3,))], opset=18,
    )


@model_file
def bad_axis():
    return model([node("Concat", "x x", "y", axis=7)], outputs=[value("y", (4, 3))])


@model_file
def bad_perm():
    return model([node("Transpose", "x", "y", perm=[0, 0])])


@model_file
def cast_to_unknown():
    return model([node("Cast", "x", "y", to=99)])


def convolution(weight_shape=(2, 1, 3, 3), **attributes):
    return model(
        [node("Conv", "x w", "y", **attributes)], [floats("w", *weight_shape)],
        inputs=[value("x", (1, 1, 8, 8))], outputs=[value("y", None)],
    )


@model_file
def wrong_rank():
    return convolution((2, 3))


@model_file
def wrong_channels():
    return convolution((2, 4, 3, 3))


@model_file
def zero_stride():
    return convolution(strides=[0, 1])


@model_file
def zero_group():
    return convolution(group=0)


@model_file
def negative_dilation():
    return convolution(dilations=[-1, 1])


@model_file
def huge_pads():
    return convolution(pads=[(1 << 62)] * 4)


@model_file
def kernel_beyond_image():
    return convolution((2, 1, 30, 30))


# --- types and shapes


@model_file
def dtype_mismatch():
    return model([node("Add", "x i", "y")], inputs=[value("x"), value("i", (2, 3), INT64)])


@model_file
def matmul_mismatch():
    return model([node("MatMul", "x w", "y")], [floats("w", 4, 5)], outputs=[value("y", (2, 5))])


@model_file
def broadcast_mismatch():
    return add_weight(floats("w", 4))


@model_file
def reshape_mismatch():
    return model([node("Reshape", "x s", "y")], [constant("s", numpy.int64([4, 2]))], outputs=[value("y", (4, 2))])


@model_file
def reshape_two_unknown():
    return model([node("Reshape", "x s", "y")], [constant("s", numpy.int64([-1, -1]))])


@model_file
def split_mismatch():
    return model(
        [node("Split", "x s", "y z", axis=1)], [constant("s", numpy.int64([1, 9]))],
        outputs=[value("y", (2, 1)), value("z", (2, 9))],
    )


@model_file
def output_type_lie():
    return model([node("Relu", "x", "y")], outputs=[value("y", (7, 7), INT64)])


@model_file
def gather_out_of_range():
    return model([node("Gather", "x i", "y")], [constant("i", numpy.int64([0, 99]))])


@model_file
def gather_far_out_of_range():
    return model([node("Gather", "x i", "y")], [constant("i", numpy.int64([-(1 << 63), (1 << 63) - 1]))])


# --- numbers that trap


def integers(op, divisor, dividend=5):
    return model(
        [node(op, "a b", "y")], [constant("a", numpy.int32([dividend] * 3)), constant("b", numpy.int32([divisor] * 3))],
        inputs=[], outputs=[value("y", (3,), INT32)],
    )


@model_file
def divide_by_zero():
    return integers("Div", 0)


@model_file
def divide_overflow():
    return integers("Div", -1, -(1 << 31))


@model_file
def modulo_by_zero():
    return integers("Mod", 0)


@model_file
def modulo_overflow():
    return integers("Mod", -1, -(1 << 31))


@model_file
def endless_range():
    scalars = [constant(name, numpy.int64(number)) for name, number in (("a", 0), ("b", 10), ("c", 0))]
    return model([node("Range", "a b c", "y")], scalars, inputs=[], outputs=[value("y", ("n",), INT64)])


# --- sizes


@model_file
def negative_dim():
    return add_weight(raw_tensor("w", [-2, 3], bytes(24)))


@model_file
def negative_input_dim():
    return model([node("Relu", "x", "y")], inputs=[value("x", (-2, 3))], outputs=[value("y", (-2, 3))])


@model_file
def huge_dim():
    return add_weight(raw_tensor("w", [HUGE], bytes(16)))


@model_file
def overflowing_dims():
    """2^32 * 2^32 elements are 0 in 64 bits: just what an empty tensor holds."""
    return add_weight(raw_tensor("w", [1 << 32, 1 << 32], b""))


@model_file
def huge_input():
    return model([node("Relu", "x", "y")], inputs=[value("x", (HUGE, HUGE))], outputs=[value("y", (HUGE, HUGE))])


@model_file
def huge_constant_of_shape():
    return model(
        [node("ConstantOfShape", "s", "y")], [constant("s", numpy.int64([HUGE, 4]))],
        inputs=[], outputs=[value("y", (HUGE, 4))],
    )


@model_file
def huge_tile():
    return model(
        [node("Tile", "x r", "y")], [constant("r", numpy.int64([HUGE, HUGE]))], outputs=[value("y", None)]
    )


@model_file
def huge_range():
    scalars = [constant(name, numpy.int64(number)) for name, number in (("a", 0), ("b", 1 << 62), ("c", 1))]
    return model([node("Range", "a b c", "y")], scalars, inputs=[], outputs=[value("y", ("n",), INT64)])


@model_file
def initializer_short():
    return add_weight(raw_tensor("w", [2, 3], bytes(20)))


@model_file
def initializer_long():
    return add_weight(raw_tensor("w", [2, 3], bytes(28)))


@model_file
def initializer_short_typed():
    return add_weight(TensorProto(name="w", data_type=FLOAT, dims=[2, 3], float_data=[1.0, 2.0]))


@model_file
def initializer_unknown_type():
    return add_weight(raw_tensor("w", [2, 3], bytes(24), dtype=77))


@model_file
def initializer_undefined_type():
    return add_weight(raw_tensor("w", [2, 3], bytes(24), dtype=0))


# --- weights in other files


@model_file
def external_ok():
    """The good one, so that the others fail for the right reason: y = x W + b with both in weights.bin."""
    weight = numpy.linspace(-1, 1, 12, dtype=numpy.float32).reshape(3, 4)
    bias = numpy.float32([0.5, -0.5, 0.25, 0])
    (MODELS / "weights.bin").write_bytes(weight.tobytes() + bytes(16) + bias.tobytes())
    x = numpy.float32([[1, 2, 3], [-1, 0.5, 0]])
    data = MODELS / "external_ok_data"
    data.mkdir(exist_ok=True)
    for name, array in (("input_0.pb", x), ("output_0.pb", x @ weight + bias)):
        (data / name).write_bytes(numpy_helper.from_array(array).SerializeToString())
    return model(
        [node("Gemm", "x w b", "y")],
        [
            external_tensor("w", [3, 4], "weights.bin", offset=0, length=48),
            external_tensor("b", [4], "weights.bin", offset=64, length=16),
        ],
        outputs=[value("y", (2, 4))],
    )


def external(location, **more):
    return add_weight(external_tensor("w", [2, 3], location, **more))


@model_file
def external_dotdot():
    (HERE / "secret.bin").write_bytes(bytes(24))
    return external("../secret.bin")


@model_file
def external_dotdot_inside():
    return external("sub/../../secret.bin")


@model_file
def external_absolute():
    return external("/etc/passwd")


@model_file
def external_symlink():
    link = MODELS / "link.bin"
    link.unlink(missing_ok=True)
    link.symlink_to("../secret.bin")
    return external("link.bin")


@model_file
def external_missing():
    return external("missing.bin")


@model_file
def external_directory():
    return external("external_ok_data")


@model_file
def external_no_location():
    return external("")


@model_file
def external_beyond_end():
    return external("weights.bin", offset=72, length=24)


@model_file
def external_huge_offset():
    return external("weights.bin", offset=(1 << 64) - 8, length=24)


@model_file
def external_bad_number():
    return external("weights.bin", offset="12abc", length=-24)


@model_file
def external_wrong_length():
    return external("weights.bin", offset=0, length=20)


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


def main():
    values.add(sys.modules[__name__])
    MODELS.mkdir(exist_ok=True)
    for name, make in makers.items():
        made = make()
        data = made if isinstance(made, bytes) else made.SerializeToString()
        (MODELS / f"{name}.onnx").write_bytes(data)
    listed = {line.split("|")[0].strip() for line in (HERE / "cases.txt").read_text().splitlines() if "|" in line}
    listed = {name for name in listed if not name.startswith("#")}
    if listed != {f"{name}.onnx" for name in makers}:
        raise SystemExit(f"cases.txt and the models differ: {sorted(listed ^ {f'{name}.onnx' for name in makers})}")


if __name__ == "__main__":
    main()
