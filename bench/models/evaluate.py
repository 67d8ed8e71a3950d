"""Runs an ONNX model in torch, node by node, for the values of all its tensors; knows the operators of the networks
that quantize.py quantizes."""
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

TYPES = {onnx.TensorProto.FLOAT: torch.float32, onnx.TensorProto.INT64: torch.int64, onnx.TensorProto.BOOL: torch.bool}


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def tensor_of(proto):
    return torch.tensor(numpy_helper.to_array(proto))


def pads(a):
    top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
    return left, right, top, bottom


def conv(a, x, weight, bias=None):
    return functional.conv2d(functional.pad(x, pads(a)), weight, bias, a["strides"], 0, a["dilations"], a["group"])


def gather(a, x, indices):
    axis = a.get("axis", 0) % x.dim()
    rows = x.index_select(axis, indices.reshape(-1) % x.size(axis))
    return rows.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1:])


def sliced(a, x, starts, ends, axes, steps=None):
    for axis, start, end in zip(axes.tolist(), starts.tolist(), ends.tolist()):
        x = x[(slice(None),) * (axis % x.dim()) + (slice(start, end),)]
    return x


def unsqueezed(a, x, axes):
    for axis in sorted(axes.tolist()):
        x = x.unsqueeze(axis)
    return x


def reshaped(a, x, shape):
    return x.reshape([x.size(i) if size == 0 else size for i, size in enumerate(shape.tolist())])


def divided(a, x, y):
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "Cast": lambda a, x: x.to(TYPES[a["to"]]),
    "Clip": lambda a, x, low, high: x.clamp(low, high),
    "Concat": lambda a, *parts: torch.cat(parts, a["axis"]),
    "Constant": lambda a: tensor_of(a["value"]),
    "ConstantOfShape": lambda a, shape: tensor_of(a["value"]).expand(shape.tolist()),
    "Conv": conv,
    "Div": divided,
    "Equal": lambda a, x, y: x == y,
    "Erf": lambda a, x: torch.erf(x),
    "Expand": lambda a, x, shape: x.expand(torch.broadcast_shapes(x.shape, shape.tolist())),
    "Flatten": lambda a, x: x.flatten(1),
    "Gather": gather,
    "Gemm": lambda a, x, weight, bias: x @ (weight.T if a.get("transB") else weight) + bias,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "LayerNormalization": lambda a, x, scale, bias: functional.layer_norm(x, scale.shape, scale, bias, a["epsilon"]),
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": lambda a, x: functional.max_pool2d(
        functional.pad(x, pads(a), value=-torch.inf), a["kernel_shape"], a["strides"]),
    "Mul": lambda a, x, y: x * y,
    "Relu": lambda a, x: torch.relu(x),
    "Reshape": reshaped,
    "Shape": lambda a, x: torch.tensor(x.shape),
    "Slice": sliced,
    "Softmax": lambda a, x: torch.softmax(x, a["axis"]),
    "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: torch.tanh(x),
    "Transpose": lambda a, x: x.permute(a["perm"]),
    "Unsqueeze": unsqueezed,
    "Where": lambda a, condition, x, y: torch.where(condition, x, y),
}


def values_of(model, inputs):
    """Returns name -> tensor of everything that the model computes."""
    values = {i.name: tensor_of(i) for i in model.graph.initializer}
    values.update(zip((i.name for i in model.graph.input), inputs))
    for node in model.graph.node:
        values[node.output[0]] = OPERATORS[node.op_type](attributes(node), *(values[name] for name in node.input))
    return values


def ranges_of(model, sets):
    """Returns name -> (least, greatest) of every float32 tensor over these sets of inputs; 0 lies between them."""
    ranges = {}
    for inputs in sets:
        with torch.no_grad():
            values = values_of(model, inputs)
        for name, value in values.items():
            if value.dtype == torch.float32:
                low, high = ranges.get(name, (0.0, 0.0))
                ranges[name] = min(low, float(value.min())), max(high, float(value.max()))
    return ranges
