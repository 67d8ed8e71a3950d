#!/usr/bin/env python3
"""Writes the network of examples/digits in int8, as post-training quantization makes it, in two forms: digits_int8.onnx
has operators on integers, digits_qdq.onnx operators on floats between DequantizeLinear and QuantizeLinear.

Needs Debian's python3-onnx. Batch norms are folded into the convolutions, weights get one scale per output channel, and
activations one scale per tensor, from the largest values over the samples.
"""
import pathlib

import numpy
import onnx
from onnx import helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent / "digits"


def convolution(x, weight, bias):
    """3x3, padding 1."""
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return numpy.einsum("nchwyx,ocyx->nohw", windows, weight) + bias[:, None, None]


def max_pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


class Quantizer:
    """The nodes and initializers of the model that is written."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def constant(self, name, value):
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def parameters(self, name, largest):
        """0 to `largest` are -128 to 127."""
        scale = self.constant(name + "_scale", numpy.array(largest / 255, "float32"))
        return scale, self.constant(name + "_zero", numpy.array(-128, "int8"))

    def weight(self, name, value, axis):
        """Returns the names of weight, scales and zero points, and the scales."""
        others = tuple(i for i in range(value.ndim) if i != axis)
        scales = (numpy.abs(value).max(others) / 127).astype("float32")
        shape = [-1 if i == axis else 1 for i in range(value.ndim)]
        integers = numpy.round(value / scales.reshape(shape)).clip(-127, 127).astype("int8")
        zeros = numpy.zeros(scales.shape, "int8")
        return [self.constant(name, integers), self.constant(name + "_scale", scales),
                self.constant(name + "_zero", zeros)], scales

    def add(self, op_type, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op_type, inputs, [output], name=output, **attributes))
        return output


class IntegerQuantizer(Quantizer):
    """Products and convolutions of integers."""

    def convolution(self, x, at, weight, bias, largest, scale, index):
        """Returns the result, with ReLU, and the names of its scale and zero point. `scale` is that of `x`."""
        names, scales = self.weight(f"weight{index}", weight, 0)
        biases = self.constant(f"bias{index}", numpy.round(bias / (scales * scale)).astype("int32"))
        after = self.parameters(f"conv{index}", largest)
        return self.add("QLinearConv", [x, *at, *names, *after, biases], f"conv{index}", kernel_shape=[3, 3],
                        pads=[1, 1, 1, 1]), after

    def product(self, x, at, weight, largest):
        names, _ = self.weight("classes", weight, 1)
        after = [self.constant("logits_scale", numpy.array(largest / 127, "float32")),
                 self.constant("logits_zero", numpy.array(0, "int8"))]
        x = self.add("QLinearMatMul", [x, *at, *names, *after], "logits_int8")
        return self.add("DequantizeLinear", [x, *after], "logits_without_bias")


class FloatQuantizer(Quantizer):
    """Products and convolutions of floats that were integers (QDQ)."""

    def convolution(self, x, at, weight, bias, largest, scale, index):
        names, _ = self.weight(f"weight{index}", weight, 0)
        w = self.add("DequantizeLinear", names, f"weight{index}_float", axis=0)
        x = self.add("DequantizeLinear", [x, *at], f"input{index}_float")
        x = self.add("Conv", [x, w, self.constant(f"bias{index}", bias)], f"conv{index}", kernel_shape=[3, 3],
                     pads=[1, 1, 1, 1])
        x = self.add("Relu", [x], f"relu{index}")
        after = self.parameters(f"conv{index}", largest)
        return self.add("QuantizeLinear", [x, *after], f"conv{index}_int8"), after

    def product(self, x, at, weight, largest):
        names, _ = self.weight("classes", weight, 1)
        w = self.add("DequantizeLinear", names, "classes_float", axis=1)
        return self.add("MatMul", [self.add("DequantizeLinear", [x, *at], "flat_float"), w], "logits_without_bias")


def quantized(q, model, samples, name):
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    scale = 1 / 255
    at = q.parameters("image", 1.0)
    x = q.add("QuantizeLinear", ["image", *at], "image_int8")
    reference = samples
    for i, (conv, norm, pool) in enumerate([(0, 1, False), (3, 4, True), (7, 8, True)]):
        gamma, beta, mean, variance = (values[f"model.features.{norm}.{part}"] for part in
                                       ["weight", "bias", "running_mean", "running_var"])
        factor = gamma / numpy.sqrt(variance + 1e-5)
        weight, bias = values[f"model.features.{conv}.weight"] * factor[:, None, None, None], beta - mean * factor
        reference = numpy.maximum(convolution(reference, weight, bias), 0)
        largest = float(reference.max())
        x, after = q.convolution(x, at, weight, bias, largest, scale, i)
        scale, at = numpy.float32(largest / 255), after
        if pool:
            reference = max_pool(reference)
            x = q.add("MaxPool", [x], f"pool{i}", kernel_shape=[2, 2], strides=[2, 2])
    x = q.add("Flatten", [x], "flat")
    weight, bias = values["model.classify.2.weight"].T, values["model.classify.2.bias"]
    logits = reference.reshape(len(reference), -1) @ weight
    x = q.product(x, at, weight, float(numpy.abs(logits).max()))
    x = q.add("Add", [x, q.constant("classes_bias", bias)], "logits")
    q.add("Softmax", [x], "probability", axis=1)
    inputs = [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["batch", 1, 8, 8])]
    outputs = [helper.make_tensor_value_info("probability", onnx.TensorProto.FLOAT, ["batch", 10])]
    graph = helper.make_graph(q.nodes, name, inputs, outputs, q.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def main():
    model = onnx.load(str(DIGITS / "digits.onnx"))
    for name, quantizer in [("digits_int8", IntegerQuantizer()), ("digits_qdq", FloatQuantizer())]:
        result = quantized(quantizer, model, numpy.load(DIGITS / "samples.npy"), name)
        onnx.checker.check_model(result)
        onnx.save(result, str(HERE / f"{name}.onnx"))


if __name__ == "__main__":
    main()
