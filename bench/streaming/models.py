#!/usr/bin/env python3
"""Writes models of products that read their weights once, for stream_bench: layers of SIZE x SIZE, one after the other.

  models.py FOLDER [--rows 1] [--size 4096] [--layers 40]
writes FOLDER/NAME.onnx for weights in float32, int8 (a scale for each column), int4 in blocks of 32 and 128, and
float8_e4m3fn and float4_e2m1fn in blocks of 32 (the latter is MXFP4: its scales are powers of two, float8_e8m0fnu).
"""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT8, FLOAT4, POWER_OF_TWO = 17, 23, 24  # ONNX's numbers of dtypes that this version of the package does not know


class Bits:
    """A tensor of such a dtype."""

    def __init__(self, dtype, shape, raw):
        self.proto = TensorProto(data_type=dtype, dims=shape, raw_data=raw.tobytes())

    def named(self, name):
        self.proto.name = name
        return self.proto


def weight(form, size, random):
    """Returns the inputs of a node behind x, and the node's operator and attributes."""
    if form == "float32":
        return [random.standard_normal((size, size), dtype=np.float32) / np.float32(size**0.5)], "MatMul", {}
    if form == "int8":
        numbers = random.integers(-127, 128, (size, size), dtype=np.int8)
        return [numbers, np.full(size, 1 / 70 / size**0.5, np.float32)], "DequantizeLinear", {"axis": 1}
    block = int(form.split("_")[1])
    if form.startswith("float"):
        count, attributes = size * size, {"axis": 0, "block_size": block, "output_dtype": TensorProto.FLOAT}
        if form.startswith("float4"):
            codes, powers = random.bytes(count // 2), random.integers(118, 120, count // block, dtype=np.uint8)
            scales = Bits(POWER_OF_TWO, [size // block, size], powers)
            return [Bits(FLOAT4, [size, size], np.frombuffer(codes, np.uint8)), scales], "DequantizeLinear", attributes
        codes = random.integers(0, 127, count, dtype=np.uint8) | random.integers(0, 2, count, dtype=np.uint8) << 7
        scales = (1 + random.random((size // block, size), dtype=np.float32)) / np.float32(100 * size**0.5)
        return [Bits(FLOAT8, [size, size], codes), scales], "DequantizeLinear", attributes
    packed = random.integers(0, 256, (size, size // block, block // 2), dtype=np.uint8)
    scales = (1 + random.random(packed.shape[:2], dtype=np.float32)).reshape(-1) / np.float32(7 * size**0.5)
    return [packed, scales], "MatMulNBits", {"K": size, "N": size, "bits": 4, "block_size": block}


def model(form, a):
    random, nodes, constants, x = np.random.default_rng(0), [], [], "x"
    for i in range(a.layers):
        tensors, op, attributes = weight(form, a.size, random)
        names = [f"w{i}_{k}" for k in range(len(tensors))]
        constants += [t.named(n) if isinstance(t, Bits) else numpy_helper.from_array(t, n)
                      for t, n in zip(tensors, names)]
        if op == "DequantizeLinear":
            nodes.append(helper.make_node(op, names, [f"w{i}"], **attributes))
            op, names, attributes = "MatMul", [f"w{i}"], {}
        domain = "com.microsoft" if op == "MatMulNBits" else ""
        nodes.append(helper.make_node(op, [x, *names], [f"y{i}"], domain=domain, **attributes))
        x = f"y{i}"
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [a.rows, a.size])
    graph = helper.make_graph(nodes, form, [value("x")], [value(x)], constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 25),
                                                                 helper.make_opsetid("com.microsoft", 1)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=40)
    a = parser.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    for form, layers in (("float32", max(1, a.layers // 8)), ("int8", max(1, a.layers // 2)), ("int4_32", a.layers),
                         ("int4_128", a.layers), ("float8_32", max(1, a.layers // 2)), ("float4_32", a.layers)):
        a.layers = layers
        onnx.save(model(form, a), os.path.join(a.folder, form + ".onnx"))


if __name__ == "__main__":
    main()
