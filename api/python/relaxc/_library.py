"""Finds and opens librelaxc.so, and declares the structs and functions of api/relaxc.h."""
from __future__ import annotations

import ctypes as c
import os
from pathlib import Path
from typing import Any, Iterator

API_VERSION = 2  # of the header that these declarations follow

OK, INVALID, USAGE, UNSUPPORTED, RUN_FAILED, CANCELLED, OUT_OF_MEMORY, INTERNAL, WRITE_FAILED = range(9)
NONE, TENSOR, SHAPE, INT, DOUBLE, STRING, TUPLE, SEQUENCE, MAP = 0, 1, 2, 3, 4, 5, 6, 9, 10
STRING_CODE = 200  # of the dtype of tensors of strings


class DataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Tensor(c.Structure):
    """DLTensor. `shape` and `strides` are addresses, so that a null pointer costs nothing to set."""

    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
                ("dtype", DataType), ("shape", c.c_void_p), ("strides", c.c_void_p), ("byte_offset", c.c_uint64)]


class ManagedTensor(c.Structure):
    _fields_ = [("tensor", Tensor), ("manager", c.c_void_p), ("deleter", c.c_void_p)]


ANY_SIZE = 2**63 - 1  # of a dim that has no greatest size
MOST_THREADS = 1024  # of a session


class Dim(c.Structure):
    _fields_ = [("value", c.c_int64), ("text", c.c_char_p), ("least", c.c_int64), ("most", c.c_int64)]


class ValueInfo(c.Structure):
    pass


ValueInfo._fields_ = [("name", c.c_char_p), ("type", c.c_char_p), ("kind", c.c_int32), ("optional", c.c_int32),
                      ("has_dtype", c.c_int32), ("dtype", DataType), ("dtype_name", c.c_char_p), ("rank", c.c_int32),
                      ("dims", c.POINTER(Dim)), ("num_fields", c.c_int32), ("fields", c.POINTER(ValueInfo))]


class ErrorPlace(c.Structure):
    _fields_ = [("message", c.c_char_p), ("file", c.c_char_p), ("node", c.c_char_p), ("op_type", c.c_char_p),
                ("line", c.c_int32), ("column", c.c_int32)]


class LoadOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("trust_contents", c.c_int32)]


class SessionOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("num_threads", c.c_int32), ("memory_limit", c.c_int64),
                ("allocator", c.c_void_p), ("thread_pool", c.c_void_p), ("log", c.c_void_p), ("user", c.c_void_p)]


class CacheInfo(c.Structure):
    _fields_ = [("input", c.c_int32), ("output", c.c_int32), ("length", c.c_int32), ("axis", c.c_int32)]


class MemoryStats(c.Structure):
    _fields_ = [("live_bytes", c.c_int64), ("idle_bytes", c.c_int64), ("peak_bytes", c.c_int64),
                ("allocations", c.c_int64)]


class KernelRecord(c.Structure):
    _fields_ = [("size", c.c_size_t), ("kernel", c.c_char_p), ("node", c.c_char_p), ("rule", c.c_char_p),
                ("start_ns", c.c_int64), ("duration_ns", c.c_int64), ("operations", c.c_double), ("bytes", c.c_int64)]


class ProgressInfo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("stage", c.c_char_p), ("at_work", c.c_char_p), ("done", c.c_int64),
                ("total", c.c_int64), ("seconds", c.c_double)]


Profiler = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(KernelRecord))
Logger = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
ProgressCallback = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(ProgressInfo))
Deleter = c.CFUNCTYPE(None, c.c_void_p)


class CompileOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("target", c.c_char_p), ("passes", c.c_char_p), ("function", c.c_char_p),
                ("dim_names", c.POINTER(c.c_char_p)), ("dim_values", c.POINTER(c.c_int64)), ("num_dims", c.c_int32),
                ("kernels", c.POINTER(c.c_char_p)), ("num_kernels", c.c_int32), ("num_threads", c.c_int32),
                ("opt_level", c.c_int32), ("winograd_error", c.c_double), ("cache", c.c_char_p), ("log", Logger),
                ("progress", ProgressCallback), ("user", c.c_void_p),
                ("cancelled", c.c_void_p), ("range_names", c.POINTER(c.c_char_p)), ("range_least", c.POINTER(c.c_int64)),
                ("range_most", c.POINTER(c.c_int64)), ("num_ranges", c.c_int32), ("precision", c.c_char_p),
                ("in_place", c.c_int64), ("type_names", c.POINTER(c.c_char_p)), ("types", c.POINTER(c.c_char_p)),
                ("linked", c.POINTER(c.c_char_p)), ("host_symbols", c.POINTER(c.c_char_p)), ("num_types", c.c_int32),
                ("num_linked", c.c_int32), ("num_host_symbols", c.c_int32), ("inline_elements", c.c_int64),
                ("constants", c.c_char_p), ("bound_names", c.POINTER(c.c_char_p)), ("bound", c.POINTER(Tensor)),
                ("num_bound", c.c_int32), ("clamp_indices", c.c_int32), ("strict", c.c_int32), ("check_bounds", c.c_int32),
                ("fast_int8", c.c_int32)]


