#!/usr/bin/env python3
"""Writes cases/: operators in versions that Debian's ONNX does not have, or that its test data touch only once.

Each file is a `# test: run`: a model whose nodes are one operator with different attributes, inputs of several sizes, and
the results of NumPy code that follows the specification's formulas (formulas.py). Run it with Debian's python3-numpy
after changing it, and commit what it wrote: make_cases.py [NAME...]
"""
import sys
import zlib
from pathlib import Path

import numpy as np

import formulas as f

HERE = Path(__file__).parent
NAMES = {"float32": "float", "float64": "double"}


class Bfloat16(np.ndarray):
    """Numbers of bfloat16, held as float32."""


def bfloat16(x):
    bits = np.asarray(x).astype(np.float32).view(np.uint32)
    even = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    rounded = np.where(np.isnan(x), bits & 0xFFFF0000, even).astype(np.uint32).view(np.float32)
    return rounded.view(Bfloat16)


cases = {}


def case(name, opset, about, inputs, runs, nodes, constants=None, domain=""):
    """Inputs are "float[n,3] x; int64 k"; a run is a title and arrays; a node is (operator, attributes, operands, outputs,
    function of the operands' arrays that gives one array or several)."""
    assert name not in cases
    cases[name] = (opset, about, inputs, runs, nodes, constants or {}, domain)


def rng(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def numbers(*shape, seed="x", low=-32, high=33, dtype=np.float32):
    """Eighths, which are exact and short."""
    return (rng(f"{seed}{shape}").integers(low, high, shape) / 8).astype(dtype)


def integers(*shape, seed="i", low=0, high=10, dtype=np.int64):
    return rng(f"{seed}{shape}").integers(low, high, shape).astype(dtype)


# ---- Text


def attribute(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attribute(item) for item in value) + "]"
    if isinstance(value, str):
        return f'"{value}"' if type(value) is str else str(value)  # the source of a graph or a tensor
    if isinstance(value, float):
        text = f"{value:.9g}"
        return text if "." in text or "e" in text else text + ".0"
    return str(int(value))


def element(value):
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, np.bool_):
        return str(bool(value))
    if isinstance(value, np.floating):
        shown = np.float32(value) if value.dtype == np.float16 else value
        return np.format_float_positional(shown, trim="-") if np.isfinite(shown) else str(shown)
    return str(int(value))


def tensor(array):
    array = np.asarray(array)
    if array.size == 0:
        return f"numbers({', '.join(map(str, array.shape))})"
    if array.ndim == 0:
        return element(array[()])
    return "[" + ", ".join(tensor(item) for item in array) + "]"


def type_name(array):
    if array.dtype == object:
        return "string"
    return "bfloat16" if isinstance(array, Bfloat16) else str(array.dtype)


def onnx_type(array):
    return NAMES.get(type_name(array), type_name(array))


def flat(array):
    """The elements of an initializer, where a flag is a number."""
    return ", ".join(element(np.int64(item) if isinstance(item, np.bool_) else item) for item in np.asarray(array).ravel())


def outcome(name, array):
    shape = ", ".join(map(str, array.shape))
    return f"{name}: {type_name(array)}[{shape}] = {tensor(array) if array.size else '[]'}"


def text_of(name):
    opset, about, inputs, runs, nodes, constants, domain = cases[name]
    operands = [declared.strip() for declared in inputs.split(";")] if inputs else []
    names = [declared.split(" ")[-1] for declared in operands]
    body, results, outputs = [], [[] for _ in runs], []
    for k, (op, attributes, used, count, function) in enumerate(nodes):
        produced = [f"y{k}" if count == 1 else f"y{k}_{i}" for i in range(count)]
        used = used.split(" ") if used else []
        given = ", ".join("" if operand == "-" else operand for operand in used)
        listed = ", ".join(f"{key} = {attribute(value)}" for key, value in attributes.items())
        shown = f" <{listed}>" if listed else ""
        body.append(f"  {', '.join(produced)} = {domain + '.' if domain else ''}{op}{shown} ({given})")
        for r, (_, arrays) in enumerate(runs):
            known = {**dict(zip(names, arrays)), **constants}
            found = function(*[None if operand == "-" else known[operand] for operand in used])
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            assert len(found) == count, (name, op)
            found = [np.asanyarray(array) for array in found]
            results[r] += [outcome(label, array) for label, array in zip(produced, found)]
            if r == 0:
                outputs += [f"{onnx_type(array)}[] {label}" for label, array in zip(produced, found)]
    fixed = [f"{onnx_type(np.asanyarray(array))}{list(np.shape(array)) if np.ndim(array) else ''} {label} = "
             f"{{{flat(array)}}}" for label, array in constants.items()]
    domains = f', "{domain}": 1' if domain else ""
    lines = ["# test: run", f"# {about}", "# Written by tests/onnx/make_cases.py.",
             f'<ir_version: 8, opset_import: ["": {opset}{domains}]>',
             f"{name} ({', '.join(operands)}) => ({', '.join(outputs)})"]
    if fixed:
        lines.append(f"  <{', '.join(fixed)}>")
    lines += ["{"] + body + ["}"]
    for (title, arrays), found in zip(runs, results):
        lines.append(f"# ---- run: {title}")
        lines += [f"{label} = {tensor(array)}" for label, array in zip(names, arrays)]
        has_text = any(": string[" in line for line in found)  # text is compared as it is written, numbers by value
        lines += ["# ---- result" if has_text else "# ---- expected"] + found
    return "\n".join(lines) + "\n"


def main():
    import case_lists  # these fill the table
    import moved_cases
    import type_cases

    for lists in case_lists, type_cases, moved_cases:
        lists.add(sys.modules[__name__])
    for name in sys.argv[1:] or cases:
        (HERE / "cases" / f"{name}.test").write_text(text_of(name))


if __name__ == "__main__":
    main()
