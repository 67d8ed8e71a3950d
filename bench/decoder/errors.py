#!/usr/bin/env python3
"""Tells how far decoders with weights of few bits are from float32: a token behind caches of several lengths.

  errors.py FOLDER [--networks gpt2_step,llama_step,whisper_decoder] [--past 0,1,127,1000] [--batch 1,2] [--new]
            [--relaxc build/relaxc] [--ort build/ort_bench]

Exports the networks of bench/models/networks.py, lets `relaxc quantize` make each of FORMS of them, compiles all, and runs
them on random tokens. The keys and values before these are those that the float32 artifact computes of other random tokens.
An error is the root mean square of an output's difference from torch's, divided by the root mean square of torch's; the table
shows that of the worst output and the worst batch. With --ort, ONNX Runtime computes the same files on the same inputs,
without graph optimizations (with int8 weights they give other numbers): "from ort" is the largest difference between both,
which says that relaxc computes as the file says. Needs Debian's python3-torch, python3-torchvision and python3-onnx.
"""
import argparse
import pathlib
import subprocess
import sys

import numpy
import torch
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
from networks import NETWORKS  # noqa: E402

FORMS = {"float32": None, "int8": ["--weights", "int8"], "int4": ["--weights", "int4"],
         "int4, blocks of 16": ["--weights", "int4", "--block", "16"], "dynamic": ["--dynamic"]}
# The longest past of a network that has learnt fewer positions than --past asks for.
LONGEST = {"whisper_decoder": 447}
SOURCE = 100


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--networks", type=lambda text: text.split(","), default=["gpt2_step", "llama_step", "whisper_decoder"])
    parser.add_argument("--past", type=numbers, default=[0, 1, 127, 1000])
    parser.add_argument("--batch", type=numbers, default=[1, 2])
    parser.add_argument("--new", action="store_true", help="keep models that are there")
    parser.add_argument("--relaxc", default="build/relaxc")
    parser.add_argument("--ort", help="build/ort_bench, to compare with ONNX Runtime, too")
    return parser.parse_args()


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: ended with {done.returncode}\n{done.stdout}{done.stderr}")


def ort_library():
    return next((HERE.parent / "ort/node_modules/onnxruntime-node/bin").glob("*/linux/x64/libonnxruntime.so.1"))


def relative_error(actual, expected):
    """Returns the largest relative root mean square difference of an output."""
    return max(numpy.sqrt(numpy.mean((a - e) ** 2) / numpy.mean(e**2)) for a, e in zip(actual, expected))


class Case:
    """The inputs of a run, in a folder of ONNX's test data, and torch's results."""

    def __init__(self, a, network, model, folder, batch, past):
        self.folder = folder / f"batch_{batch}_past_{past}"
        torch.manual_seed(past)
        make = lambda length: list(network.random_inputs(
            {"batch": batch, "length": length, "past": 0, "source": SOURCE}))
        with torch.no_grad():
            inputs = make(1)
            count = sum(name.startswith("past.") for name in network.inputs)
            if past > 0:
                before = make(past)
                before[1 + count:] = inputs[1 + count:]  # the source stays
                inputs[1:1 + count] = self.caches(a, network, folder / "float32.so", before, count)
            self.expected = [tensor.numpy() for tensor in model(*inputs)]
        self.folder.mkdir(parents=True, exist_ok=True)
        for role, arrays in (("input", [tensor.numpy() for tensor in inputs]), ("output", self.expected)):
            for index, array in enumerate(arrays):
                proto = numpy_helper.from_array(numpy.ascontiguousarray(array))
                (self.folder / f"{role}_{index}.pb").write_bytes(proto.SerializeToString())

    def caches(self, a, network, artifact, inputs, count):
        """Returns the keys and values of tokens that the float32 artifact computes."""
        folder, flags = self.folder / "before", []
        folder.mkdir(parents=True, exist_ok=True)
        for index, (name, tensor) in enumerate(zip(network.inputs, inputs)):
            numpy.save(folder / f"input_{index}.npy", tensor.numpy())
            flags += ["--input", f"{name}={folder}/input_{index}.npy"]
        run(a.relaxc, "run", artifact, *flags, "--output-dir", folder)
        return [torch.from_numpy(numpy.load(folder / f"output_{index + 1}.npy")) for index in range(count)]

    def results(self, folder):
        return [numpy.load(folder / f"output_{index}.npy") for index in range(len(self.expected))]

    def with_relaxc(self, a, artifact):
        folder = self.folder / "relaxc"
        run(a.relaxc, "run", artifact, "--test-data", self.folder, "--output-dir", folder, "--atol", 1e9)
        return self.results(folder)

    def with_ort(self, a, model):
        folder = self.folder / "ort"
        run(a.ort, model, "--library", ort_library(), "--threads", "2", "--plain", "--test-data", self.folder, "--results", folder)
        return self.results(folder)


def compiled(a, folder, form, flags):
    """Returns the model in that form, and its artifact."""
    float_model = folder / "model.onnx"
    name = form.replace(", ", "_").replace(" ", "_")
    model = folder / f"{name}.onnx" if flags else float_model
    artifact = folder / f"{name}.so"
    if flags and not (a.new and model.exists()):
        run(a.relaxc, "quantize", float_model, "-o", model, *flags)
    run(a.relaxc, "compile", model, "-o", artifact)
    return model, artifact


def measure(a, name):
    network, folder = NETWORKS[name], a.folder / name
    run(sys.executable, HERE.parent / "models/export.py", a.folder, name, *(["--new"] if a.new else []))
    torch.manual_seed(0)
    model = network.build(lambda: network.random_inputs({**network.measured, "batch": network.examples}))
    pasts = sorted({min(past, LONGEST.get(name, past)) for past in a.past})
    run(a.relaxc, "compile", folder / "model.onnx", "-o", folder / "float32.so")
    cases = {past: [Case(a, network, model, folder, batch, past) for batch in a.batch] for past in pasts}
    del model
    columns = "".join(f"past {past} | " for past in pasts)
    print(f"\n| {name} | model MB | artifact MB | {columns}{'from ort |' if a.ort else ''}", flush=True)
    print("|---" * (3 + len(pasts) + bool(a.ort)) + "|")
    for form, flags in FORMS.items():
        file, artifact = compiled(a, folder, form, flags)
        errors, between = {}, 0
        for past, of_past in cases.items():
            ours = [case.with_relaxc(a, artifact) for case in of_past]
            errors[past] = max(relative_error(each, case.expected) for each, case in zip(ours, of_past))
            if a.ort:
                between = max([between, *(relative_error(each, case.with_ort(a, file)) for each, case in zip(ours, of_past))])
        sizes = "".join(f"{path.stat().st_size / 1e6:.0f} | " for path in (file, artifact))
        cells = "".join(f"{error:.2g} | " for error in errors.values())
        print(f"| {form} | {sizes}{cells}{f'{between:.2g} |' if a.ort else ''}", flush=True)
        artifact.unlink()


def main():
    a = arguments()
    for name in a.networks:
        measure(a, name)


if __name__ == "__main__":
    main()
