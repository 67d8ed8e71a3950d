#!/usr/bin/python3
"""./dev bench import: what importing an ONNX model costs.

usage: run.py --relaxc BINARY [--json FILE] [--rounds N]

Runs, on the models of generate.py, `relaxc opt --passes=canonicalize`, which imports, runs one pass and prints,
and `relaxc inspect`. Printed per model and command: the least seconds of processor time and the most memory of N rounds
(3), without and with those of an empty model, which stand for the start of the process. A model of 500 nodes must take
less than 0.2 s, and 2 GB of weights less than 200 MB of memory; the exit code is 1 otherwise.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

GENERATE = pathlib.Path(__file__).with_name('generate.py')
MOST_SECONDS, MOST_MEMORY = 0.2, 200e6
COMMANDS = {'import': ['opt', '--passes=canonicalize'], 'inspect': ['inspect']}


def cost(command):
    """Processor seconds and the most memory of one run, at least that of this process, which is small."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f'{" ".join(command)}: {error}')
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--relaxc', required=True)
    parser.add_argument('--json')
    parser.add_argument('--rounds', type=int, default=3)
    options = parser.parse_args()
    rows, start, is_slow = [], {}, False
    print(f'{"model":20} {"command":8} {"seconds":>8} {"of import":>9} {"MB":>6} {"of import":>9}')
    for name in subprocess.check_output([GENERATE, '--list'], text=True).split():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'model.onnx'
            subprocess.run([GENERATE, name, path], check=True)
            for command, words in COMMANDS.items():
                costs = [cost([options.relaxc, *words, str(path)]) for _ in range(options.rounds)]
                seconds, memory = min(c[0] for c in costs), max(c[1] for c in costs)
                start.setdefault(command, (seconds, memory))
                own = seconds - start[command][0], memory - start[command][1]
                rows.append({'model': name, 'command': command, 'seconds': seconds, 'bytes': memory})
                bad = command == 'import' and (name == '500_nodes' and seconds > MOST_SECONDS or
                                               name[0] in '12' and 'GB' in name and memory > MOST_MEMORY)
                is_slow = is_slow or bad
                print(f'{name:20} {command:8} {seconds:8.3f} {own[0]:9.3f} {memory / 1e6:6.0f} {own[1] / 1e6:9.0f}'
                      + ('  beyond the bound' if bad else ''))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + '\n')
    return 1 if is_slow else 0


if __name__ == '__main__':
    sys.exit(main())
