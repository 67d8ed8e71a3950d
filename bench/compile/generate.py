#!/usr/bin/python3
"""Writes one model of a family at one size: what bench/compile/run.py compiles, and its tests.

usage: generate.py FAMILY SIZE FILE      (generate.py --list names the families)

Each family grows in one direction only (nodes, inputs, outputs, nesting, steps), so that the growth of the compile time
over sizes shows which part of the compiler is worse than linear in it. Needs Debian's python3-onnx.
"""
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def tensor(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, shape, scale=0.3):
    values = numpy.random.default_rng(len(name)).standard_normal(shape).astype(numpy.float32) * scale
    return numpy_helper.from_array(values, name)


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, 'graph', inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])


def chain_matmul(size):
    """MatMuls of 8x8 in a row, all with one weight: one kernel, called `size` times."""
    nodes = [helper.make_node('MatMul', [f'v{i}', 'w'], [f'v{i + 1}']) for i in range(size)]
    return model(nodes, [tensor('v0', [8, 8])], [tensor(f'v{size}', [8, 8])], [weight('w', [8, 8])])


def chain_add(size):
    """Adds in a row, of a symbolic dim, which fuse in groups."""
    nodes = [helper.make_node('Add', [f'v{i}', 'w'], [f'v{i + 1}']) for i in range(size)]
    return model(nodes, [tensor('v0', ['n', 8])], [tensor(f'v{size}', ['n', 8])], [weight('w', [8])])


def chain_shape(size):
    """Shape arithmetic: n + 1 + 1 + ..., at the end of which stands the shape of a Reshape."""
    nodes = [helper.make_node('Shape', ['x'], ['shape']), helper.make_node('Gather', ['shape', 'zero'], ['s0'], axis=0)]
    nodes += [helper.make_node('Add', [f's{i}', 'n' if i % 2 else 's0'], [f's{i + 1}']) for i in range(size)]
    nodes += [helper.make_node('ConstantOfShape', [f's{size}'], ['y'])]
    constants = [numpy_helper.from_array(numpy.array([0], numpy.int64), 'zero'),
                 numpy_helper.from_array(numpy.array([1], numpy.int64), 'n')]
    return model(nodes, [tensor('x', ['a', 8])], [tensor('y', None)], constants)


def ladder(size):
    """Two rails with rungs between them: every value has two users, so that nothing is a mere chain."""
    nodes = []
    for i in range(size // 2):
        nodes += [helper.make_node('MatMul', [f'a{i}', f'b{i}'], [f'a{i + 1}']),
                  helper.make_node('Add', [f'a{i}', f'b{i}'], [f'b{i + 1}'])]
    end = size // 2
    return model(nodes, [tensor('a0', [8, 8]), tensor('b0', [8, 8])], [tensor(f'a{end}', [8, 8]), tensor(f'b{end}', [8, 8])])


def wide(size):
    """Branches side by side from one input, each with a result of its own."""
    nodes, outputs = [], []
    for i in range(size // 2):
        nodes += [helper.make_node('MatMul', ['x', 'w'], [f'h{i}']), helper.make_node('Relu', [f'h{i}'], [f'y{i}'])]
        outputs.append(tensor(f'y{i}', ['n', 8]))
    return model(nodes, [tensor('x', ['n', 8])], outputs, [weight('w', [8, 8])])


def many_inputs(op, shape_of, result, **attributes):
    def build(size):
        names = [f'x{i}' for i in range(size)]
        nodes = [helper.make_node(op, names, ['y'], **attributes)]
        return model(nodes, [tensor(name, shape_of(i)) for i, name in enumerate(names)], [tensor('y', result)])
    return build


def split(size):
    """One input cut into `size` rows."""
    nodes = [helper.make_node('Split', ['x'], [f'y{i}' for i in range(size)], axis=0)]
    return model(nodes, [tensor('x', [size, 'n'])], [tensor(f'y{i}', [1, 'n']) for i in range(size)])


def nested_if(size):
    """An If in the branch of an If in the branch of an If ..."""
    branch = helper.make_graph([helper.make_node('Relu', ['x'], [f'r{size}'])], f'g{size}', [], [tensor(f'r{size}', [4])])
    for i in reversed(range(size)):
        other = helper.make_graph([helper.make_node('Neg', ['x'], [f'n{i}'])], f'n{i}', [], [tensor(f'n{i}', [4])])
        node = helper.make_node('If', ['c'], [f'r{i}'], then_branch=branch, else_branch=other)
        branch = helper.make_graph([node], f'g{i}', [], [tensor(f'r{i}', [4])])
    return model(list(branch.node), [tensor('c', [], TensorProto.BOOL), tensor('x', [4])], [tensor('r0', [4])])


def lstm(size):
    """An LSTM of 128 units over `size` steps."""
    hidden = 128
    node = helper.make_node('LSTM', ['x', 'w', 'recurrence'], ['y'], hidden_size=hidden)
    weights = [weight('w', [1, 4 * hidden, hidden]), weight('recurrence', [1, 4 * hidden, hidden])]
    return model([node], [tensor('x', [size, 1, hidden])], [tensor('y', [size, 1, 1, hidden])], weights)


def dense(size):
    """Products with `size` weights of 16 MiB: what a network of large weights costs in memory."""
    width = 2048
    nodes = [helper.make_node('MatMul', [f'v{i}', f'w{i}'], [f'v{i + 1}']) for i in range(size)]
    values = numpy.random.default_rng(0).standard_normal((width, width)).astype(numpy.float32)
    weights = [numpy_helper.from_array(values + i, f'w{i}') for i in range(size)]
    return model(nodes, [tensor('v0', ['n', width])], [tensor(f'v{size}', ['n', width])], weights)


def einsum(size):
    """A product of `size` matrices, element by element."""
    return many_inputs('Einsum', lambda i: ['n', 4], ['n', 4], equation=','.join(['ij'] * size) + '->ij')(size)


FAMILIES = {
    'chain_matmul': chain_matmul,
    'chain_add': chain_add,
    'chain_shape': chain_shape,
    'ladder': ladder,
    'wide': wide,
    'concat': many_inputs('Concat', lambda i: [4, 4], [None, 4], axis=0),
    'concat_dynamic': many_inputs('Concat', lambda i: [f'n{i}', 4], [None, 4], axis=0),
    'sum': many_inputs('Sum', lambda i: ['n', 4], ['n', 4]),
    'max': many_inputs('Max', lambda i: ['n', 4], ['n', 4]),
    'einsum': einsum,
    'split': split,
    'nested_if': nested_if,
    'lstm': lstm,
    'dense': dense,
}


def text_add(size):
    """R.add in a row, as text: the reader has its own cost for a name."""
    lines = ['@I.ir_module', 'class Module:', '    @R.function',
             '    def main(v0: R.Tensor((8, 8), "float32"), w: R.Tensor((8, 8), "float32")):', '        with R.dataflow():']
    lines += [f'            v{i + 1} = R.add(v{i}, w)' for i in range(size)]
    lines += [f'            R.output(v{size})', f'        return v{size}', '']
    return '\n'.join(lines)


def main():
    if sys.argv[1:] == ['--list']:
        print('\n'.join([*FAMILIES, 'text_add']))
        return
    family, size, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if family == 'text_add':
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text_add(size))
    else:
        onnx.save(FAMILIES[family](size), path)


main()
