"""A program of a user that checks types: `./dev lint` gives it and the package to mypy --strict. It is not run."""
from __future__ import annotations
import numpy as np
import relaxc

model: relaxc.Model = relaxc.compile("examples/digits/digits.onnx", kernels="a.py", dims={"batch": 1}, progress=True)
y = model(image=np.zeros((1, 1, 8, 8), np.float32))
for info in model.inputs:
    name: str = info.name
    shape = info.shape
    if shape is not None and isinstance(shape[0], str):
        print(name, shape[0].upper(), info.dtype)
profile = model.profile(image=y, runs=3)
for kernel, nodes, calls, ns, operations in profile.by_kernel():
    print(kernel, nodes, calls + ns, operations or 0.0)
module = relaxc.Module.from_text("")
print(module.text(passes="default", dims={"n": 3}, target="x86-64-v3").upper(), module.compile(jobs=1, log=print))
module.compile(job=1)  # type: ignore[call-arg]
module.text(targets="host")  # type: ignore[call-arg]
module.text(dims=3)  # type: ignore[arg-type]
relaxc.compile_to_file("a.onnx", "a.so", targets="x86-64-v3")  # type: ignore[call-arg]
relaxc.compile("a.onnx", log=3)  # type: ignore[arg-type]
try:
    relaxc.load("x.so")
except relaxc.CompileError as error:
    for each in error.errors:
        print(each.message)