def _paths() -> Iterator[str]:
    """Gives the places of the library, the most explicit one first."""
    stated = os.environ.get("RELAXC_LIBRARY")
    if stated:
        names = ("librelaxc.so.0", "librelaxc.so")
        inside = [str(Path(stated) / name) for name in names if (Path(stated) / name).exists()]
        yield inside[0] if inside else os.path.abspath(stated)
        return
    package = Path(__file__).resolve().parent
    folders = [package / "lib", package.parent]  # a wheel; a folder that somebody filled
    if package.parent.name == "python" and package.parent.parent.name == "api":
        folders.append(package.parents[2] / "build")  # the source tree
    if package.parent.name in ("dist-packages", "site-packages"):
        folders.append(package.parents[2])  # PREFIX/lib of PREFIX/lib/python3/dist-packages
    for folder in folders:
        for name in ("librelaxc.so.0", "librelaxc.so"):
            if (folder / name).exists():
                yield str(folder / name)
    yield "librelaxc.so.0"  # as the dynamic linker finds it


def _open() -> c.CDLL:
    problems = []
    for path in _paths():
        try:
            return c.CDLL(path)
        except OSError as error:
            problems.append(str(error))
    raise ImportError("librelaxc.so.0 could not be opened; set RELAXC_LIBRARY to the file or its folder:\n  " +
                      "\n  ".join(problems))


_P, _I, _S, _Z = c.c_void_p, c.c_int32, c.c_char_p, c.c_size_t
_TENSORS, _INFO = c.POINTER(Tensor), c.POINTER(ValueInfo)
# Result, then arguments. Handles are addresses.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "error_message": (_S,),
    "error_count": (_I,),
    "error_at": (_I, _I, c.POINTER(ErrorPlace)),
    "version": (_S,),
    "api_version": (_I,),
    "load": (_I, _S, _P, _P),
    "load_memory": (_I, _S, _Z, _P, _P),
    "program_release": (None, _P),
    "program_save": (_I, _P, _S),
    "num_functions": (_I, _P),
    "function_name": (_S, _P, _I),
    "num_inputs": (_I, _P, _S),
    "num_outputs": (_I, _P, _S),
    "input": (_INFO, _P, _S, _I),
    "output": (_INFO, _P, _S, _I),
    "num_caches": (_I, _P, _S),
    "cache": (_I, _P, _S, _I, c.POINTER(CacheInfo)),
    "program_note": (_S, _P, _S),
    "program_note_key": (_S, _P, _I),
    "session_new": (_I, _P, _P, _P),
    "session_release": (None, _P),
    "session_cancel": (None, _P),
    "session_trim": (None, _P),
    "session_memory": (None, _P, c.POINTER(MemoryStats)),
    "session_profile": (None, _P, Profiler, _P),
    "session_keep_records": (_I, _P, _I),
    "session_records": (_I, _P, c.POINTER(c.POINTER(KernelRecord)), c.POINTER(_I)),
    "run_into": (_I, _P, _S, _P, _I, _P, _I),
    "run": (_I, _P, _S, _P, _I, _P, _I),
    "run_values": (_I, _P, _S, _P, _I, _P, _I),
    "any_release": (None, _P),
    "any_none": (_I, _P),
    "any_tensor": (_I, _TENSORS, _P),
    "any_dlpack": (_I, _P, _P),
    "any_strings": (_I, c.POINTER(_S), c.POINTER(_Z), c.POINTER(c.c_int64), _I, _P),
    "any_int": (_I, c.c_int64, _P),
    "any_double": (_I, c.c_double, _P),
    "any_shape": (_I, c.POINTER(c.c_int64), _I, _P),
    "any_string": (_I, _S, _Z, _P),
    "any_of": (_I, _I, c.POINTER(_P), _I, _P),
    "any_kind": (_I, _P),
    "any_describe": (_S, _P),
    "any_get_tensor": (_I, _P, _P),
    "any_get_shape": (_I, _P, _P, _P, c.POINTER(DataType)),
    "any_get_string": (_I, _P, c.c_int64, _P, _P),
    "any_get_int": (_I, _P, _P),
    "any_get_double": (_I, _P, _P),
    "any_num_items": (_I, _P, _P),
    "any_item": (_I, _P, _I, _P),
    "compile": (_I, _S, _P, _P),
    "compile_memory": (_I, _S, _Z, _S, _P, _P),
    "compile_to_file": (_I, _S, _P, _S),
    "module_text": (_I, _S, _Z, _S, _P, _P),
    "string_release": (None, _P),
}


class _Functions:
    """The functions of the library, without the prefix relaxc_."""

    def __init__(self, library: c.CDLL) -> None:
        self.path = library._name
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, "relaxc_" + name, None)
            if function is None:
                raise ImportError(f"{self.path} has no function relaxc_{name}, so that it is another library or an older "
                                  "one; let RELAXC_LIBRARY name librelaxc.so of this version, or its folder")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"librelaxc.so has no function relaxc_{name} that is declared here")


lib = _Functions(_open())
if lib.api_version() < API_VERSION:
    raise ImportError(f"{lib.path} has version {lib.api_version()} of the interface, expected {API_VERSION} or later")


def text(value: bytes | None) -> str:
    """Returns a string of the library; characters that are not UTF-8 are kept as surrogates."""
    return "" if value is None else value.decode("utf-8", "surrogateescape")


def encoded(value: str | bytes | os.PathLike[str] | None) -> bytes | None:
    """Returns a name or path as the library takes it."""
    if value is None:
        return None
    result = os.fsencode(value)
    if b"\0" in result:
        from .errors import UsageError  # which needs this module

        raise UsageError(f"{value!r} has a zero character, which no name or path has")
    return result
