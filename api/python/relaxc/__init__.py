"""relaxc: a compiler for neural networks.

    import numpy as np, relaxc
    model = relaxc.compile("model.onnx")           # or relaxc.load("model.so")
    y = model(np.zeros((1, 3, 224, 224), np.float32))
    print(model.inputs, model.profile(x=...))

Errors are `relaxc.Error`s. `relaxc.backend` runs models for the tests of the package onnx. docs/python.md has the rest."""
from __future__ import annotations

try:
    import numpy as _numpy  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "numpy":
        raise
    raise ModuleNotFoundError("relaxc needs NumPy: install python3-numpy (apt-get), or numpy (pip)",
                              name="numpy") from None

from ._compile import RelaxcWarning
from ._library import lib as _lib
from .errors import (Cancelled, CompileError, Error, ErrorPlace, InternalError, MissingFileError,
                     OutOfMemoryError, RunError, UnsupportedError, UsageError, WriteError)
from .info import CacheInfo, ValueInfo
from .model import Model, Results, load
from .module import Module, compile, compile_to_file
from .profile import KernelCall, Profile
from .progress import Progress

__version__: str = _lib.version().decode()
__all__ = ["CacheInfo", "Cancelled", "CompileError", "Error", "ErrorPlace", "InternalError", "KernelCall",
           "MissingFileError", "Model", "Module", "OutOfMemoryError", "Profile", "Progress", "RelaxcWarning", "Results",
           "RunError", "UnsupportedError", "UsageError", "ValueInfo", "WriteError", "compile", "compile_to_file", "load"]
