"""A form: one operator (or the few nodes of one idea) with attributes and shapes, as a row that becomes two models.

A dim that is written `h=56` is 56 in the static model, and a symbolic dim named `h` in the other one.
"""
import dataclasses
import math
from typing import Callable

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 17  # the last one that the shape inference of Debian 12's onnx knows
ELEMENT_TYPES = {'float32': TensorProto.FLOAT, 'int64': TensorProto.INT64, 'int32': TensorProto.INT32,
                 'bool': TensorProto.BOOL, 'uint8': TensorProto.UINT8, 'int8': TensorProto.INT8,
                 'float64': TensorProto.DOUBLE, 'float16': TensorProto.FLOAT16}


@dataclasses.dataclass
class Input:
    """An input at run time. Without a range both sides make random values: floats in -1..1, integers 0 or 1."""
    dims: list  # of (name or None, size)
    dtype: str
    limits: tuple = None  # values are drawn from low <= value < high, and written to a file

    @property
    def shape(self):
        return [size for _, size in self.dims]


@dataclasses.dataclass
class Constant:
    shape: list
    dtype: str
    make: Callable  # its values: not before a model needs them, as weights are large

    @property
    def values(self):
        return self.make()


def x(dims, dtype='float32', limits=None):
    """x('n=1 64 h=56 w=56'): an input."""
    pairs = [text.rpartition('=') for text in dims.split()]
    return Input([(name or None, int(size)) for name, _, size in pairs], dtype, limits)


def weight(*shape):
    """A constant of random numbers that keeps the scale of what it is multiplied with."""
    def make():
        values = numpy.random.default_rng(sum(shape)).standard_normal(shape, numpy.float32)
        return values * numpy.float32(1 / math.sqrt(max(1, math.prod(shape[1:]))))
    return Constant(list(shape), 'float32', make)


def const(values, dtype='int64'):
    array = numpy.array(values, dtype)
    return Constant(list(array.shape), dtype, lambda: array)


def elements(shape):
    return math.prod(shape)


def each_output(operations):
    """For operators whose work is so many operations for each element of the first output."""
    return lambda ins, outs: operations * elements(outs[0])


def each_input(operations):
    return lambda ins, outs: operations * elements(ins[0])


@dataclasses.dataclass
class Form:
    """`operations(ins, outs)` of lists of shapes counts float operations, a multiply-add as two.

    `touched(ins, outs)` counts the elements that must be read and written where these are not all of them. `op` may be
    a list of nodes (op, inputs, outputs, attributes) whose values are named: those of `tensors` i0, i1, ..., results
    o0, o1, ...
    """
    name: str
    op: object
    tensors: list  # Input, Constant, or None for an optional input that is left out
    attributes: dict = dataclasses.field(default_factory=dict)
    operations: Callable = each_output(1)
    touched: Callable = None
    outputs: int = 1
    results: list = None  # shapes, where the inference of shapes does not say
    result_dtype: str = None
    opset: int = OPSET
    domain: str = ''
    reason: str = ''  # why it stays below 40% of the roofline, where it has to

    def nodes(self):
        if not isinstance(self.op, str):
            return [helper.make_node(op, ins.split(' '), outs.split(' '), **attributes)
                    for op, ins, outs, attributes in self.op]
        ins = ['' if tensor is None else f'i{i}' for i, tensor in enumerate(self.tensors)]
        return [helper.make_node(self.op, ins, [f'o{i}' for i in range(self.outputs)], domain=self.domain,
                                 **self.attributes)]

    def inputs(self):
        return {f'i{i}': tensor for i, tensor in enumerate(self.tensors) if isinstance(tensor, Input)}

    def constant_bytes(self):
        return sum(elements(tensor.shape) * numpy.dtype(tensor.dtype).itemsize for tensor in self.tensors
                   if isinstance(tensor, Constant))

    def model(self, symbolic, output_types=None):
        def info(name, tensor):
            shape = [dim if symbolic and dim else size for dim, size in tensor.dims]
            return helper.make_tensor_value_info(name, ELEMENT_TYPES[tensor.dtype], shape)

        constants = [numpy_helper.from_array(tensor.values, f'i{i}') for i, tensor in enumerate(self.tensors)
                     if isinstance(tensor, Constant)]
        names = [f'o{i}' for i in range(self.outputs)]
        types = output_types or [TensorProto.FLOAT] * self.outputs
        outputs = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in zip(names, types)]
        inputs = [info(name, tensor) for name, tensor in self.inputs().items()]
        graph = helper.make_graph(self.nodes(), 'graph', inputs, outputs, constants)
        opsets = [helper.make_opsetid('', self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=8 if self.opset <= OPSET else 10)

    def inferred(self):
        """Returns the shapes and the element types of the outputs."""
        dtype = ELEMENT_TYPES[self.result_dtype or 'float32']
        if self.results is not None:
            return self.results, [dtype] * self.outputs
        model = self.model(symbolic=False)
        for output in model.graph.output:
            output.type.Clear()
        types = [output.type.tensor_type
                 for output in shape_inference.infer_shapes(model, strict_mode=True).graph.output]
        shapes = [[dim.dim_value for dim in type.shape.dim] for type in types]
        if any(not type.elem_type or not type.HasField('shape') or 0 in shape for type, shape in zip(types, shapes)):
            raise ValueError(f'{self.name}: the inference of shapes does not say what its results are: {shapes}')
        return shapes, [type.elem_type for type in types]

    def work(self, outs, output_types):
        """Returns float operations, and bytes that are read or written at least once."""
        ins = [tensor.shape for tensor in self.tensors if tensor is not None]
        if self.touched is not None:
            return self.operations(ins, outs), self.touched(ins, outs) * 4
        read = sum(elements(tensor.shape) * numpy.dtype(tensor.dtype).itemsize
                   for tensor in self.tensors if tensor is not None)
        written = sum(elements(shape) * onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[dtype].itemsize
                      for shape, dtype in zip(outs, output_types))
        return self.operations(ins, outs), read + written
