"""Lends arrays to the library, and takes its tensors as arrays, without copies."""
from __future__ import annotations

import ctypes as c
import sys
from typing import Any

import numpy as np

from . import _dtypes
from ._dtypes import Code, code_for, code_of
from ._library import Deleter, ManagedTensor, Tensor
from .errors import PROBLEMS, Error, UsageError

_CPU = 1
_address_of, _byte_at, _ndarray = c.addressof, c.c_char.from_buffer, np.ndarray
_capsule_pointer = c.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


def as_array(value: Any, declared: Code | None) -> np.ndarray[Any, Any]:
    """Returns what NumPy makes of a value; lists and numbers become the declared dtype."""
    if isinstance(value, np.ma.MaskedArray) and bool(np.any(value.mask)):
        raise TypeError("some elements of the array are masked, and a tensor has no mask: give numbers in their place "
                        "(x.filled(0))")
    if value is None:
        raise TypeError("expected an array, got None")
    is_array = hasattr(value, "__array_interface__") or hasattr(value, "__array__") or _is_buffer(value)
    if is_array or declared is None or declared.is_string:
        return np.asarray(value)
    return _from_numbers(value, declared)


def _is_buffer(value: Any) -> bool:
    """Returns whether the value has memory with a dtype of its own, as array.array and memoryview have."""
    try:
        return bool(memoryview(value).format)
    except TypeError:
        return False


def _from_numbers(value: Any, declared: Code) -> np.ndarray[Any, Any]:
    dtype = declared.numpy
    if declared.is_bits:
        raise TypeError(f"NumPy does not have the dtype: install the package ml_dtypes, or give the bits as an array of "
                        f"{dtype}")
    array = np.asarray(value)
    if array.size and array.dtype != dtype and array.dtype.kind not in _KINDS_OF_NUMBERS.get(dtype.kind, "iubf"):
        raise TypeError(f"expected numbers of {dtype}, got {_described(array)}")
    if declared.is_packed and array.dtype.kind in "iu":
        _dtypes.check_packed(array, declared)
    with np.errstate(over="ignore"):
        result = array.astype(dtype)
    is_changed = dtype.kind in "iu" and not np.array_equal(result, array)
    if is_changed or (dtype.kind in "fc" and any(_overflows(part(array), part(result)) for part in (np.real, np.imag))):
        raise TypeError(f"a number is out of the range of {dtype}")
    return result


def _overflows(array: np.ndarray[Any, Any], result: np.ndarray[Any, Any]) -> bool:
    """Returns whether finite numbers have become infinite in another dtype."""
    return bool(np.any(np.isinf(result) & np.isfinite(array)))


# The kinds of numbers in lists that become a dtype of each kind, where these are not all but complex ones.
_KINDS_OF_NUMBERS = {"i": "iub", "u": "iub", "b": "b", "c": "iubfc"}


def _described(array: np.ndarray[Any, Any]) -> str:
    """Returns the dtype of an array, or the type of an element that is not a number."""
    if array.dtype.kind != "O":
        return str(array.dtype)
    others = [item for item in array.reshape(-1).tolist() if not isinstance(item, (int, float))]
    if not others:
        return "numbers of any size"
    return f"{'None' if others[0] is None else type(others[0]).__name__} among them"


