#!/usr/bin/python3
"""Writes one model of bench/import/run.py.

usage: generate.py NAME FILE      (generate.py --list names the models)

The files of large weights are sparse. Needs Debian's python3-onnx.
"""
import os
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RANDOM = np.random.default_rng(0)


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, 'graph', inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def empty(path):
    path.write_bytes(model([helper.make_node('Relu', ['x'], ['y'])], [value('x', ['n'])],
                           [value('y', ['n'])]).SerializeToString())


def blocks(path, nodes_wanted=500):
    """Blocks of a transformer: products, biases, layouts with computed shapes, normalizations."""
    nodes, weights, current, size = [], [], 'x', 64

    def add(op, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f't{len(nodes)}'], **attributes))
        return nodes[-1].output[0]

    def weight(*shape):
        array = RANDOM.standard_normal(shape).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f'w{len(weights)}'))
        return weights[-1].name

    def ints(*numbers):
        weights.append(numpy_helper.from_array(np.array(numbers, np.int64), f'w{len(weights)}'))
        return weights[-1].name

    while len(nodes) < nodes_wanted:
        heads = []
        for axes in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            projected = add('Add', [add('MatMul', [current, weight(size, size)]), weight(size)])
            shape = add('Shape', [projected])
            dims = [add('Gather', [shape, ints(d)], axis=0) for d in (0, 1)]
            cut = add('Reshape', [projected, add('Concat', dims + [ints(4, 16)], axis=0)])
            heads.append(add('Transpose', [cut], perm=axes))
        scores = add('Softmax', [add('MatMul', heads[:2])], axis=-1)
        mixed = add('Transpose', [add('MatMul', [scores, heads[2]])], perm=[0, 2, 1, 3])
        joined = add('Reshape', [mixed, ints(0, 0, size)])
        summed = add('Add', [add('MatMul', [joined, weight(size, size)]), current])
        normal = add('LayerNormalization', [summed, weight(size), weight(size)])
        wide = add('Erf', [add('MatMul', [normal, weight(size, 4 * size)])])
        current = add('Add', [add('MatMul', [wide, weight(4 * size, size)]), normal])
    path.write_bytes(model(nodes, [value('x', ['batch', 'length', size])], [value(current, None)],
                           weights).SerializeToString())


def external(path, size=8192, layers=8):
    """2 GB of weights in a file beside the model."""
    bytes_each, nodes, weights = size * size * 4, [], []
    for i in range(layers):
        tensor = TensorProto(name=f'w{i}', data_type=FLOAT, dims=[size, size], data_location=TensorProto.EXTERNAL)
        for key, text in (('location', 'weights.bin'), ('offset', i * bytes_each), ('length', bytes_each)):
            tensor.external_data.add(key=key, value=str(text))
        weights.append(tensor)
        nodes.append(helper.make_node('MatMul', [f'y{i}', f'w{i}'], [f'y{i + 1}']))
    path.write_bytes(model(nodes, [value('y0', ['n', size])], [value(f'y{layers}', ['n', size])],
                           weights).SerializeToString())
    with open(path.parent / 'weights.bin', 'wb') as file:
        file.truncate(layers * bytes_each)


def varint(number):
    result = b''
    while number >= 128:
        result, number = result + bytes([number & 127 | 128]), number >> 7
    return result + bytes([number])


def raw(path, size=15360):
    """1.9 GB of raw_data inside of the file, which protobuf's own writer cannot make sparse."""
    bytes_each, heads = size * size * 4, []
    for i in range(2):
        head = TensorProto(name=f'w{i}', data_type=FLOAT, dims=[size, size]).SerializeToString()
        head += varint(TensorProto.RAW_DATA_FIELD_NUMBER << 3 | 2) + varint(bytes_each)
        heads.append(varint(5 << 3 | 2) + varint(len(head) + bytes_each) + head)  # initializer
    rest = model([helper.make_node('MatMul', [f'y{i}', f'w{i}'], [f'y{i + 1}']) for i in range(2)],
                 [value('y0', ['n', size])], [value('y2', ['n', size])])
    graph = rest.graph.SerializeToString()
    rest.ClearField('graph')
    length = len(graph) + sum(len(head) + bytes_each for head in heads)
    with open(path, 'wb') as file:
        file.write(rest.SerializeToString() + varint(7 << 3 | 2) + varint(length) + graph)
        for head in heads:
            file.write(head)
            file.seek(bytes_each, os.SEEK_CUR)
        file.truncate(file.tell())


def numbers(dtype, field, count=32 << 20):
    """Weights that an exporter wrote as numbers of protobuf."""
    def make(path):
        tensor = TensorProto(name='w', data_type=dtype, dims=[count // 1024, 1024])
        getattr(tensor, field).extend((np.arange(count) % 7).tolist())
        path.write_bytes(model([helper.make_node('Add', ['x', 'w'], ['y'])], [value('x', [1, 1024], dtype)],
                               [value('y', None, dtype)], [tensor]).SerializeToString())
    return make


MODELS = {'empty': empty, '500_nodes': blocks, '2_GB_external': external, '1.9_GB_raw_data': raw,
          '128_MB_float_data': numbers(FLOAT, 'float_data'), '256_MB_int64_data': numbers(INT64, 'int64_data')}


if __name__ == '__main__':
    if sys.argv[1:] == ['--list']:
        print('\n'.join(MODELS))
    else:
        MODELS[sys.argv[1]](pathlib.Path(sys.argv[2]))
