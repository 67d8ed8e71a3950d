#!/usr/bin/env python3
"""Writes networks that export.py exported in int8, in the forms that ONNX Runtime's own tool writes, and in 16 bits.

usage: quantize.py DIR [NAME_FORM...] [--twins dynamic,static] [--new] [--json]        (without names: all of them)
       quantize.py DIR --list

From DIR/NAME/ it makes DIR/NAME_FORM/: the model and, with symbolic dims and as static twin, what of the two is there.
Beside it lie the same inputs, whose answers are those of the float model. Ranges of activations are those for these
inputs. quantized_forms.py and narrow_forms.py have the forms. --new leaves out what is there; for the benchmark,
--json prints what there is then, --list all names.
"""
import argparse
import json
import pathlib
import shutil
import sys

import onnx
from onnx import TensorProto

import narrow_forms
import quantized_forms
from evaluate import ranges_of, tensor_of

NETWORKS = {
    "resnet18": ("int8", "qdq", "qdq_s8", "qlinear"),
    "resnet50": ("qdq", "qdq_s8", "qlinear", "fp16", "bf16"),
    "mobilenet_v2": ("qdq", "qdq_s8", "qlinear"),
    "bert": ("qdq", "dynamic"),
    "bert_base": ("qdq", "dynamic", "fp16", "bf16"),
}
# Each form of a model takes a function that returns the ranges of its values.
FORMS = {
    "int8": lambda model, ranges: quantized_forms.products_only(model, ranges()),
    "qdq": lambda model, ranges: quantized_forms.qdq(model, ranges(), "uint8"),
    "qdq_s8": lambda model, ranges: quantized_forms.qdq(model, ranges(), "int8"),
    "qlinear": lambda model, ranges: quantized_forms.qlinear(model, ranges()),
    "dynamic": lambda model, ranges: quantized_forms.dynamic(model, ranges()),
    "fp16": lambda model, _: narrow_forms.narrow(model, TensorProto.FLOAT16),
    "bf16": lambda model, _: narrow_forms.narrow(model, TensorProto.BFLOAT16),
}
MEASURED = {name: {"batch": 1, **({"sequence": 128} if "bert" in name else {})} for name in NETWORKS}
NAMES = {f"{network}_{form}": (network, form) for network, forms in NETWORKS.items() for form in forms}


def inputs_in(folder):
    files = sorted(folder.glob("input_*.pb"))
    return [tensor_of(TensorProto.FromString(file.read_bytes())) for file in files]


def quantize(source, target, form):
    sets = sorted(source.glob("test_data_set_*"))
    model = onnx.load(str(source / "model.onnx"))
    result = FORMS[form](model, lambda: ranges_of(model, map(inputs_in, sets)))
    onnx.checker.check_model(result)
    target.mkdir(parents=True, exist_ok=True)
    for folder in sets:
        shutil.copytree(folder, target / folder.name, dirs_exist_ok=True)
    unfinished = target / "model.part"
    onnx.save(result, str(unfinished))
    unfinished.rename(target / "model.onnx")
    size = (target / "model.onnx").stat().st_size
    print(f"{target / 'model.onnx'}: {size / 1e6:.1f} MB, {len(result.graph.node)} nodes", file=sys.stderr)


def quantize_twins(name, options):
    """Returns descriptions of what is there then, as export.py does."""
    network, form = NAMES[name]
    for twin, folder in (("dynamic", ""), ("static", "static_1")):
        source, target = options.directory / network / folder, options.directory / name / folder
        model = target / "model.onnx"
        if twin not in options.twins or not (source / "model.onnx").exists():
            continue
        if not (options.new and model.exists()):
            quantize(source, target, form)
        sets = [str(path) for path in sorted(target.glob("test_data_set_*"))]
        yield {"name": name, "twin": twin, "sizes": MEASURED[network], "file": str(model), "sets": sets}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("directory", type=pathlib.Path)
    arguments.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}")
    arguments.add_argument("--twins", type=lambda text: text.split(","), default=["dynamic", "static"])
    arguments.add_argument("--new", action="store_true")
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--list", action="store_true")
    options = arguments.parse_args()
    if options.list:
        print(json.dumps(list(NAMES)))
        return 0
    for name in options.names:
        if name not in NAMES:
            arguments.error(f"no network {name}; there are {', '.join(NAMES)}")
    found, failed = [], 0
    for name in options.names or NAMES:
        twins = list(quantize_twins(name, options))
        if not twins:
            print(f"{options.directory / NAMES[name][0]}: no model.onnx; export.py makes it", file=sys.stderr)
            failed = 1
        found += twins
    if options.json:
        print(json.dumps(found))
    return failed


if __name__ == "__main__":
    sys.exit(main())
