"""The exceptions of relaxc. All are `relaxc.Error`s, whose text is the message of the compiler or runtime."""
from __future__ import annotations

import ctypes
import errno
import os
import re
from dataclasses import dataclass
from typing import NoReturn, Sequence

from . import _library
from ._library import lib, text


@dataclass(frozen=True)
class ErrorPlace:
    """One problem and its place. Members are "" or 0 where they are not known."""

    message: str
    """The problem, without its place."""
    file: str = ""
    """The model or text."""
    node: str = ""
    """The name of the ONNX node."""
    op_type: str = ""
    """The operator of the node."""
    line: int = 0
    """The line of a text, from 1."""
    column: int = 0
    """The column of a text, from 1."""


class Error(Exception):
    """What relaxc raises. `errors` lists the problems that the message is made of, with their places."""

    errors: Sequence[ErrorPlace]

    def __init__(self, message: str, errors: Sequence[ErrorPlace] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors) or (ErrorPlace(message),)


class CompileError(Error, ValueError):
    """A model, text or artifact is wrong."""


class UnsupportedError(CompileError, NotImplementedError):
    """The model may be right, but relaxc cannot compile it (yet), or the compiler is not installed."""


class UsageError(Error, ValueError, TypeError):
    """A call is wrong: an unknown name, a wrong count, a value of the wrong kind."""


# What Python and NumPy raise where a value is not what it should be.
PROBLEMS = (ArithmeticError, AttributeError, BufferError, RuntimeError, TypeError, ValueError)


class MissingFileError(CompileError, FileNotFoundError):
    """There is no file of the name."""


class WriteError(Error, OSError):
    """A file cannot be written."""


class RunError(Error, RuntimeError):
    """A run failed: an input does not fit its declaration, an index is out of bounds, a kernel failed."""


class Cancelled(Error):
    """The run was ended by `Model.cancel`."""


class OutOfMemoryError(Error, MemoryError):
    """Memory is too short, or a limit was reached."""


class InternalError(Error):
    """A bug of relaxc."""


_CLASSES = {
    _library.INVALID: CompileError,
    _library.USAGE: UsageError,
    _library.UNSUPPORTED: UnsupportedError,
    _library.RUN_FAILED: RunError,
    _library.CANCELLED: Cancelled,
    _library.OUT_OF_MEMORY: OutOfMemoryError,
    _library.WRITE_FAILED: WriteError,
}


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun, such as "1 input" or "2 inputs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


_NO_FILE = tuple(os.strerror(code) for code in (errno.ENOENT, errno.ENOTDIR))


def check_writable(path: str | bytes) -> None:
    """Raises WriteError where a file cannot be made, which would show after the work otherwise."""
    folder = os.path.dirname(os.path.abspath(path))
    shown, name = os.fsdecode(folder), os.fsdecode(path)
    if os.path.isdir(path):
        raise WriteError(f"cannot write '{name}': it is a folder; name a file")
    if not os.path.isdir(folder):
        raise WriteError(f"cannot write '{name}': there is no folder '{shown}'; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise WriteError(f"cannot write '{name}': the folder '{shown}' cannot be written to")


# The library names flags of the command line, which are options here.
_FLAGS = (("(--link)", "(link=[FILE])"), ("--host-symbols ", "host_symbols="), ("--kernels FILE", "kernels=[FILE]"),
          ("--kernels LIBRARY.so", "kernels=[LIBRARY.so]"),
          ("--cache DIR", "cache=DIR"), ("--winograd-error 0", "winograd_error=0"),
          ("--precision", "precision="), ("--dim NAME=1", 'dims={"NAME": 1}'), ("--in-place", "in_place"),
          ("--check-bounds", "check_bounds=True"), ("--gather clamp", 'gather="clamp"'), ("--dim-range", "dim_ranges="),
          ("--strict", "strict=True"))


def in_python(message: str) -> str:
    """Returns a message of the library with the options of this package in place of flags."""
    for flag, option in _FLAGS:
        message = message.replace(flag, option)
    return re.sub(r"--type '([^'=]*)=([^']*)'", r'types={"\1": "\2"}', message)


def last_error(status: int) -> Error:
    """Returns the error of the last call on this thread, which gave `status`."""
    places = []
    place = _library.ErrorPlace()
    for index in range(lib.error_count()):
        if lib.error_at(index, ctypes.byref(place)):
            places.append(ErrorPlace(in_python(text(place.message)), text(place.file), text(place.node), text(place.op_type),
                                     place.line, place.column))
    message = in_python(text(lib.error_message()))
    if status == _library.INVALID and message.endswith(_NO_FILE):
        return MissingFileError(message, places)
    return _CLASSES.get(status, InternalError)(message, places)


def raise_last(status: int) -> NoReturn:
    raise last_error(status)


def check(status: int) -> None:
    """Raises the error of a call that failed."""
    if status:
        raise last_error(status)
