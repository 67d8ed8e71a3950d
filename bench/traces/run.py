#!/usr/bin/env python3
"""Times kernels that are scheduled by traces beside C of the same loops. See bench/README.md; ./dev bench traces --help."""
import argparse
import ctypes
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import kernels
from as_c import as_c

STEPS = ("entries,kernels,destination_passing,dense_params,lower_jumps,expand_builtins,resolve_views,run_threads,"
         "normalize_loops,promote_indices,explicit_scalars,initialize_empty_reductions,align_storage,lower_blocks,"
         "simplify_program,compact_buffers,flatten_buffers,simplify_program,unroll_loops")
TIMER = """
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }
#ifdef __cplusplus
extern "C"
#endif
void times(void** p, int runs, double* out) {
  for (int i = 0; i < runs; ++i) { double begin = now(); kernel(PARAMS); out[i] = now() - begin; }
}
"""
COMPILERS = {"vectors": ["clang++-19", "-xc++", "-Wno-psabi", "-fno-math-errno", "-ffp-contract=fast"],
             "clang": ["clang-19", "-fno-math-errno", "-ffp-contract=fast"],
             "gcc": ["gcc", "-fno-math-errno", "-ffp-contract=fast", "-fno-trapping-math"]}


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


class C:
    """The loops of a file's kernel, compiled by another compiler."""

    def __init__(self, source, arrays, folder, compiler, threads):
        text = as_c(run([arguments.relaxc, "opt", source, "--passes=" + STEPS]), threads, compiler == "vectors")
        name = folder / f"{source.stem}.{compiler}"
        Path(f"{name}.c").write_text(text + TIMER.replace("PARAMS", ", ".join(f"(float*)p[{i}]" for i in range(len(arrays)))))
        omp = ["-fopenmp"] if threads > 1 else []
        run(COMPILERS[compiler] + ["-O3", "-march=native", "-shared", "-fPIC", *omp, "-o", f"{name}.so", f"{name}.c", "-lm"])
        self.library, self.arrays = ctypes.CDLL(f"{name}.so"), arrays

    def times(self, runs):
        out = (ctypes.c_double * runs)()
        pointers = (ctypes.c_void_p * len(self.arrays))(*[a.ctypes.data for a in self.arrays])
        self.library.times(pointers, runs, out)
        return list(out)


def ours(source, threads, milliseconds, runs):
    out = run([arguments.relaxc, "bench", source, "--threads", str(threads), "--runs", str(runs), "--seconds",
               str(milliseconds / 1e3), "--warmup", "3", "--json", "-"])
    return json.loads(out)


def main():
    import numpy
    folder = Path(arguments.folder)
    kernels.write(folder)
    print(f"{'kernel':18} {'trace':>8} {'rule':>8} {'vectors':>8} {'clang':>8} {'gcc':>8} {'ratio':>6}   ms, {arguments.threads} threads: minima of "
          f"{arguments.rounds} rounds; ratio: trace / the faster C")
    ratios = []
    for name in kernels.KERNELS:
        if arguments.filter and not re.search(arguments.filter, name):
            continue
        source, plain = folder / f"{name}.py", folder / f"{name}.plain.py"
        plain.write_text(source.read_text().split("@S.schedule")[0])
        made = kernels.KERNELS[name](name, None)
        draw = numpy.random.default_rng(0)
        arrays = [draw.uniform(-1, 1, shape).astype("float32") for _, shape in made.params + [made.result]]
        programs = {c: C(source, [a.copy() for a in arrays], folder, c, arguments.threads) for c in COMPILERS}
        check(source, folder, arrays[:-1], [p for p in made.params], programs)
        best = {}
        for _ in range(arguments.rounds):
            for what, file in (("trace", source), ("rule", plain)):
                figures = ours(file, arguments.threads, arguments.milliseconds, 1000)
                best.setdefault(what, []).append(figures["min_ms"])
            for compiler, program in programs.items():
                runs = max(3, min(1000, int(arguments.milliseconds / max(1e-3, min(program.times(3))))))
                best.setdefault(compiler, []).append(min(program.times(runs)))
        low = {what: min(times) for what, times in best.items()}
        ratio = low["trace"] / min(low[c] for c in COMPILERS)
        ratios.append(ratio)
        print(f"{name:18} {low['trace']:8.4f} {low['rule']:8.4f} {low['vectors']:8.4f} {low['clang']:8.4f} {low['gcc']:8.4f} {ratio:6.2f}", flush=True)
    print(f"{'geometric mean':18} {'':44} {statistics.geometric_mean(ratios):6.2f}")


def check(source, folder, arrays, params, programs):
    """Runs each once on the same numbers."""
    import numpy
    inputs = []
    for (name, _), array in zip(params, arrays):
        numpy.save(folder / f"{name}.npy", array)
        inputs += ["--input", f"{name}={folder / name}.npy"]
    run([arguments.relaxc, "run", source, *inputs, "--output-dir", folder / "out"])
    expected = numpy.load(folder / "out" / "output_0.npy")
    for compiler, program in programs.items():
        for mine, array in zip(program.arrays, arrays):
            mine[...] = array
        program.times(1)
        if not numpy.allclose(expected, program.arrays[-1], rtol=1e-3, atol=1e-3):
            sys.exit(f"{source}: {compiler} computes other numbers")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--relaxc", default="build/relaxc")
    parser.add_argument("--folder", default="build/traces", help="where files are written")
    parser.add_argument("--filter", help="kernels whose names match")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=60, help="of each measurement")
    arguments = parser.parse_args()
    main()
