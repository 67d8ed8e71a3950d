#!/usr/bin/env python3
"""Writes an image network in int8, as post-training quantization does, with DequantizeLinear and QuantizeLinear nodes.

usage: quantize.py FLOAT_MODEL.onnx INT8_MODEL.onnx        (./dev models runs it for ResNet-18)

Weights of Conv and Gemm get one scale per output channel. Their inputs get a scale and a zero point from the values that
they have for the data set beside the model, and everything that reads such a tensor reads the quantized one. Biases and
sums stay in float32.
"""
import pathlib
import sys

import numpy
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

PRODUCTS = ("Conv", "Gemm")


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def pads(a):
    top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
    return left, right, top, bottom


def conv(a, x, weight, bias=None):
    return functional.conv2d(functional.pad(x, pads(a)), weight, bias, a["strides"], 0, a["dilations"], a["group"])


OPERATORS = {
    "Conv": conv,
    "Gemm": lambda a, x, weight, bias: x @ (weight.T if a.get("transB") else weight) + bias,
    "Relu": lambda a, x: torch.relu(x),
    "Add": lambda a, x, y: x + y,
    "MaxPool": lambda a, x: functional.max_pool2d(
        functional.pad(x, pads(a), value=-torch.inf), a["kernel_shape"], a["strides"]),
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "Flatten": lambda a, x: x.flatten(1),
}


def values_of(model, image):
    values = {i.name: torch.tensor(numpy_helper.to_array(i)) for i in model.graph.initializer}
    values[model.graph.input[0].name] = image
    for node in model.graph.node:
        values[node.output[0]] = OPERATORS[node.op_type](attributes(node), *(values[name] for name in node.input))
    return values


def quantized(model, values):
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    nodes, initializers, replaced = [], [], {}

    def constant(name, value, dtype):
        initializers.append(numpy_helper.from_array(numpy.asarray(value, dtype), name))
        return name

    def pair(name):
        """Returns the name of the tensor, quantized and dequantized."""
        if name not in replaced:
            low, high = min(float(values[name].min()), 0.0), max(float(values[name].max()), 0.0)
            scale = constant(name + "_scale", (high - low) / 255, "float32")
            zero = constant(name + "_zero", round(-low / (high - low) * 255), "uint8")
            nodes.append(helper.make_node("QuantizeLinear", [name, scale, zero], [name + "_int8"]))
            nodes.append(helper.make_node("DequantizeLinear", [name + "_int8", scale, zero], [name + "_real"]))
            replaced[name] = name + "_real"
        return replaced[name]

    def weight(name, axis):
        w = weights[name]
        scales = numpy.abs(w).max(tuple(d for d in range(w.ndim) if d != axis), keepdims=True) / 127
        integers = constant(name + "_int8", numpy.round(w / scales), "int8")
        scale = constant(name + "_scale", scales.ravel(), "float32")
        nodes.append(helper.make_node("DequantizeLinear", [integers, scale], [name + "_real"], axis=axis))
        return name + "_real"

    for node in model.graph.node:
        inputs = [replaced.get(name, name) for name in node.input]
        if node.op_type in PRODUCTS:
            axis = 0 if node.op_type == "Conv" or attributes(node).get("transB") else 1
            inputs = [pair(node.input[0]), weight(node.input[1], axis), *node.input[2:]]
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(inputs)
        nodes.append(copy)
    used = {name for node in nodes for name in node.input}
    initializers += [i for i in model.graph.initializer if i.name in used]
    graph = helper.make_graph(nodes, "int8", model.graph.input, model.graph.output, initializers)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    model = onnx.load(str(source))
    tensor = onnx.TensorProto.FromString((source.parent / "test_data_set_2" / "input_0.pb").read_bytes())
    with torch.no_grad():
        result = quantized(model, values_of(model, torch.tensor(numpy_helper.to_array(tensor))))
    onnx.checker.check_model(result)
    target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(result, str(target))


if __name__ == "__main__":
    main()
