"""Calls of the compiler, with their options and callbacks."""
from __future__ import annotations

import ctypes as c
import math
import operator
import os
import sys
import warnings
from threading import get_ident
from typing import Any, Callable, Iterable, Mapping, Sequence, Union

import numpy as np

from . import _interrupt, _library
from ._library import ANY_SIZE, MOST_THREADS, encoded, lib, text
from ._tensors import Slot
from .errors import CompileError, MissingFileError, UsageError, check, in_python
from .progress import Progress, reporter

Path = Union[str, "os.PathLike[str]"]
Ranges = Mapping[str, "tuple[int | None, int | None]"]  # of dims, by name


class RelaxcWarning(UserWarning):
    """A warning of the compiler."""


def _frames_of_package() -> int:
    """Returns the stack level, as warnings.warn takes it, of the caller of the package for whom calls this."""
    package, level, frame = os.path.dirname(__file__), 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == package:
        frame, level = frame.f_back, level + 1
    return level


def whole(option: str, value: Any, least: int, most: int | None, expected: str) -> int:
    """Returns an option that is a whole number in a range; `expected` says which in words."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        raise UsageError(f"{option} is {value!r}, expected {expected}")
    return number


def flag(option: str, value: Any) -> None:
    """Refuses a value that is neither true nor false."""
    if not isinstance(value, (int, np.bool_)) or value not in (0, 1):
        raise UsageError(f"{option} is {value!r}, expected True or False")


def as_text(option: str, value: Any, expected: str = "str") -> bytes | None:
    """Returns an option that is text, or None, as the library takes it."""
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{option} is {value!r}, expected {expected}")
    return encoded(value)


def as_path(option: str, value: Any) -> bytes:
    """Returns an option that is a path as the library takes it."""
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(f"{option} is {value!r}, expected a path")
    return encoded(value) or b""


def check_session(threads: Any, memory_limit: Any) -> None:
    """Refuses options of sessions, which a model makes only when it is called."""
    whole("threads", threads, 0, MOST_THREADS, f"0 (all cores) to {MOST_THREADS}")
    whole("memory_limit", memory_limit, 0, 2**63 - 1, "a number of bytes, or 0 (the default)")


def _range(name: str, ends: tuple[int | None, int | None]) -> tuple[int, int]:
    try:
        first, last = ends
        least, most = 0 if first is None else operator.index(first), ANY_SIZE if last is None else operator.index(last)
    except (TypeError, ValueError):
        raise UsageError(f"the range of dim {name!r} is {ends!r}, expected (least, most), such as (1, 64)") from None
    if not 0 <= least <= most <= ANY_SIZE:
        raise UsageError(f"the range of dim {name!r} is {least} to {most}, which no size is")
    return least, most


def _list(option: str, values: Path | Sequence[Path]) -> list[Path]:
    """Returns the values of an option that takes one or several."""
    if isinstance(values, (str, os.PathLike)):
        return [values]
    is_list = isinstance(values, Iterable) and not isinstance(values, (bytes, Mapping))
    items = list(values) if is_list else []
    if not is_list or not all(isinstance(item, (str, os.PathLike)) for item in items):
        raise UsageError(f"{option} is {values!r}, expected str or a list of str")
    return items


class _Bound:
    """Values of params that become constants, as the library takes them, with what keeps them."""

    def __init__(self, values: Mapping[str, Any] | None) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise UsageError(f"bind is {type(values).__name__}, expected a dict from params to arrays or .npy files, such as "
                             '{"weight": array}')
        values = values or {}
        self.names, self.count = _texts(values)
        self.tensors = (_library.Tensor * len(values))()
        self.slots = [Slot(tensor, None, f"bind={{{name!r}: ...}}") for tensor, name in zip(self.tensors, values)]
        for slot, value in zip(self.slots, values.values()):
            slot.lend(_loaded(value) if isinstance(value, (str, os.PathLike)) else value)


def _loaded(path: Path) -> Any:
    try:
        return np.load(path)
    except (OSError, ValueError) as error:
        kind = MissingFileError if isinstance(error, FileNotFoundError) else CompileError
        raise kind(f"'{os.fspath(path)}' is not an array of NumPy (.npy): {error}") from None


def _texts(values: Iterable[Path]) -> tuple[Any, int]:
    """Returns an array of C strings and its length."""
    texts = [encoded(value) for value in values]
    return (c.c_char_p * len(texts))(*texts), len(texts)


class Options:
    """A relaxc_compile_options with the memory that it points to."""

    def __init__(self, *, target: str | None = None, passes: str | None = None, function: str | None = None,
                 dims: Mapping[str, int] | None = None,
                 dim_ranges: Ranges | None = None,
                 kernels: Path | Sequence[Path] = (), types: Mapping[str, str] | None = None,
                 link: Path | Sequence[Path] = (), host_symbols: Sequence[str] = (), jobs: int = 0,
                 opt_level: int | None = None, winograd_error: float = 2.5,
                 precision: str | None = None, in_place: bool = False, cache: Path | None = None,
                 inline: int | None = None, constants: Path | None = None, gather: str = "error",
                 bind: Mapping[str, Any] | None = None, strict: bool = False, check_bounds: bool = False,
                 fast_int8: bool = False,
                 log: Callable[[str], None] | None = None,
                 progress: bool | Callable[[Progress], None] = False) -> None:
        jobs = whole("jobs", jobs, 0, 2**31 - 1, "0 (all cores) or more")
        if opt_level is not None:
            opt_level = whole("opt_level", opt_level, 0, 3, "0 to 3, or None for the default, 2")
        if not isinstance(winograd_error, (int, float)) or not 0 <= winograd_error < math.inf:
            raise UsageError(f"winograd_error is {winograd_error!r}, expected a finite number from 0")
        if log is not None and not callable(log):
            raise UsageError(f"log is {log!r}, expected a function of one str")
        if not callable(progress) and progress not in (True, False):
            raise UsageError(f"progress is {progress!r}, expected True, False or a function of one Progress")
        for option, value in (("dims", dims), ("dim_ranges", dim_ranges)):
            if value is not None and not isinstance(value, Mapping):
                raise UsageError(f"{option} is {value!r}, expected a dict from names to sizes, such as " +
                                 ('{"batch": 1}' if option == "dims" else '{"batch": (1, 64)}'))
        for name in set(dims or ()) & set(dim_ranges or ()):
            raise UsageError(f"dim {name!r} has a size in dims and a range in dim_ranges: leave one of them out")
        if gather not in ("error", "clamp"):
            raise UsageError(f"gather is {gather!r}, expected 'error' or 'clamp'")
        for option, is_set in (("in_place", in_place), ("strict", strict), ("check_bounds", check_bounds),
                               ("fast_int8", fast_int8)):
            flag(option, is_set)
        if types is not None and not (isinstance(types, Mapping) and all(isinstance(of, str) for of in types.values())):
            raise UsageError(f"types is {types!r}, expected a dict from names to types, such as " +
                             '{"x": "float32[n, 4]"}')
        if inline is not None:
            inline = whole("inline", inline, 0, 2**63 - 1, "a number of elements, or None for the default, 16")
        sizes = {name: whole(f"dim {name!r}", size, 0, 2**63 - 1, "a whole number from 0 to 2**63 - 1")
                 for name, size in (dims or {}).items()}
        ranges = {name: _range(name, ends) for name, ends in (dim_ranges or {}).items()}
        self._cancelled = c.c_int32(0)
        self._log, self._messages = log, []  # type: ignore[var-annotated]
        self._report, self._finish = reporter(progress)
        self._error: BaseException | None = None
        options = self.options = _library.CompileOptions()
        options.size = c.sizeof(options)
        options.target, options.function = as_text("target", target), as_text("function", function)
        options.passes = as_text("passes", passes, 'str with commas, such as "simplify,fuse_ops"')
        options.cache = None if cache is None else as_path("cache", cache)
        options.dim_names, options.num_dims = _texts(sizes)
        options.dim_values = (c.c_int64 * len(sizes))(*sizes.values())
        options.range_names, options.num_ranges = _texts(ranges)
        options.range_least = (c.c_int64 * len(ranges))(*[least for least, _ in ranges.values()])
        options.range_most = (c.c_int64 * len(ranges))(*[most for _, most in ranges.values()])
        options.kernels, options.num_kernels = _texts(_list("kernels", kernels))
        options.type_names, options.num_types = _texts(types or ())
        options.types, _ = _texts((types or {}).values())
        options.linked, options.num_linked = _texts(_list("link", link))
        options.host_symbols, options.num_host_symbols = _texts(_list("host_symbols", host_symbols))
        options.inline_elements = 0 if inline is None else inline or -1  # 0 is the default in C
        options.constants = None if constants is None else as_path("constants", constants)
        options.num_threads = jobs
        options.opt_level = 0 if opt_level is None else opt_level or -1  # 0 is the default in C
        options.winograd_error = winograd_error or -1  # 0 is the default in C
        options.precision = as_text("precision", precision, 'str, such as "bf16"')
        options.in_place = bool(in_place)
        self._bound = _Bound(bind)
        options.bound_names, options.bound, options.num_bound = self._bound.names, self._bound.tensors, self._bound.count
        options.clamp_indices, options.strict, options.check_bounds = gather == "clamp", bool(strict), bool(check_bounds)
        options.fast_int8 = bool(fast_int8)
        options.log = _library.Logger(self._hear)
        if self._report is not None:
            options.progress = _library.ProgressCallback(self._tell)
        options.cancelled = c.addressof(self._cancelled)

    def cancel(self) -> None:
        self._cancelled.value = 1

    def _hear(self, _user: int, level: int, message: bytes) -> None:
        self._messages.append((level, in_python(text(message))))

    def _tell(self, _user: int, pointer: Any) -> None:
        now = pointer.contents
        try:
            if self._error is None:
                self._report(Progress(text(now.stage), text(now.at_work), now.done, now.total, now.seconds))  # type: ignore[misc]
        except BaseException as error:  # raised by call(), since no exception crosses the library
            self._error = error
            self.cancel()

    def call(self, function: Any, *arguments: Any) -> None:
        """Calls a function of the compiler; `...` among the arguments stands for the options."""
        given = [c.byref(self.options) if argument is ... else argument for argument in arguments]
        try:
            status = self._call(function, given)
        finally:
            self._finish()
        if self._error is not None:
            raise self._error
        for level, message in self._messages:
            if self._log is not None:
                self._log(message)
            elif level > 0:
                warnings.warn(message, RelaxcWarning, stacklevel=_frames_of_package())
        check(status)

    def _call(self, function: Any, arguments: Sequence[Any]) -> int:
        if get_ident() != _interrupt.main_thread:
            return int(function(*arguments))
        _interrupt.push(self)
        try:
            status = int(function(*arguments))
        finally:
            _interrupt.pop()
        if status == _library.CANCELLED and self._error is None and _interrupt.was_late(self):
            self._cancelled.value = 0
            return self._call(function, arguments)
        return status
