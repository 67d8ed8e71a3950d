#!/usr/bin/python3
"""./dev bench compile: what compiling costs, and how it grows with the size of a model.

usage: run.py --relaxc BINARY [--models DIR] [--json FILE] [--filter TEXT] [--limit SECONDS]

Compiles each family of generate.py at several sizes, and every DIR/NAME/model.onnx. Printed per compile: processor
seconds (user and system, all threads), the most memory that was resident, bytes of the artifact, and for families
`growth`, the exponent b of seconds ~ size^b between this size and the one before, without the time of an empty model:
1 is linear, 2 quadratic. A family whose last growth is above 1.3 is marked, and so is a network above 10 seconds; the
exit code is then 1.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

NODES = [1000, 3000, 10000]
# family -> (sizes, seconds at the last size)
FAMILIES = {
    'chain_matmul': (NODES, 10),
    'chain_add': (NODES, 10),
    'chain_shape': (NODES, 10),
    'ladder': (NODES, 10),
    'wide': (NODES, 10),
    'text_add': ([2000, 6000, 20000], 20),
    'concat': ([500, 1500, 5000], 10),
    'concat_dynamic': ([500, 1500, 5000], 10),
    'sum': ([500, 1500, 5000], 10),
    'max': ([500, 1500, 5000], 10),
    'einsum': ([500, 1500, 5000], 10),
    'split': ([500, 1500, 5000], 10),
    'nested_if': ([5, 10, 20], 10),
    'lstm': ([8, 32, 128], 60),
    'dense': ([2, 4, 8], 10),
}
MOST_GROWTH = 1.3
MOST_MODEL_SECONDS = 10
LEAST_SECONDS = 0.3  # below that the growth of a time says nothing
MEMORY_FACTOR, MEMORY_BASE = 1.3, 200e6  # a compile may take that many times the model's bytes, and so much besides

GENERATE = pathlib.Path(__file__).with_name('generate.py')


def compile_model(relaxc, model, limit):
    """One run of the compiler in a process of its own; this one is small, so that its memory does not count."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, 'model.so')
        process = subprocess.Popen(['timeout', str(limit), relaxc, 'compile', str(model), '-o', output],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        error = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        row = {'cpu_s': usage.ru_utime + usage.ru_stime, 'peak_mb': usage.ru_maxrss / 1e3,
               'model_mb': model_bytes(model) / 1e6}
        if process.returncode != 0:
            reason = f'more than {limit} s' if process.returncode == 124 else f'exit code {process.returncode}'
            return {**row, 'error': reason, 'stderr': error[-400:]}
        return {**row, 'artifact_mb': os.path.getsize(output) / 1e6}


def model_bytes(model):
    """With the external data beside it."""
    files = [model] if model.name != 'model.onnx' else [path for path in model.parent.iterdir() if path.is_file()]
    return sum(path.stat().st_size for path in files)


def growth(previous, row, empty):
    if previous is None or 'error' in row or 'error' in previous or row['cpu_s'] < LEAST_SECONDS:
        return None
    seconds = [max(entry['cpu_s'] - empty, 0.01) for entry in (previous, row)]
    return math.log(seconds[1] / seconds[0]) / math.log(row['size'] / previous['size'])


def print_row(row):
    number = lambda key, digits: f'{row[key]:.{digits}f}' if row.get(key) is not None else ''
    print(f"{row['name']:<22}{row.get('size', ''):>7}{number('cpu_s', 2):>9}{number('peak_mb', 0):>9}"
          f"{number('model_mb', 1):>10}{number('artifact_mb', 2):>13}{number('growth', 2):>8}  "
          f"{'; '.join(row['complaints'])}", flush=True)


def complaints_of(row, most_seconds):
    result = []
    if 'error' in row:
        result.append(row['error'])
    if row['cpu_s'] > most_seconds:
        result.append(f'more than {most_seconds} s')
    if row.get('growth') is not None and row['growth'] > MOST_GROWTH:
        result.append(f'growth above {MOST_GROWTH}')
    if row['peak_mb'] * 1e6 > MEMORY_FACTOR * row['model_mb'] * 1e6 + MEMORY_BASE:
        result.append(f'memory above {MEMORY_FACTOR} times the model + {MEMORY_BASE / 1e6:.0f} MB')
    return result


def measure_family(options, name, empty, scratch):
    sizes, most_seconds = FAMILIES[name]
    rows = []
    for size in sizes:
        model = pathlib.Path(scratch) / f"{name}.{'py' if name.startswith('text_') else 'onnx'}"
        subprocess.run([sys.executable, GENERATE, name, str(size), model], check=True)
        row = {'name': name, 'size': size, **compile_model(options.relaxc, model, options.limit)}
        row['growth'] = growth(rows[-1] if rows else None, row, empty)
        row['complaints'] = complaints_of(row, most_seconds)
        rows.append(row)
        print_row(row)
        model.unlink()
        if 'error' in row:
            break
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--relaxc', required=True)
    parser.add_argument('--models', type=pathlib.Path)
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--filter', default='')
    parser.add_argument('--limit', type=int, default=120)
    options = parser.parse_args()
    print(f"{'model':<22}{'size':>7}{'cpu_s':>9}{'peak_mb':>9}{'model_mb':>10}{'artifact_mb':>13}{'growth':>8}")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        smallest = pathlib.Path(scratch) / 'smallest.onnx'
        subprocess.run([sys.executable, GENERATE, 'chain_add', '1', smallest], check=True)
        empty = compile_model(options.relaxc, smallest, options.limit)['cpu_s']
        for name in FAMILIES:
            if options.filter in name:
                rows += measure_family(options, name, empty, scratch)
    for model in sorted(options.models.glob('*/model.onnx')) if options.models else []:
        name = model.parent.name
        if options.filter not in name:
            continue
        row = {'name': name, **compile_model(options.relaxc, model, options.limit)}
        row['complaints'] = complaints_of(row, MOST_MODEL_SECONDS)
        rows.append(row)
        print_row(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + '\n', encoding='utf-8')
    return 1 if any(row['complaints'] for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
