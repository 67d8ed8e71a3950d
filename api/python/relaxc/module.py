"""Modules and their compilation: `relaxc.compile`, `relaxc.compile_to_file` and `relaxc.Module`."""
from __future__ import annotations

import ctypes as c
import os
import tempfile
from typing import Any, Callable, Mapping, Protocol, Sequence, Union

from ._compile import Options, Path, Ranges, as_path, check_session
from ._library import encoded, lib
from .errors import UsageError, check_writable
from .model import Model, Program
from .progress import Progress

_IN_MEMORY = "the model"  # the name in messages of a model that is not in a file


class ModelProto(Protocol):
    """An onnx.ModelProto, or what serializes itself as one."""

    def SerializeToString(self) -> bytes: ...


Source = Union[str, "os.PathLike[str]", bytes, "Module", ModelProto]


def _bytes_of(source: Source) -> tuple[bytes | None, str]:
    """Returns the bytes of a source and its name, or None and the path of a file."""
    if isinstance(source, Module):
        return source._data, source._name
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), _IN_MEMORY
    if hasattr(source, "SerializeToString"):
        return source.SerializeToString(), _IN_MEMORY
    if isinstance(source, (str, os.PathLike)):
        if isinstance(source, str) and "\n" in source:
            raise UsageError("the model is a text of several lines, expected a path: give a text as "
                             "relaxc.Module.from_text(text)")
        return None, os.fspath(source)
    remedy = ""
    if type(source).__module__.startswith("torch") or hasattr(source, "state_dict"):
        remedy = "; a network of torch is exported first: torch.onnx.export(network, inputs, \"model.onnx\")"
    raise UsageError(f"the model is {type(source).__name__}, expected a path, the bytes of an ONNX model, an "
                     f"onnx.ModelProto or a relaxc.Module{remedy}")


def compile(source: Source, *, target: str | None = None, dims: Mapping[str, int] | None = None,
            dim_ranges: Ranges | None = None, kernels: Path | Sequence[Path] = (),
            types: Mapping[str, str] | None = None, link: Path | Sequence[Path] = (), host_symbols: Sequence[str] = (),
            threads: int = 0, passes: str | None = None, function: str | None = None, opt_level: int | None = None,
            winograd_error: float = 2.5, precision: str | None = None, in_place: bool = False, gather: str = "error",
            bind: Mapping[str, Any] | None = None, strict: bool = False, check_bounds: bool = False,
            fast_int8: bool = False, jobs: int = 0, cache: Path | None = None,
            progress: bool | Callable[[Progress], None] = False,
            log: Callable[[str], None] | None = None, memory_limit: int = 0) -> Model:
    """Compiles a model for this process.

    Args:
        source: the path of an ONNX model or of a module as text (.py), the bytes of an ONNX model, an
            onnx.ModelProto, or a `Module`.
        target: the processor, "host" by default; docs/targets.md lists them.
        dims: fixed values of symbolic dims, such as {"batch": 1}.
        dim_ranges: the sizes that others may have, both ends included, such as {"sequence": (1, 512)}; None for an
            end that is open. A run with another size raises an error.
        kernels: files of kernels and schedules (docs/own-kernels.md).
        types: the types of inputs of which the model or text says less, such as {"x": "float32[n, 4]"}.
        link: object files and archives (.o, .a) with C kernels, which become part of what is compiled.
        host_symbols: functions that these call and that the program has which will load the artifact, such as "GOMP_*".
        threads: of the runs of each session; 0: all cores of the process.
        passes: "default", or a list of passes as `relaxc opt --passes` takes it.
        function: the public function that calls run; None: "main", or the only one.
        opt_level: 0 to 3, of machine code, as `relaxc -O`; None: 2.
        winograd_error: the most error of 3x3 convolutions by Winograd's algorithm, as a multiple of that of direct
            sums; 0 computes all of them directly.
        precision: the numbers that products read: "fp32" (the default), "bf16", "fp16" or "mixed"
            (docs/precision.md).
        in_place: whether runs of a decoder extend its caches in place (docs/relaxc.md): `Model.caches` lists them, and a
            run writes to the arrays of these inputs. An error where there is none.
        gather: "error": an index out of range ends the run with an error; "clamp": the nearest element is taken.
        bind: params that become constants, such as weights, by name: arrays or .npy files.
        strict: whether contradictions in a model are errors; otherwise they are warnings.
        check_bounds: whether kernels test every index that is not proven to be in range.
        fast_int8: whether sums of two products of bytes may be clamped to 16 bits where that is faster
            (docs/quantize.md).
        jobs: threads that compile; 0: all cores.
        cache: the folder that keeps what was compiled from files; None: that of the command line (the environment
            variable RELAXC_CACHE, else relaxc/artifacts in the user's cache folder); "": none.
        progress: True shows a line on a terminal or in a notebook, and nothing in a pipe; a function is called with
            each `Progress`, one call at a time, on any thread.
        log: is called with each note and warning, as str; without it warnings become a `RelaxcWarning`.
        memory_limit: bytes of tensors and of kernels' scratch memory at once in a session; 0: twice the machine's memory.
    Raises: CompileError, whose `errors` have node and place; UnsupportedError; UsageError for a wrong option;
        MissingFileError, which is a FileNotFoundError; KeyboardInterrupt, soon after Ctrl-C."""
    check_session(threads, memory_limit)
    options = Options(target=target, passes=passes, function=function, dims=dims,
                      dim_ranges=dim_ranges, kernels=kernels, types=types, link=link, host_symbols=host_symbols,
                      jobs=jobs, opt_level=opt_level, winograd_error=winograd_error, precision=precision,
                      in_place=in_place, gather=gather, bind=bind, strict=strict, check_bounds=check_bounds,
                      fast_int8=fast_int8, cache=cache, log=log, progress=progress)
    data, name = _bytes_of(source)
    handle = c.c_void_p()
    if data is None:
        options.call(lib.compile, encoded(name), ..., c.byref(handle))
    else:
        options.call(lib.compile_memory, data, len(data), encoded(name), ..., c.byref(handle))
    return Model(Program(handle.value or 0), function, threads, memory_limit)


