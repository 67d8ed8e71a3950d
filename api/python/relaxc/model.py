"""Compiled models: `relaxc.Model` and `relaxc.load`."""
from __future__ import annotations

import ctypes as c
import os
from dataclasses import replace
from typing import Any, Mapping, NoReturn, Sequence

from . import _interrupt, _library
from ._compile import as_path, as_text, check_session, flag, whole
from ._library import lib, text
from ._session import Session
from .errors import CompileError, UsageError, WriteError, check, counted
from .info import CacheInfo, ValueInfo, info_of
from .profile import Profile


class Program:
    """Owns a relaxc_program, which all threads share."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self) -> None:
        lib.program_release(self.handle)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Model cannot be pickled: save() it, and load() the artifact in the other process")


class Results(tuple):  # type: ignore[type-arg]
    """The results of a model that has several: a tuple whose items can be asked for by name too, as `y["scores"]`."""

    names: tuple[str, ...]

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"no output '{key}'; expected {', '.join(self.names)}")
        return super().__getitem__(self.names.index(key))

    def keys(self) -> tuple[str, ...]:
        """Returns the names, so that dict(y) is the results by name."""
        return self.names

    def _asdict(self) -> dict[str, Any]:
        """Returns the results by name, as a namedtuple does."""
        return dict(zip(self.names, self))


class Model:
    """A compiled model, ready to be called.

    `model(x)` and `model(name=x)` return one array, or a `Results` tuple where there are several outputs;
    `model.run(name=x)` returns a dict by name. Inputs are NumPy arrays, anything with `__dlpack__` (such as torch
    tensors on the CPU) or `__array_interface__`, which are lent without copies where they are dense, and lists and
    numbers, which become the declared dtype. An array of another dtype than the declared one is an error. Results are
    NumPy arrays.

    Any number of threads may call a model at the same time: each call takes a session of the model's pool, and the
    interpreter's lock is free while kernels run."""

    def __init__(self, program: Program, function: str | None = None, threads: int = 0, memory_limit: int = 0) -> None:
        check_session(threads, memory_limit)
        self._program, self._function = program, as_text("function", function)
        self._threads, self._memory_limit = threads, memory_limit
        self.inputs: tuple[ValueInfo, ...] = self._infos(lib.num_inputs, lib.input)
        """The declared inputs."""
        self.outputs: tuple[ValueInfo, ...] = self._infos(lib.num_outputs, lib.output)
        """The declared outputs."""
        self._names = tuple(info.name for info in self.inputs)
        self._output_names = tuple(info.name for info in self.outputs)
        self.caches: tuple[CacheInfo, ...] = self._cache_infos()
        """The caches that runs extend in place (`in_place=True` of `compile`)."""
        written = {cache.input for cache in self.caches}
        self.inputs = tuple(replace(info, is_cache=info.name in written) for info in self.inputs)
        self._is_plain = not self.caches and all(info.is_array for info in self.inputs + self.outputs)
        self._count = len(self.inputs) if self._is_callable else -1
        self._idle: list[Session] = []
        self._sessions: list[Session] = []

    @property
    def _is_callable(self) -> bool:
        """Whether there is a function that calls run."""
        return self._function is not None or len(self.functions) == 1 or "main" in self.functions

    def _infos(self, count: Any, row: Any) -> tuple[ValueInfo, ...]:
        if not self._is_callable:
            return ()
        total = count(self._program.handle, self._function)
        if total < 0:
            check(_library.USAGE)
        return tuple(info_of(row(self._program.handle, self._function, i).contents) for i in range(total))

    def _cache_infos(self) -> tuple[CacheInfo, ...]:
        row, caches = _library.CacheInfo(), []
        for i in range(lib.num_caches(self._program.handle, self._function) if self._is_callable else 0):
            check(lib.cache(self._program.handle, self._function, i, c.byref(row)))
            length = None if row.length < 0 else self._names[row.length]
            caches.append(CacheInfo(self._names[row.input], self._output_names[row.output], length, row.axis))
        return tuple(caches)

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Runs the model.

        Args:
            args, named: the inputs, in order or by name. Inputs that may be None can be left out. An input whose name is
                "out" is given in order, or to `run`.
            out: an array, or a list, tuple or dict by name of one for each output, to write the results to instead of
                new ones. Shapes and dtypes must be those of the results.
        Returns: the array of the only output, else a `Results` tuple. With `out`, the arrays of it.
        Raises: RunError where an input does not fit, UsageError for wrong names or counts, Cancelled."""
        values = self._bound(args, named) if named or len(args) != self._count else args
        results = self._run(values, out)
        return results[0] if len(results) == 1 else self._named(results)

    def run(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Runs the model on inputs by name, as keywords or in a dict, and returns the results by name."""
        if inputs is not None and not isinstance(inputs, Mapping):
            by_name = ", ".join(f"{name}=..." if name.isidentifier() else f"**{{{name!r}: ...}}" for name in self._names)
            raise UsageError(f"run takes inputs by name, and got {type(inputs).__name__}: call model.run({by_name}), or "
                             f"model({', '.join(['x', 'y', 'z', 'w'][:self._count]) if self._count <= 4 else '...'}) "
                             "with inputs in order")
        results = self._run(self._bound((), {**(inputs or {}), **named}), None)
        return dict(zip(self._output_names, results))

    def profile(self, /, *args: Any, runs: int = 1, **named: Any) -> Profile:
        """Runs the model once to warm up, then `runs` times, and returns the kernel calls of the fastest of these runs:
        nanoseconds, operations and bytes of each. `print` it. An input whose name is "runs" is given in order."""
        whole("runs", runs, 1, None, "a whole number from 1")
        values = self._bound(args, named)
        session = self._session()
        try:
            run = session.run if self._is_plain else session.run_values
            run(values)
            calls, total = min((session.profile(run, values) for _ in range(runs)), key=lambda found: found[1])
            return Profile(calls, total)
        finally:
            self._idle.append(session)

    def cancel(self) -> None:
        """Ends the runs that are in progress on other threads after the kernels that they are in: they raise
        Cancelled. Later runs are not concerned."""
        _interrupt._cancelled[0] = None  # this is no late interrupt
        for session in list(self._sessions):
            session.cancel()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the artifact: what `relaxc.load`, the command relaxc and the C and C++ interfaces load.

        Raises: WriteError, which is an OSError."""
        try:
            check(lib.program_save(self._program.handle, as_path("path", path)))
        except CompileError as error:
            raise WriteError(str(error)) from None

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the public functions; a model of ONNX has "main"."""
        handle = self._program.handle
        return tuple(text(lib.function_name(handle, i)) for i in range(lib.num_functions(handle)))

    def function(self, name: str) -> Model:
        """Returns the model whose call runs another public function of the same program.

        Raises: UsageError, which lists the functions."""
        return Model(self._program, name, self._threads, self._memory_limit)

    def note(self, key: str) -> str | None:
        """Returns what the artifact notes under a key of `notes`, such as "made.target"; None where it notes nothing."""
        value = lib.program_note(self._program.handle, as_text("key", key))
        return None if value is None else text(value)

    @property
    def notes(self) -> dict[str, str]:
        """What the artifact notes of the machine that it needs, and of its making ("made.from", "made.precision")."""
        found: dict[str, str] = {}
        handle = self._program.handle
        while (key := lib.program_note_key(handle, len(found))) is not None:
            found[text(key)] = text(lib.program_note(handle, key))
        return found

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of tensors and scratch, of all sessions: "live", "idle" (kept for later runs) and "peak"; and the
        "allocations" that went to the system."""
        stats = [session.memory() for session in list(self._sessions)]
        return {"live": sum(s.live_bytes for s in stats), "idle": sum(s.idle_bytes for s in stats),
                "peak": sum(s.peak_bytes for s in stats), "allocations": sum(s.allocations for s in stats)}

    def trim(self) -> None:
        """Gives the memory that idle sessions keep for later runs, and their threads, back to the system. A session whose
        results are still in use stays with its threads: `memory` counts these results."""
        used = []
        while self._idle:
            session = self._idle.pop()
            session.trim()
            if session.memory().live_bytes:
                used.append(session)
            else:
                self._sessions.remove(session)
        self._idle.extend(used)

    def __repr__(self) -> str:
        if not self._is_callable:
            return f"<relaxc.Model of the functions {', '.join(self.functions)}>"
        lines = [f"  {what} {info}" for what, infos in (("input ", self.inputs), ("output", self.outputs))
                 for info in infos]
        return "\n".join([f"<relaxc.Model {self._function.decode() if self._function else ''}".rstrip(), *lines]) + ">"

    def __copy__(self) -> Model:
        return Model(self._program, text(self._function) or None, self._threads, self._memory_limit)

    def __deepcopy__(self, _memo: Any) -> Model:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._program.__reduce_ex__(protocol)

    def _session(self) -> Session:
        try:
            return self._idle.pop()
        except IndexError:
            pass  # an error of what follows is not one of the pool
        session = Session(self._program, self._function or None, self.inputs, self.outputs, self._threads,
                          self._memory_limit)
        self._sessions.append(session)
        return session

    def _run(self, values: Sequence[Any], out: Any) -> Sequence[Any]:
        session = self._session()
        try:
            if out is not None:
                return self._run_into(session, values, out)
            return session.run(values) if self._is_plain else session.run_values(values)
        finally:
            self._idle.append(session)

    def _run_into(self, session: Session, values: Sequence[Any], out: Any) -> Sequence[Any]:
        if not self._is_plain:
            raise UsageError("out= is for models whose inputs and outputs are tensors of numbers")
        if isinstance(out, Mapping):
            unknown = set(out) ^ set(self._output_names)
            if unknown:
                given = ", ".join(map(str, out)) or "no output"
                raise UsageError(f"out= names {given}, expected {', '.join(self._output_names)}")
            out = [out[name] for name in self._output_names]
        arrays = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(arrays) != len(self.outputs):
            raise UsageError(f"out= has {counted(len(arrays), 'array')}, and the model has "
                             f"{counted(len(self.outputs), 'output')}")
        if len(arrays) > 1 and len(set(map(id, arrays))) < len(arrays):
            raise UsageError("out= has the same array for two outputs: give one array for each")
        session.run_into(values, arrays)
        return arrays

    def _named(self, results: Sequence[Any]) -> Results:
        named = Results(results)
        named.names = self._output_names
        return named

    def _bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the inputs in order."""
        if self._count < 0:
            raise UsageError(f"the program has the functions {', '.join(map(repr, self.functions))}, and none is 'main': call "
                             f"model.function({self.functions[0]!r}), or say function={self.functions[0]!r} where the model "
                             "is compiled or loaded")
        if not args and len(named) == self._count:
            try:
                return [named[name] for name in self._names]
            except KeyError:
                pass
        if len(args) > self._count:
            raise UsageError(f"the model has {counted(self._count, 'input')}, got {len(args)}")
        values = dict(zip(self._names, args))
        for name, value in named.items():
            if name not in self._names:
                raise UsageError(f"no input '{name}'; expected {', '.join(self._names) or 'none'}")
            if name in values:
                raise UsageError(f"input '{name}' is given twice")
            values[name] = value
        missing = [info.name for info in self.inputs if info.name not in values and not info.optional]
        if missing:
            raise UsageError(f"no value for input {', '.join(repr(name) for name in missing)}")
        return [values.get(name) for name in self._names]


def load(source: str | os.PathLike[str] | bytes, *, function: str | None = None, threads: int = 0,
         memory_limit: int = 0, trust_contents: bool = False) -> Model:
    """Loads an artifact of `Model.save` or `relaxc compile`, from its file or its bytes.

    Args:
        function: the public function that calls run; None: "main", or the only one.
        threads: of a session; 0: all cores of the process.
        memory_limit: bytes of tensors and of kernels' scratch memory at once in a session; 0: twice the machine's memory.
        trust_contents: compares nothing with its hash.
    Weights are mapped, neither copied nor read. Load artifacts of trusted origin only: they contain machine code.
    Raises: MissingFileError, which is a FileNotFoundError; CompileError for a file that is not an artifact."""
    flag("trust_contents", trust_contents)
    options = _library.LoadOptions(c.sizeof(_library.LoadOptions), int(trust_contents))
    handle = c.c_void_p()
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        check(lib.load_memory(data, len(data), c.byref(options), c.byref(handle)))
    else:
        check(lib.load(as_path("source", source), c.byref(options), c.byref(handle)))
    return Model(Program(handle.value or 0), function, threads, memory_limit)
