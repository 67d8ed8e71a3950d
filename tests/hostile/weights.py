"""Tensors of sizes that no memory has, and weights in files out of reach, for make.py."""
import numpy
from onnx import TensorProto, numpy_helper

from builders import (
    FLOAT, HERE, HUGE, INT64, MODELS, add_weight, constant, external_tensor, model, model_file, node, raw_tensor,
    value,
)

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
