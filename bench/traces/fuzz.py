#!/usr/bin/env python3
"""Random shapes and decisions for the sketches of kernels.py, against our rules for the same operators.

    fuzz.py FROM TO RELAXC DIR [interpret]

Seeds FROM to TO - 1; modules are written to DIR, and DIR/badN.py is one whose results differ. The targets are those that
an x86-64 machine with AVX-512 runs; with `interpret` the lowered program is interpreted, for AArch64, too.
"""
import random
import subprocess
import sys
from pathlib import Path

import numpy

import kernels

RUN = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "host"]
INTERPRETED = ["x86-64-v3", "x86-64-v4", "triple=aarch64-linux-gnu,cpu=neoverse-n1"]
ANY = dict(f=[0] * 4, y=[0] * 4, x=[0] * 4, rc=[0] * 2, ry=[0] * 2, rx=[0] * 2, b=[0] * 4, k=[0] * 2)  # drawn later


def drawn(seed, small):
    """The kernel of a seed; `small` is for the interpreter."""
    d = random.Random(seed)
    family = d.choice(["conv", "conv", "depthwise", "nhwc", "max_pool", "avg_pool", "dense", "softmax", "softmax_rfactor",
                       "layer_norm", "batch_matmul", "matmul"])
    pick = lambda *choices: d.choice(choices)
    make = lambda params, result, build, *args, **how: kernels.simple(params, result, build, *args, **how)(f"k{seed}", d)
    if family in ("conv", "depthwise"):
        size, stride, pad = pick(1, 3, 5), pick(1, 2, 3), pick(0, 1, 2)
        h = pick(7, 9, 14, 20) if small else pick(7, 9, 12, 14, 16, 20, 28)
        ci, co, n = pick(1, 3, 4, 6), pick(4, 6) if small else pick(4, 6, 8, 12, 16), pick(1, 1, 2)
        shape = (n, ci, h, ci if family == "depthwise" else co, size, stride, pad)
        return kernels.as_conv(*shape, tiles=ANY, depthwise=family == "depthwise")(f"k{seed}", d)
    if family == "nhwc":
        h, ci, co, size = pick(7, 8, 12, 14), pick(1, 3, 4, 8), pick(4, 8, 12, 20, 32), pick(1, 3)
        return make([("p0", (1, h, h, ci)), ("p1", (size, size, ci, co))], ("conv2d_nhwc", (1, h, h, co)), kernels.conv_nhwc,
                    h, ci, co, size, tiles=ANY)
    if family == "max_pool":
        h, c = pick(8, 14, 20, 36, 70), pick(1, 3, 5)
        return make([("p0", (1, c, h, h))], ("pool_max", (1, c, h // 2, h // 2)), kernels.pool_max, c, h)
    if family == "avg_pool":
        h, c = pick(3, 7, 8, 14, 19), pick(1, 3, 17, 64)
        return make([("p0", (1, c, h, h))], ("adaptive_pool_avg", (1, c, 1, 1)), kernels.pool_avg, c, h)
    if family == "dense":
        m, n, k = pick(1, 2, 3), pick(5, 10, 33), pick(8, 24, 64, 70, 128)
        return make([("p0", (m, k)), ("p1", (n, k)), ("p2", (m, n))], ("T_add", (m, n)), kernels.dense, m, n, k, (1, 1))
    if family.startswith("softmax"):
        m, n = pick(1, 3, 8), pick(7, 16, 33, 64, 100, 200)
        return make([("p0", (m, n))], ("T_softmax_norm", (m, n)), kernels.softmax, m, n,
                    rf=(1, 1) if family == "softmax_rfactor" else None)
    if family == "layer_norm":
        m, n = pick(1, 3, 8), pick(16, 48, 64, 100, 192)
        return make([("p0", (m, n)), ("p1", (n,)), ("p2", (n,))], ("T_layer_norm", (m, n)), kernels.layer_norm, m, n)
    batch = pick(1, 2, 3) if family == "batch_matmul" else 0
    m, n, k = pick(1, 4, 6, 8), pick(4, 12, 16, 24, 40, 64), pick(3, 8, 16)
    tiles = ANY if batch else ANY | {"x": [1, 1, 1, d.choice([q for q in range(1, n + 1) if n % q == 0])]}
    lead = (batch,) if batch else ()
    return make([("p0", lead + (m, k)), ("p1", lead + (k, n))],
                ("T_batch_matmul_NN" if batch else "T_matmul_NN", lead + (m, n)), kernels.matmul, batch, m, n, k, tiles,
                layout=not batch)


def main(first, last, relaxc, folder, interpret=""):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    bad = right = 0
    for seed in range(int(first), int(last)):
        try:
            kernel = drawn(seed, bool(interpret))
        except AssertionError:  # these tiles do not divide the extents
            continue
        text, inputs = kernel.text(), []
        (folder / "scheduled.py").write_text(text)
        (folder / "plain.py").write_text(text.split("@S.schedule")[0])
        draw = numpy.random.default_rng(seed)
        for name, shape in kernel.params:
            numpy.save(folder / f"{name}.npy", draw.integers(-4, 5, shape).astype("float32"))
            inputs += ["--input", f"{name}={folder}/{name}.npy"]

        def result(file, *flags):
            command = [relaxc, "run", folder / file, *inputs, "--output-dir", folder / "out", *flags]
            ran = subprocess.run(command, capture_output=True, text=True)
            return ran.stderr if ran.returncode else numpy.load(folder / "out" / "output_0.npy")

        expected = result("plain.py")
        for target in INTERPRETED if interpret else RUN:
            got = result("scheduled.py", f"--target={target}", *(["--interpret", "--passes=default"] if interpret else []))
            failed = isinstance(expected, str) or isinstance(got, str)
            if not failed and numpy.allclose(expected, got, rtol=1e-4, atol=1e-4):
                right += 1
                continue
            bad += 1
            (folder / f"bad{seed}.py").write_text(text)
            what = got if isinstance(got, str) else expected if failed else f"off by {abs(expected - got).max()}"
            print(f"seed {seed}, {target}: {what}", flush=True)
    print(f"{right} right, {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
