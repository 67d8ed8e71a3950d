#!/usr/bin/env python3
"""Writes networks that export.py exported in int8, in the forms that ONNX Runtime's own tool writes.

usage: quantize.py DIR [NAME_FORM...]        (without: all of them; ./dev models runs it for resnet18_int8)

From DIR/NAME/ it makes DIR/NAME_FORM/, with the same inputs beside the model (their answers are those of the float
model), and the static twin, if there is one. Ranges of activations are those for these inputs. The forms stand in
quantized_forms.py.
"""
import pathlib
import shutil
import sys

import onnx
from onnx import TensorProto

import quantized_forms
from evaluate import ranges_of, tensor_of

NETWORKS = {
    "resnet18": ("int8", "qdq", "qdq_s8", "qlinear"),
    "resnet50": ("qdq", "qdq_s8", "qlinear"),
    "mobilenet_v2": ("qdq", "qdq_s8", "qlinear"),
    "bert": ("qdq", "dynamic"),
    "bert_base": ("qdq", "dynamic"),
}
FORMS = {
    "int8": quantized_forms.products_only,
    "qdq": lambda model, ranges: quantized_forms.qdq(model, ranges, "uint8"),
    "qdq_s8": lambda model, ranges: quantized_forms.qdq(model, ranges, "int8"),
    "qlinear": quantized_forms.qlinear,
    "dynamic": quantized_forms.dynamic,
}
NAMES = {f"{network}_{form}": (network, form) for network, forms in NETWORKS.items() for form in forms}


def inputs_in(folder):
    files = sorted(folder.glob("input_*.pb"))
    return [tensor_of(TensorProto.FromString(file.read_bytes())) for file in files]


def quantize(source, target, form):
    sets = sorted(source.glob("test_data_set_*"))
    model = onnx.load(str(source / "model.onnx"))
    result = FORMS[form](model, ranges_of(model, map(inputs_in, sets)))
    onnx.checker.check_model(result)
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(result, str(target / "model.onnx"))
    for folder in sets:
        shutil.copytree(folder, target / folder.name, dirs_exist_ok=True)
    size = (target / "model.onnx").stat().st_size
    print(f"{target / 'model.onnx'}: {size / 1e6:.1f} MB, {len(result.graph.node)} nodes", file=sys.stderr)


def main():
    if len(sys.argv) < 2 or any(name not in NAMES for name in sys.argv[2:]):
        print(f"usage: quantize.py DIR [NAME...]; names: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    directory = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or NAMES:
        network, form = NAMES[name]
        for twin in ("", "static_1"):
            source = directory / network / twin
            if (source / "model.onnx").exists():
                quantize(source, directory / name / twin, form)
            elif not twin:
                print(f"{source}: no model.onnx; export.py makes it", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