def compile_to_file(source: Source, artifact: Path, *, target: str | None = None, dims: Mapping[str, int] | None = None,
                    dim_ranges: Ranges | None = None, kernels: Path | Sequence[Path] = (),
                    types: Mapping[str, str] | None = None, link: Path | Sequence[Path] = (),
                    host_symbols: Sequence[str] = (), passes: str | None = None, function: str | None = None,
                    opt_level: int | None = None, winograd_error: float = 2.5, precision: str | None = None,
                    in_place: bool = False, gather: str = "error", bind: Mapping[str, Any] | None = None,
                    strict: bool = False, check_bounds: bool = False, fast_int8: bool = False, jobs: int = 0,
                    cache: Path | None = None, progress: bool | Callable[[Progress], None] = False,
                    log: Callable[[str], None] | None = None) -> None:
    """Compiles a model and writes its artifact, for any target: `compile_to_file("m.onnx", "m.so", target="x86-64-v3")`.

    The options are those of `compile` that concern the compiler.
    Raises: WriteError, which is an OSError, where the artifact cannot be written; the others of `compile`."""
    stated = Options(target=target, passes=passes, function=function, dims=dims, dim_ranges=dim_ranges, kernels=kernels,
                     types=types, link=link, host_symbols=host_symbols, jobs=jobs, opt_level=opt_level,
                     winograd_error=winograd_error, precision=precision, in_place=in_place, gather=gather, bind=bind,
                     strict=strict, check_bounds=check_bounds, fast_int8=fast_int8, cache=cache, log=log,
                     progress=progress)
    target_file = as_path("artifact", artifact)
    check_writable(os.fspath(artifact))
    data, name = _bytes_of(source)
    if data is None:
        stated.call(lib.compile_to_file, encoded(name), ..., target_file)
        return
    with tempfile.TemporaryDirectory(prefix="relaxc-") as folder:
        path = os.path.join(folder, os.path.basename(name))
        with open(path, "wb") as file:
            file.write(data)
        stated.call(lib.compile_to_file, encoded(path), ..., target_file)


