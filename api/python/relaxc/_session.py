"""A session of the library with what its runs need, prepared: the arrays of tensors that a call takes."""
from __future__ import annotations

import ctypes as c
import time
from math import prod
from threading import get_ident
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import _interrupt, _library
from ._library import Tensor, lib, text
from ._tensors import Slot, take
from ._values import Handle, from_any, to_any
from .errors import check, raise_last
from .info import ValueInfo
from .profile import KernelCall

if TYPE_CHECKING:
    from .model import Program

_SMALL = 1 << 16  # bytes of results up to which NumPy's own allocation is cheaper than an owner of the library's
_address_of, _byte_at, _empty = c.addressof, c.c_char.from_buffer, np.empty
_run_into, _run = lib.run_into, lib.run


class Session:
    """The state of one caller; one thread at a time uses it."""

    def __init__(self, program: Program, function: bytes | None, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo],
                 threads: int, memory_limit: int) -> None:
        self.handle: int | None = None
        options = _library.SessionOptions(c.sizeof(_library.SessionOptions), threads, memory_limit)
        handle = c.c_void_p()
        check(lib.session_new(program.handle, c.byref(options), c.byref(handle)))
        self.handle = handle.value
        self._function, self._inputs, self._outputs = function, inputs, outputs
        self._in = (Tensor * len(inputs))()
        self._out, self._given = (Tensor * len(outputs))(), (Tensor * len(outputs))()  # new arrays, and those of out=
        self._results = (c.c_void_p * len(outputs))()
        self._slots = _slots(self._in, inputs, "input")
        self._places, self._given_places = _slots(self._out, outputs, "output"), _slots(self._given, outputs, "output")
        self._are_held = False  # whether a slot holds a value until the end of the run
        # The arrays of the results, where the shapes of the inputs tell theirs: tensor of the call, shape, dtype.
        self._shapes: list[tuple[int, ...]] | None = None  # of the inputs to which _known belongs
        self._known: list[tuple[Tensor, tuple[int, ...], np.dtype[Any]]] | None = None

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            lib.session_release(self.handle)

    def cancel(self) -> None:
        lib.session_cancel(self.handle)

    def run(self, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        """Runs on arrays, as many as there are inputs."""
        try:
            self._lend_inputs(arrays)
            if self._known is None:
                self._call(_run, self._results, len(self._results))
                return [take(address or 0) for address in self._results]
            results = []
            for tensor, shape, dtype in self._known:
                result = _empty(shape, dtype)
                tensor.data = _address_of(_byte_at(result))  # type: ignore[arg-type]
                results.append(result)
            self._call(_run_into, self._out, len(self._out))
            return results
        except BaseException:
            self._forget()
            raise
        finally:
            if self._are_held:
                self._release()

    def run_into(self, arrays: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Runs and writes the results to arrays."""
        try:
            self._lend_inputs(arrays)
            for place, array in zip(self._given_places, outputs):
                if not place.lend_again(array, is_written=True):
                    self._are_held = True
                    place.lend_to_write(array)
            self._call(_run_into, self._given, len(self._given))
        except BaseException:
            self._forget()
            raise
        finally:
            if self._are_held:
                self._release()

    def _lend_inputs(self, arrays: Sequence[Any]) -> None:
        is_other = False
        for slot, array in zip(self._slots, arrays):
            if not slot.lend_again(array):
                self._are_held = True
                is_other = slot.lend(array) or is_other
        if is_other:
            self._find_known_results()

    def run_values(self, values: Sequence[Any]) -> list[Any]:
        """Runs on values of every kind."""
        inputs = [to_any(value, info, f"input '{info.name}'") for value, info in zip(values, self._inputs)]
        handles = (c.c_void_p * len(inputs))(*[value.address for value in inputs])
        results = (c.c_void_p * len(self._outputs))()
        self._call_on(lib.run_values, handles, len(inputs), results, len(results))
        return [from_any(value) for value in [Handle(address or 0) for address in results]]

    def profile(self, run: Any, values: Sequence[Any]) -> tuple[list[KernelCall], int]:
        """Returns the kernel calls of run(values) and its nanoseconds."""
        check(lib.session_keep_records(self.handle, 1))
        try:
            start = time.perf_counter_ns()
            run(values)
            total = time.perf_counter_ns() - start
            rows, count = c.POINTER(_library.KernelRecord)(), c.c_int32()
            check(lib.session_records(self.handle, c.byref(rows), c.byref(count)))
            return [KernelCall(text(row.kernel), text(row.node), text(row.rule), row.start_ns, row.duration_ns,
                               row.operations if row.operations >= 0 else None, row.bytes)
                    for row in rows[:count.value]], total
        finally:
            check(lib.session_keep_records(self.handle, 0))

    def trim(self) -> None:
        lib.session_trim(self.handle)

    def memory(self) -> _library.MemoryStats:
        stats = _library.MemoryStats()
        lib.session_memory(self.handle, c.byref(stats))
        return stats

    def _forget(self) -> None:
        """Lets the next run begin anew: what is kept may be of another run, or of half of one."""
        self._known = self._shapes = None
        for slot in [*self._slots, *self._places, *self._given_places]:
            slot.shape = None
        self._are_held = True

    def _release(self) -> None:
        """Lets go of the values that a run was lent."""
        self._are_held = False
        for slot in [*self._slots, *self._given_places]:
            slot.release()

    def _call(self, function: Any, outputs: Any, count: int) -> None:
        self._call_on(function, self._in, len(self._in), outputs, count)

    def _call_on(self, function: Any, inputs: Any, num_inputs: int, outputs: Any, num_outputs: int) -> None:
        if get_ident() != _interrupt.main_thread:
            status = function(self.handle, self._function, inputs, num_inputs, outputs, num_outputs)
            if status:
                raise_last(status)
            return
        _interrupt.push(self)
        try:
            status = function(self.handle, self._function, inputs, num_inputs, outputs, num_outputs)
        finally:
            _interrupt.pop()
        if status:
            if status == _library.CANCELLED and _interrupt.was_late(self):
                return self._call_on(function, inputs, num_inputs, outputs, num_outputs)
            raise_last(status)

    def _find_known_results(self) -> None:
        shapes = [slot.dims() for slot in self._slots]
        if shapes != self._shapes:
            self._shapes, self._known = None, self._known_results(shapes)
            self._shapes = shapes

    def _known_results(self, shapes: Sequence[tuple[int, ...]]) -> list[tuple[Tensor, tuple[int, ...], np.dtype[Any]]] | None:
        """Returns the results' shapes and dtypes where they are small and follow from the inputs', and points the
        tensors of the call at them."""
        symbols: dict[str, int] = {}
        for dims, info in zip(shapes, self._inputs):
            if info.shape is None or len(info.shape) != len(dims):
                continue
            symbols.update((stated, dim) for stated, dim in zip(info.shape, dims) if isinstance(stated, str))
        known: list[tuple[Tensor, tuple[int, ...], np.dtype[Any]]] = []
        total = 0
        for place, info in zip(self._places, self._outputs):
            if info.shape is None or info.code is None or info.code.is_packed or info.code.numpy.kind == "V":
                return None
            sizes = tuple(symbols.get(dim, -1) if isinstance(dim, str) else dim for dim in info.shape)
            if any(size <= 0 for size in sizes):
                return None
            dtype = info.code.numpy
            total += prod(sizes) * dtype.itemsize
            if total > _SMALL:
                return None
            place.expect(sizes, info.code)
            known.append((place.tensor, sizes, dtype))
        return known


def _slots(tensors: Any, infos: Sequence[ValueInfo], what: str) -> list[Slot]:
    return [Slot(tensors[i], info.code, f"{what} '{info.name}'") for i, info in enumerate(infos)]