class Slot:
    """One place for a tensor among the arguments of a run. It keeps what the last array had, so that an array of the
    same shape and dtype costs only its address."""

    __slots__ = ("tensor", "declared", "name", "shape", "dtype", "code", "_torch", "_is_read_only", "_dims", "_keep")

    def __init__(self, tensor: Tensor, declared: Code | None, name: str) -> None:
        self.tensor, self.declared, self.name = tensor, declared, name
        tensor.device_type = _CPU
        self.shape: tuple[int, ...] | None = None  # of a dense array of NumPy or tensor of torch, else None
        self.dtype: Any = None
        self.code: Code | None = None
        self._torch: Any = None  # the type torch.Tensor, once a dense one was lent
        self._is_read_only = False  # the last array
        self._dims: Any = None
        self._keep: Any = None

    def lend_again(self, array: Any, is_written: bool = False) -> bool:
        """Points at a dense array of the shape and dtype that the last one had, and returns whether it is one. The
        caller holds it. An array that is written to has to be writable."""
        if type(array) is not _ndarray:
            return type(array) is self._torch and self._lend_torch_again(array)
        if array.shape != self.shape or array.dtype is not self.dtype:
            return False
        if is_written or not self._is_read_only:
            try:
                self.tensor.data = _address_of(_byte_at(array))  # type: ignore[arg-type]
                return True
            except (TypeError, ValueError):  # not dense, read-only, or empty
                if is_written:
                    return False
        flags = array.flags
        if not flags.c_contiguous:
            return False
        self._is_read_only = not flags.writeable
        self.tensor.data = array.__array_interface__["data"][0]
        return True

    def _lend_torch_again(self, value: Any) -> bool:
        """Does the same with a tensor of torch, whose attributes take a third of the time that its DLPack capsule takes.
        False for those that torch would not export now."""
        try:
            if (value.dtype is not self.dtype or value.shape != self.shape or not value.is_cpu or value.requires_grad
                    or value.is_neg() or not value.is_contiguous()):
                return False
            self.tensor.data = value.data_ptr()
            return True
        except (AttributeError, RuntimeError):  # an older torch; elements that are not in one piece of memory
            return False

    def lend(self, value: Any) -> bool:
        """Points at the value's memory, which lives until release(), and returns whether its shape and dtype may be
        others than those of the last value. Errors name the slot."""
        try:
            return self._lend(value)
        except Error:
            raise
        except PROBLEMS as error:
            raise UsageError(f"{self.name}: {error}") from error

    def lend_to_write(self, value: Any, must_be_dense: bool = False) -> None:
        """Points at the memory of the value itself, to which the run writes. Errors name the slot and the remedy."""
        problem = _why_not_written(value, self.declared)
        if problem is None:
            self.lend(value)
            dims, strides = self.dims(), self._strides()
            if strides is not None and _overlaps(dims, strides):
                problem = "several elements of the array share memory: give a copy of it"
            elif strides is not None and must_be_dense and not _is_dense(dims, strides):
                problem = "the array is not dense in C order: give np.ascontiguousarray(x), and keep that"
        if problem is not None:
            raise UsageError(f"{self.name} is written to in place, and {problem}")

    def _strides(self) -> tuple[int, ...] | None:
        """Returns the strides of what is lent, in elements; None: dense."""
        tensor = self.tensor
        if not tensor.strides or not tensor.ndim:
            return None
        return tuple((c.c_int64 * tensor.ndim).from_address(tensor.strides))

    def _lend(self, value: Any) -> bool:
        if type(value) is not _ndarray:
            if hasattr(value, "__dlpack__") and not isinstance(value, _ndarray) and self._lend_capsule(value):
                return True
            value = as_array(value, self.declared)
            if self.lend_again(value):
                self._keep = value
                return False
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        code = code_for(value.dtype, self.declared)
        if code is None:
            raise TypeError(f"arrays of {value.dtype} are not tensors here")
        if code.is_packed:
            shape, value = value.shape, _dtypes.packed(value, code)
            self._set(value.__array_interface__["data"][0], shape, None, code)
            self._keep, self.shape = value, None
            return True
        strides: tuple[int, ...] | None = None
        if not value.flags.c_contiguous:
            size = value.dtype.itemsize
            if any(stride % size for stride in value.strides):
                value = np.ascontiguousarray(value)
            else:
                strides = tuple(stride // size for stride in value.strides)
        self._set(value.__array_interface__["data"][0], value.shape, strides, code)
        self._keep = value
        self.shape, self.dtype = (value.shape, value.dtype) if strides is None else (None, None)
        return True

    def expect(self, shape: tuple[int, ...], code: Code) -> None:
        """Becomes a dense tensor, whose address is still to be set."""
        self._set(0, shape, None, code)

    def _set(self, data: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, code: Code) -> None:
        rank = len(shape)
        dims = (c.c_int64 * (2 * rank + 1))(*shape, *(strides or ()))
        tensor = self.tensor
        tensor.data, tensor.ndim, tensor.byte_offset = data, rank, 0
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = code.code, code.bits, 1
        tensor.device_type, tensor.device_id = _CPU, 0
        tensor.shape = _address_of(dims)
        tensor.strides = None if strides is None else tensor.shape + 8 * rank
        self._dims, self.code = dims, code

    def _lend_capsule(self, value: Any) -> bool:
        if hasattr(value, "resolve_neg"):  # torch may leave the sign and the conjugate to be computed
            value = value.resolve_conj().resolve_neg()
        try:
            capsule = value.__dlpack__()
        except (BufferError, RuntimeError, TypeError):  # a dtype that DLPack lacks there; __array__ may have it
            if not hasattr(value, "__array__"):
                raise
            return False
        c.memmove(_address_of(self.tensor), _capsule_pointer(capsule, b"dltensor"), c.sizeof(Tensor))
        self._keep, self._dims, self.code = capsule, None, code_of(self.tensor.dtype)
        self.shape = self.dtype = None
        torch = sys.modules.get("torch")
        if torch is not None and type(value) is torch.Tensor and value.is_contiguous() and not value.is_complex():
            self._set(value.data_ptr(), tuple(value.shape), None, self.code)  # a copy of the shape, which is the capsule's
            self.shape, self.dtype, self._torch = value.shape, value.dtype, torch.Tensor
        return True

    def dims(self) -> tuple[int, ...]:
        """Returns the shape of what is lent."""
        tensor = self.tensor
        return tuple((c.c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else ()

    def release(self) -> None:
        self._keep = None


def _why_not_written(value: Any, declared: Code | None) -> str | None:
    """Returns why a run cannot write to the value, with the remedy; None: it can, for all that one can tell before."""
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array is not a tensor: give x.filled(0), and keep that"
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            return "the array is read-only: give a copy of it (x.copy())"
        if not value.dtype.isnative:
            native = value.dtype.newbyteorder("=").str
            return f"{value.dtype} is not of this machine's byte order: give x.astype({native!r}), and keep that"
        if any(stride % value.itemsize for stride in value.strides):
            return "the array has strides of parts of an element: give np.ascontiguousarray(x), and keep that"
        is_packed = declared is not None and declared.is_packed
        return "its elements are packed, several to a byte, as those of no array are" if is_packed else None
    if hasattr(value, "is_neg") and (value.is_neg() or value.is_conj()):
        return "the sign or conjugate of the tensor is not computed yet: give x.resolve_conj().resolve_neg()"
    if not hasattr(value, "__dlpack__"):
        return f"expected an array to write to, got {type(value).__name__}"
    return None


def _overlaps(dims: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Returns whether elements may share memory. Slices of a dense array, also transposed ones, never do."""
    end = 0  # of the elements along the dims before
    for stride, dim in sorted((abs(stride), dim) for stride, dim in zip(strides, dims) if dim > 1):
        if stride <= end:
            return 0 not in dims
        end += (dim - 1) * stride
    return False


def _is_dense(dims: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for dim, stride in zip(reversed(dims), reversed(strides)):
        if dim != 1 and stride != expected:
            return 0 in dims
        expected *= dim
    return True


class _Memory:
    """Owns a tensor of the library, as the base of the array that shows it."""

    __slots__ = ("__array_interface__", "_address", "_delete")

    def __init__(self, address: int, tensor: ManagedTensor, interface: dict[str, Any]) -> None:
        self._address = address
        self._delete = Deleter(tensor.deleter) if tensor.deleter else None
        self.__array_interface__ = interface

    def __del__(self) -> None:
        if self._delete is not None:
            self._delete(self._address)


def take(address: int, read_only: bool = False) -> np.ndarray[Any, Any]:
    """Returns the DLManagedTensor at an address as an array that owns it."""
    managed = ManagedTensor.from_address(address)
    tensor = managed.tensor
    rank, code = tensor.ndim, code_of(tensor.dtype)
    shape = tuple((c.c_int64 * rank).from_address(tensor.shape)) if rank else ()
    dtype = np.dtype(np.uint8) if code.is_packed else code.numpy
    stored = (_dtypes.packed_bytes(shape, code.bits),) if code.is_packed else shape
    # A void of the element's size stands for a dtype that the array interface does not spell.
    spelled = dtype.str if dtype.kind != "V" else f"|V{dtype.itemsize}"
    memory = _Memory(address, managed, {"shape": stored, "typestr": spelled, "version": 3,
                                        "data": ((tensor.data or 0) + tensor.byte_offset, read_only)})
    if 0 in stored or not tensor.data:
        return np.empty(shape, code.numpy)
    array = np.asarray(memory)
    if code.is_packed:
        return _dtypes.unpacked(array, shape, code)
    return array if dtype.kind != "V" else array.view(dtype)
