"""relaxc as a backend of the package onnx, so that onnx.backend.test.BackendTest(relaxc.backend, __name__) runs its tests.

Either the module or the class `Backend` is the backend. The options of `prepare` are those of `relaxc.compile`."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np
import onnx  # type: ignore[import]
import onnx.backend.base  # type: ignore[import]
from onnx import helper

from . import CompileError, Model, Module, compile
from .errors import counted

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class BackendRep(onnx.backend.base.BackendRep):  # type: ignore[misc]
    """A compiled model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs on one input, a list of them in order, or a dict by name, and returns the results in order."""
        if isinstance(inputs, Mapping):
            return tuple(self.model.run(inputs).values())
        values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        names = [info.name for info in self.model.inputs]
        if len(values) > len(names):
            raise ValueError(f"the model has {counted(len(names), 'input')}, got {len(values)}")
        return tuple(self.model.run(dict(zip(names, values))).values())


class Backend(onnx.backend.base.Backend):  # type: ignore[misc]
    """Compiles and runs ONNX models on the processor ("CPU")."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Returns whether the model can be imported and the device is "CPU". It is not compiled: some models fail later."""
        if not cls.supports_device(device):
            return False
        try:
            Module.from_onnx(model)
        except CompileError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Compiles the model for the device "CPU"."""
        if not cls.supports_device(device):
            raise ValueError(f"relaxc has no device '{device}', only CPU")
        return BackendRep(compile(model, **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compiles the model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """Runs one node on arrays, those of its inputs that have a name, in order. `opset_version` is that of the
        node's operators; the package's newest by default."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = [np.asarray(value) for value in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        names = [name for name in node.input if name]
        if len(names) != len(arrays):
            raise ValueError(f"the node has {counted(len(names), 'input')}, got {len(arrays)}")
        given = [helper.make_tensor_value_info(name, _element_type(array), array.shape)
                 for name, array in zip(names, arrays)]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        for result, (dtype, shape) in zip(results, outputs_info or ()):
            result.CopyFrom(helper.make_tensor_value_info(result.name, _element_type(np.empty(0, dtype)), shape))
        graph = helper.make_graph([node], "node", given, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


def _element_type(array: np.ndarray[Any, Any]) -> int:
    if array.dtype.kind in "USO":
        return int(onnx.TensorProto.STRING)
    return int(onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype])


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
