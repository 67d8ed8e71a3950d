#!/usr/bin/python3
"""Writes the forms of the survey as models: DIR/static/NAME.onnx, and DIR/dims/NAME.onnx with symbolic dims.

usage: export.py DIR [--filter TEXT] [--most-bytes N]

Standard output gets a line of JSON for each model: name ("conv2d_.../static"), model, values of its symbolic dims,
files of the inputs whose values matter, float operations, bytes, operator. --most-bytes leaves out forms with more
bytes of constants. Needs Debian's python3-onnx.
"""
import argparse
import json
import pathlib
import sys

import numpy
import onnx

import convolutions
import elementwise
import movement
import products
import reasons
import reductions
import structures

FORMS = [form for table in (convolutions, products, reductions, elementwise, movement, structures)
         for form in table.FORMS]


def write_inputs(form, folder):
    files = {}
    for name, tensor in form.inputs().items():
        if tensor.limits is None:
            continue
        low, high = tensor.limits
        random = numpy.random.default_rng(1)
        is_integer = numpy.issubdtype(numpy.dtype(tensor.dtype), numpy.integer)
        values = random.integers(low, high, tensor.shape) if is_integer else random.uniform(low, high, tensor.shape)
        files[name] = str(folder / f'{form.name}.{name}.npy')
        numpy.save(files[name], numpy.asarray(values, tensor.dtype))
    return files


def export(form, folder, pattern):
    names = [f'{form.name}/{kind}' for kind in ('static', 'dims')]
    if not any(pattern in name for name in names):
        return
    shapes, types = form.inferred()
    operations, touched = form.work(shapes, types)
    files = write_inputs(form, folder)
    dims = {dim: size for tensor in form.inputs().values() for dim, size in tensor.dims if dim}
    for name in names:
        is_symbolic = name.endswith('/dims')
        if pattern not in name or (is_symbolic and not dims):
            continue
        path = folder / ('dims' if is_symbolic else 'static') / f'{form.name}.onnx'
        onnx.save(form.model(is_symbolic, types), path)
        op = form.op if isinstance(form.op, str) else 'nodes'
        print(json.dumps({'name': name, 'model': str(path), 'dims': dims if is_symbolic else {}, 'inputs': files,
                          'operations': int(operations), 'bytes': int(touched), 'op': op,
                          'reason': form.reason or reasons.reason_of(form.name)}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--filter', default='')
    parser.add_argument('--most-bytes', type=int)
    options = parser.parse_args()
    for kind in ('static', 'dims'):
        (options.folder / kind).mkdir(parents=True, exist_ok=True)
    names = [form.name for form in FORMS]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        sys.exit(f'export.py: error: two forms have the name {", ".join(sorted(twice))}')
    for form in FORMS:
        if options.most_bytes is None or form.constant_bytes() <= options.most_bytes:
            export(form, options.folder, options.filter)


if __name__ == '__main__':
    main()
