"""Operators, attributes, types and numbers that do not fit, for make.py."""
import numpy

from builders import INT32, INT64, add_weight, constant, floats, model, model_file, node, value

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
