#!/usr/bin/env python3
"""Writes composed/*.onnx: operators that consist of others, with inputs and results by the specification's formulas.

Run it with Debian's python3-onnx: make_composed.py [FOLDER] also writes each case to FOLDER/<group>/<case>/ in the form
of ONNX's backend tests. Each file is a model with a node for each case. Its initializers "input NAME" and "expected
NAME" are what composed_test.cc feeds and compares. The formulas here are NumPy code of their own; the dims that a case
names by letters are symbolic in the model. The groups are in composed_cases/, a file each.
"""
import importlib
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

HERE = Path(__file__).parent


class Group:
    def __init__(self, name, opset=1, domain="", ir_version=10):
        self.name, self.opset, self.domain, self.ir_version = name, opset, domain, ir_version
        self.cases, self.random = [], np.random.default_rng(7)

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def case(self, op, inputs, outputs, dims=None, const=(), **attributes):
        """inputs: arrays by name in order, None for an absent one; outputs: arrays, None for one that is not asked for.
        dims: "b s 24" by input, letters for symbolic dims. const: the inputs that are weights of the model."""
        self.cases.append((op, inputs, outputs, dims or {}, const, attributes))

    def write(self, folder):
        parts = [self.parts(k) for k in range(len(self.cases))]
        joined = [sum((part[i] for part in parts), []) for i in range(4)]
        nodes, inputs, outputs, weights = joined
        data = [tensor for k, part in enumerate(parts) for tensor in self.data(k)]
        onnx.save(self.model(nodes, inputs, outputs, weights + data), HERE / "composed" / (self.name + ".onnx"))
        for k in range(len(self.cases) if folder else 0):
            self.write_case(k, Path(folder) / self.name / f"{k}_{self.cases[k][0]}")

    def parts(self, k):
        op, inputs, outputs, dims, const, attributes = self.cases[k]
        names = ["" if value is None else f"{name}{k}" for name, value in inputs.items()]
        results = ["" if value is None else f"y{k}_{i}" for i, value in enumerate(outputs)]
        node = helper.make_node(op, names, results, name=f"case_{k}", domain=self.domain, **attributes)
        given, weights, declared = [], [], []
        for name, value in inputs.items():
            if value is None:
                continue
            if name in const:
                weights.append(numpy_helper.from_array(value, f"{name}{k}"))
                continue
            shape = [int(d) if d.isdigit() else f"{d}{k}" for d in dims[name].split()] if name in dims else value.shape
            assert len(shape) == value.ndim, (op, k, name)
            given.append(helper.make_tensor_value_info(f"{name}{k}", type_of(value), shape))
        for result, value in zip(results, outputs):
            if result:
                declared.append(helper.make_tensor_value_info(result, type_of(value), None))
        return [node], given, declared, weights

    def data(self, k):
        _, inputs, outputs, _, const, _ = self.cases[k]
        given = [numpy_helper.from_array(np.array(value, order="C"), f"input {name}{k}")
                 for name, value in inputs.items() if value is not None and name not in const]
        return given + [numpy_helper.from_array(np.asarray(value), f"expected y{k}_{i}")
                        for i, value in enumerate(outputs) if value is not None]

    def model(self, nodes, inputs, outputs, initializers):
        graph = helper.make_graph(nodes, self.name, inputs, outputs, initializers)
        opsets = [helper.make_opsetid("", self.opset if not self.domain else 20)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, self.opset))
        return helper.make_model(graph, opset_imports=opsets, ir_version=self.ir_version)

    def write_case(self, k, folder):
        folder.mkdir(parents=True, exist_ok=True)
        nodes, inputs, outputs, weights = self.parts(k)
        onnx.save(self.model(nodes, inputs, outputs, weights), folder / "model.onnx")
        for kind in "input", "expected":
            tensors = [t for t in self.data(k) if t.name.startswith(kind)]
            for i, tensor in enumerate(tensors):
                tensor.name = tensor.name.split(" ")[1]
                data = folder / "test_data_set_0"
                data.mkdir(exist_ok=True)
                (data / f"{'input' if kind == 'input' else 'output'}_{i}.pb").write_bytes(tensor.SerializeToString())


def type_of(value):
    return helper.np_dtype_to_tensor_dtype(value.dtype) if hasattr(helper, "np_dtype_to_tensor_dtype") else \
        onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[value.dtype]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else None
    sys.path.insert(0, str(HERE / "composed_cases"))
    sys.modules["make_composed"] = sys.modules["__main__"]
    for path in sorted((HERE / "composed_cases").glob("*.py")):
        for group in importlib.import_module(path.stem).groups():
            group.write(folder)


if __name__ == "__main__":
    main()
