"""Measures what a call from Python costs beside the kernels: a model of one tiny kernel, on one thread (./dev bench python).

Figures are minima of processor time over many rounds, in microseconds a call. The exit code is 1 when a call with small
arrays of NumPy or tensors of torch, which have the shapes and dtypes of the call before, exceeds its bound."""
import argparse
import itertools
import json
import sys
import time

import numpy as np
import relaxc

BOUND = 10.0  # microseconds, of the calls BOUNDED
BOUNDED = ["by place", "by name", "run(), results by name", "symbolic dim", "read-only inputs", "out=", "by name, out=",
           "torch tensors", "torch tensors, out="]
ADD = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            z = R.add(x, y)
            R.output(z)
        return z
"""


def cost(call, rounds, calls=2000):
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time_ns()
        for _ in range(calls):
            call()
        best = min(best, (time.thread_time_ns() - start) / calls / 1000)
    return round(best, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    static = relaxc.Module.from_text(ADD).compile(threads=1)
    symbolic = relaxc.Module.from_text(ADD.replace("(4,)", '("n",)')).compile(threads=1)
    sizes = itertools.cycle([np.ones(4, np.float32), np.ones(8, np.float32)])
    x, large = np.ones(4, np.float32), np.ones(65536, np.float32)
    fixed = x.copy()
    fixed.setflags(write=False)
    out = np.empty(4, np.float32)
    calls = {
        "by place": lambda: static(x, x),
        "by name": lambda: static(x=x, y=x),
        "run(), results by name": lambda: static.run(x=x, y=x),
        "symbolic dim": lambda: symbolic(x, x),
        "read-only inputs": lambda: static(fixed, fixed),
        "out=": lambda: static(x, x, out=out),
        "by name, out=": lambda: static(x=x, y=x, out=out),
        "symbolic dim, another size each time": lambda: symbolic(*[next(sizes)] * 2),
        "lists": lambda: static([1, 2, 3, 4], [1, 2, 3, 4]),
        "NumPy's x + x, for comparison": lambda: x + x,
        "256 KiB results, with their kernel": lambda: symbolic(large, large),
    }
    try:
        import torch
        tensor = torch.ones(4)
        place = torch.empty(4)
        calls["torch tensors"] = lambda: static(tensor, tensor)
        calls["torch tensors, out="] = lambda: static(tensor, tensor, out=place)
    except ImportError:
        pass
    figures = {name: cost(call, arguments.rounds) for name, call in calls.items()}
    for name, figure in figures.items():
        print(f"{figure:8.2f} us  {name}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)
    slow = [f"{name} ({figures[name]} us)" for name in BOUNDED if figures.get(name, 0) > BOUND]
    if slow:
        sys.exit(f"these calls take more than {BOUND} us: {', '.join(slow)}")


if __name__ == "__main__":
    main()