class Module:
    """A module: the functions of a network, as relaxc holds them before and between its passes."""

    def __init__(self, data: bytes | None, name: str) -> None:
        self._data, self._name = data, name

    @staticmethod
    def from_text(text: str, name: str = "module.py") -> Module:
        """Reads a module from its text (TVMScript, docs/text-format.md). `name` stands for the file in messages.

        Raises: CompileError, with line and column."""
        if not isinstance(text, str):
            raise UsageError(f"the text of a module is {type(text).__name__}, expected str")
        if not isinstance(name, str):
            raise UsageError(f"name is {name!r}, expected str")
        module = Module(text.encode("utf-8", "surrogateescape"), name)
        module.text()
        return module

    @staticmethod
    def from_onnx(source: str | os.PathLike[str] | bytes | ModelProto) -> Module:
        """Imports an ONNX model: its path, its bytes or an onnx.ModelProto.

        Raises: CompileError, with the node; UnsupportedError."""
        data, name = _bytes_of(source)
        module = Module(data, name)
        module.text()
        return module

    def text(self, passes: str = "", *, inline: int | None = None, constants: Path | None = None,
             target: str | None = None, dims: Mapping[str, int] | None = None, dim_ranges: Ranges | None = None,
             kernels: Path | Sequence[Path] = (), types: Mapping[str, str] | None = None, function: str | None = None,
             opt_level: int | None = None, winograd_error: float = 2.5, precision: str | None = None,
             in_place: bool = False, gather: str = "error", bind: Mapping[str, Any] | None = None,
             strict: bool = False, check_bounds: bool = False, fast_int8: bool = False,
             jobs: int = 0, cache: Path | None = None, progress: bool | Callable[[Progress], None] = False,
             log: Callable[[str], None] | None = None) -> str:
        """Returns the module as text (TVMScript, docs/text-format.md) after passes.

        Args:
            passes: "" for none, "default", or a list such as "simplify,fuse_ops", as `relaxc opt --passes` takes it.
            inline: constants of at most so many elements stand in the text; None: 16. Larger ones are left out, and
                the text can then not be read back, unless there is a file for them.
            constants: the file for larger ones (safetensors), such as "model.safetensors". The text names it, and
                `relaxc.compile` reads both where they are in one folder.
            target: the processor, "host" by default, for which kernels are scheduled; docs/targets.md lists them.
            dims: fixed values of symbolic dims, such as {"batch": 1}, which are numbers in the text.
            dim_ranges: the sizes that others may have, both ends included, such as {"sequence": (1, 512)}.
            kernels: files of kernels and schedules (docs/own-kernels.md), which passes apply.

        The other options are those of `compile`.
        Raises: CompileError, whose `errors` have node and place; UnsupportedError."""
        stated = Options(target=target, passes=passes, function=function, dims=dims, dim_ranges=dim_ranges,
                         kernels=kernels, types=types, inline=inline, constants=constants, jobs=jobs,
                         opt_level=opt_level, winograd_error=winograd_error,
                         precision=precision, in_place=in_place, gather=gather, bind=bind, strict=strict,
                         check_bounds=check_bounds, fast_int8=fast_int8, cache=cache, log=log, progress=progress)
        address = c.c_void_p()
        stated.call(lib.module_text, self._data, len(self._data or b""), encoded(self._name), ..., c.byref(address))
        try:
            return c.string_at(address.value or 0).decode("utf-8", "surrogateescape")
        finally:
            lib.string_release(address)

    def compile(self, *, target: str | None = None, dims: Mapping[str, int] | None = None,
                dim_ranges: Ranges | None = None, kernels: Path | Sequence[Path] = (),
                types: Mapping[str, str] | None = None, link: Path | Sequence[Path] = (),
                host_symbols: Sequence[str] = (), threads: int = 0, passes: str | None = None,
                function: str | None = None, opt_level: int | None = None, winograd_error: float = 2.5,
                precision: str | None = None, in_place: bool = False, gather: str = "error",
                bind: Mapping[str, Any] | None = None, strict: bool = False, check_bounds: bool = False,
                fast_int8: bool = False, jobs: int = 0, cache: Path | None = None,
                progress: bool | Callable[[Progress], None] = False, log: Callable[[str], None] | None = None,
                memory_limit: int = 0) -> Model:
        """Compiles it, as `relaxc.compile` does."""
        return compile(self, target=target, dims=dims, dim_ranges=dim_ranges, kernels=kernels, types=types, link=link,
                       host_symbols=host_symbols, threads=threads, passes=passes, function=function,
                       opt_level=opt_level, winograd_error=winograd_error,
                       precision=precision, in_place=in_place, gather=gather, bind=bind, strict=strict,
                       check_bounds=check_bounds, fast_int8=fast_int8, jobs=jobs, cache=cache, progress=progress,
                       log=log, memory_limit=memory_limit)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<relaxc.Module of {self._name}>"
