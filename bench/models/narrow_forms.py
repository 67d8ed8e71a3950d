"""Models in float16 or bfloat16, as exporters write them: all floats of the graph, with Cast nodes at its inputs and
outputs, which stay float32. Parameters that ONNX defines as float32 (the scales of Resize) stay so, too.
"""
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

# Masks of -3.4e38 become the least number that is not infinite, as in torch's exports.
LARGEST = {TensorProto.FLOAT16: 65504.0, TensorProto.BFLOAT16: 3.3895313892515355e38}
FLOAT32_INPUTS = {"Resize": (1, 2), "Upsample": (1,)}  # by operator


def narrowed(tensor, dtype):
    numbers = numpy.clip(numpy_helper.to_array(tensor), -LARGEST[dtype], LARGEST[dtype])
    if dtype == TensorProto.FLOAT16:
        return numpy_helper.from_array(numbers.astype(numpy.float16), tensor.name)
    bits = numbers.astype(numpy.float32).view(numpy.uint32)
    bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)  # half to even
    result = TensorProto(name=tensor.name, data_type=dtype, dims=numbers.shape)
    result.raw_data = bits.tobytes()
    return result


def narrow_node(node, dtype):
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT:
            attribute.t.CopyFrom(narrowed(attribute.t, dtype))
        if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = dtype


def narrow(model, dtype):
    """Returns the model with numbers of that type."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    kept = {name for node in graph.node for i, name in enumerate(node.input)
            if i in FLOAT32_INPUTS.get(node.op_type, ())}
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in kept:
            tensor.CopyFrom(narrowed(tensor, dtype))
    for value in graph.value_info:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = dtype
    floats = [[value.name for value in values if value.type.tensor_type.elem_type == TensorProto.FLOAT]
              for values in (graph.input, graph.output)]
    names = {name: name + "_narrow" for name in floats[0] + floats[1]}
    for node in graph.node:
        if not (node.op_type == "Constant" and node.output[0] in kept):
            narrow_node(node, dtype)
        for list_of_names in (node.input, node.output):
            list_of_names[:] = [names.get(name, name) for name in list_of_names]
    casts = [helper.make_node("Cast", [name], [names[name]], to=dtype) for name in floats[0]]
    casts += list(graph.node)
    casts += [helper.make_node("Cast", [names[name]], [name], to=TensorProto.FLOAT) for name in floats[1]]
    del graph.node[:]
    graph.node.extend(casts)
    return result
