#!/usr/bin/env python3
"""Exports networks of networks.py with torch, each with symbolic dims, as a static twin, or both.

usage: export.py DIR [NAME...] [--twins dynamic,static] [--batch 1,4] [--new] [--json]
       export.py DIR --list

./dev models runs it with DIR = build/models for the networks that tests use, ./dev bench models for those it measures.

The dynamic twin lands in DIR/NAME/ as model.onnx with test_data_set_0..2 beside it, in the convention of the ONNX test
data: three input sizes each, with torch's answers. The static one of batch size B lands in DIR/NAME/static_B/, with one
set. --new leaves out what is there. For the benchmark: --json prints what there is then, --list all names. Needs Debian's python3-torch, python3-torchvision and python3-onnx.
"""
import argparse
import json
import pathlib
import sys
import warnings

import numpy
import onnx
import torch
from onnx import numpy_helper

from networks import NETWORKS


def check_dynamic(path, network):
    """The tracer bakes sizes into the graph where Python code let it: every promised dim must still be symbolic after
    shape inference, from inputs to outputs."""
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    promised = {name: shape for name, (shape, _) in network.inputs.items()}, network.outputs
    for role, values, wanted in zip(("inputs", "outputs"), (model.graph.input, model.graph.output), promised):
        if [value.name for value in values] != list(wanted):
            raise RuntimeError(f"{path}: {role} are {[value.name for value in values]}, expected {list(wanted)}")
        for value in values:
            dims = [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
            begin = wanted[value.name]
            matches = len(begin) <= len(dims) and all(
                dim == want for dim, want in zip(dims, begin) if isinstance(want, str) or role == "inputs")
            if not matches:
                raise RuntimeError(f"{path}: {value.name} has the dims {dims}, expected {begin} at their beginning")


def write_data_set(folder, model, inputs):
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    folder.mkdir(parents=True, exist_ok=True)
    for role, tensors in (("input", inputs), ("output", outputs)):
        for index, tensor in enumerate(tensors):
            proto = numpy_helper.from_array(numpy.ascontiguousarray(tensor.numpy()))
            (folder / f"{role}_{index}.pb").write_bytes(proto.SerializeToString())
    for tensor in outputs:
        degenerate = tensor.is_floating_point() and (not torch.isfinite(tensor).all() or tensor.std() < 0.05)
        if degenerate or tensor.abs().max() > 1000:
            raise RuntimeError(f"{folder}: degenerate output: deviation {tensor.std()}, largest {tensor.abs().max()}")


class Twin:
    """A network to export: with symbolic dims (batch is None), or with every dim fixed."""

    def __init__(self, network, folder, batch=None):
        self.network, self.batch = network, batch
        self.folder = folder / network.name / (f"static_{batch}" if batch else "")
        self.path = self.folder / "model.onnx"
        self.static_sizes = {**network.measured, "batch": batch or 1}

    def sets(self):
        sizes = [self.static_sizes] if self.batch and self.network.dims() else self.network.tested
        return [(self.folder / f"test_data_set_{index}", size) for index, size in enumerate(sizes)]

    def is_there(self):
        return self.path.exists() and all((folder / "output_0.pb").exists() for folder, _ in self.sets())

    def export(self, model):
        network = self.network
        self.folder.mkdir(parents=True, exist_ok=True)
        shapes = {**{name: shape for name, (shape, _) in network.inputs.items()}, **network.outputs}
        symbolic = {name: {axis: dim for axis, dim in enumerate(shape) if isinstance(dim, str)}
                    for name, shape in shapes.items()}
        examples = network.random_inputs(self.static_sizes if self.batch else network.tested[1])
        unfinished = self.path.with_suffix(".part")
        torch.onnx.export(
            model, examples, str(unfinished), opset_version=network.opset,
            dynamic_axes=None if self.batch else symbolic, input_names=list(network.inputs),
            output_names=list(network.outputs))
        if not self.batch:
            check_dynamic(unfinished, network)
        for folder, sizes in self.sets():
            write_data_set(folder, model, network.random_inputs(sizes))
        unfinished.rename(self.path)
        print(f"{self.path}: {self.path.stat().st_size / 1e6:.1f} MB, opset {network.opset}", file=sys.stderr)

    def description(self):
        sizes = dict(self.network.measured)
        if self.batch and "batch" in sizes:
            sizes["batch"] = self.batch
        return {"name": self.network.name, "twin": "static" if self.batch else "dynamic", "sizes": sizes,
                "file": str(self.path), "sets": [str(folder) for folder, _ in self.sets()]}


def twins(network, options):
    batches = options.batch if "batch" in network.dims() else [1]
    if "dynamic" in options.twins and network.dims():
        yield Twin(network, options.directory)
    if "static" in options.twins:
        yield from (Twin(network, options.directory, batch) for batch in batches)


def export(network, options):
    """Returns descriptions of what is there then."""
    wanted = list(twins(network, options))
    missing = [twin for twin in wanted if not (options.new and twin.is_there())]
    if missing:
        torch.manual_seed(0)
        model = network.build(lambda: network.random_inputs({**network.measured, "batch": network.examples}))
        for twin in missing:
            twin.export(model)
    return [twin.description() for twin in wanted]


def parsed():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("directory", type=pathlib.Path)
    arguments.add_argument("names", nargs="*", help=f"all, or of {', '.join(NETWORKS)}; without, those of tests")
    arguments.add_argument("--twins", type=lambda text: text.split(","), default=["dynamic"])
    arguments.add_argument("--batch", type=lambda text: [int(size) for size in text.split(",")], default=[1])
    arguments.add_argument("--new", action="store_true")
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--list", action="store_true")
    options = arguments.parse_args()
    if options.names == ["all"]:
        options.names = list(NETWORKS)
    options.names = options.names or [name for name, network in NETWORKS.items() if network.for_tests]
    unknown = [name for name in options.names if name not in NETWORKS]
    if unknown:
        arguments.error(f"no network {unknown[0]}; there are {', '.join(NETWORKS)}")
    return options


def main():
    options = parsed()
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)  # check_dynamic finds what they warn of
    if options.list:
        print(json.dumps(list(NETWORKS)))
        return 0
    found, failed = [], 0
    for name in options.names:
        try:
            found += export(NETWORKS[name], options)
        except RuntimeError as error:  # one network that fails must not hide the others
            print(f"{name}: {error}", file=sys.stderr)
            failed = 1
    if options.json:
        print(json.dumps(found))
    return failed


if __name__ == "__main__":
    sys.exit(main())
