"""How the models of this folder are made: makers of nodes, tensors and models, and the list of models, `makers`."""
import pathlib

import numpy
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE / "models"
FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
HUGE = 1 << 40

makers = {}


def model_file(make):
    makers[make.__name__] = make
    return make


def value(name, shape=(2, 3), dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op, inputs, outputs, name=None, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name or f"the_{op.lower()}", **attributes)


def constant(name, array):
    return numpy_helper.from_array(numpy.asarray(array), name)


def floats(name, *shape):
    return constant(name, numpy.linspace(-1, 1, int(numpy.prod(shape)), dtype=numpy.float32).reshape(shape))


def model(nodes, initializers=(), inputs=None, outputs=None, opset=13, functions=(), domains=()):
    graph = helper.make_graph(
        nodes, "hostile", [value("x")] if inputs is None else inputs, [value("y")] if outputs is None else outputs,
        list(initializers),
    )
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def raw_tensor(name, dims, data, dtype=FLOAT):
    return TensorProto(name=name, data_type=dtype, dims=dims, raw_data=data)


def external_tensor(name, dims, location, **more):
    tensor = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def add_weight(weight, **more):
    """y = x + w, where w is the tensor under attack."""
    return model([node("Add", "x w", "y")], [weight], **more)
