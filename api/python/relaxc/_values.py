"""Values of every kind, to the library's handles and back.

| ONNX or text | in Python |
|---|---|
| tensor | numpy.ndarray; of strings: dtype object, with str |
| sequence | list |
| optional without a value | None |
| map | dict |
| tuple | tuple |
| shape | tuple of int |
| integer, double, string | int, float, str |
"""
from __future__ import annotations

import ctypes as c
import operator
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import _library
from ._library import Deleter, ManagedTensor, Tensor, lib, text
from ._tensors import Slot, as_array, take
from .errors import PROBLEMS, Error, UsageError, check

if TYPE_CHECKING:
    from .info import ValueInfo


class Handle:
    """Owns a relaxc_any of the library."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self) -> None:
        lib.any_release(self.address)


def _made(make: Any, *arguments: Any) -> Handle:
    handle = c.c_void_p()
    check(make(*arguments, c.byref(handle)))
    return Handle(handle.value or 0)


def to_any(value: Any, info: ValueInfo | None, name: str) -> Handle:
    """Makes a value of the library. `info` is its declaration, where there is one. Errors name the value."""
    try:
        return _value(value, info, name)
    except Error:
        raise
    except PROBLEMS as error:
        raise UsageError(f"{name}: {error}") from error


def _value(value: Any, info: ValueInfo | None, name: str) -> Handle:
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 0:
        value = value.item()  # as the package onnx holds an optional
    kind = info.kind if info is not None and info.kind != "none" else _kind_of(value)
    if value is None:
        return _made(lib.any_none)
    if kind == "tensor":
        return _tensor(value, info, name)
    if kind == "shape":
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise UsageError(f"{name}: expected a tuple of whole numbers, got {value!r}")
        dims = [_whole(dim, name) for dim in value]
        return _made(lib.any_shape, (c.c_int64 * len(dims))(*dims), len(dims))
    if kind == "int":
        return _made(lib.any_int, _whole(value, name))
    if kind == "double":
        if isinstance(value, (str, bytes)):
            raise UsageError(f"{name}: expected a number, got {type(value).__name__}")
        return _made(lib.any_double, float(value))
    if kind == "string":
        data = _utf8(value)
        return _made(lib.any_string, data, len(data))
    if kind == "map":
        return _map(value, info, name)
    return _items(value, info, name, _library.TUPLE if kind == "tuple" else _library.SEQUENCE)


def _kind_of(value: Any) -> str:
    kinds = {dict: "map", tuple: "tuple", list: "sequence", str: "string", int: "int", float: "double"}
    return kinds.get(type(value), "tensor")


def _whole(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise UsageError(f"{name}: expected a whole number, got {value!r}") from None


def _utf8(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _items(value: Any, info: ValueInfo | None, name: str, kind: int) -> Handle:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise UsageError(f"{name} is {type(value).__name__}, expected a list or tuple of values")
    fields = info.fields if info is not None else ()
    if kind == _library.TUPLE and fields and len(value) != len(fields):
        raise UsageError(f"{name} has {len(value)} values, expected {len(fields)}")
    items = []
    for index, item in enumerate(value):
        field = None if not fields else fields[index] if kind == _library.TUPLE else fields[0]
        items.append(to_any(item, field, f"{name}[{index}]"))
    return _of(kind, items)


def _of(kind: int, items: Sequence[Handle]) -> Handle:
    return _made(lib.any_of, kind, (c.c_void_p * len(items))(*[item.address for item in items]), len(items))


def _map(value: Any, info: ValueInfo | None, name: str) -> Handle:
    if not isinstance(value, dict):
        raise UsageError(f"{name} is {type(value).__name__}, expected a dict")
    if info is None or len(info.fields) != 2:
        return _of(_library.MAP, [_tensor(list(value.keys()), None, name), _tensor(list(value.values()), None, name)])
    key, entry = info.fields
    return _of(_library.MAP, [to_any(list(value.keys()), key, f"the keys of {name}"),
                              to_any(list(value.values()), entry, f"the values of {name}")])


def _tensor(value: Any, info: ValueInfo | None, name: str) -> Handle:
    declared = info.code if info is not None else None
    if info is not None and info.is_cache:
        slot = Slot(Tensor(), declared, f"the cache {name}")
        slot.lend_to_write(value, must_be_dense=True)
        return _lent(slot, value)
    if declared is not None and declared.is_string:
        value = _array_of_strings(value)
    elif not hasattr(value, "__dlpack__"):
        value = as_array(value, declared)
    if isinstance(value, np.ndarray) and value.dtype.kind in "USO":
        return _strings(value, name)
    slot = Slot(Tensor(), declared, name)
    slot.lend(value)
    return _made(lib.any_tensor, slot.tensor)


_lent_values: dict[int, tuple[ManagedTensor, Slot, Any]] = {}  # by the address of the first, until the library is done


def _give_back(address: int) -> None:
    _lent_values.pop(address, None)


_release = Deleter(_give_back)


def _lent(slot: Slot, value: Any) -> Handle:
    """Returns the tensor with the memory of the value, to which a run writes."""
    managed = ManagedTensor(slot.tensor, None, c.cast(_release, c.c_void_p))
    address = c.addressof(managed)
    _lent_values[address] = (managed, slot, value)
    return _made(lib.any_dlpack, address)


def _array_of_strings(value: Any) -> np.ndarray[Any, Any]:
    """Returns a list as an array of objects, without a copy of each string in NumPy's form."""
    if isinstance(value, (list, tuple)) and all(type(item) is str for item in value):
        result = np.empty(len(value), object)
        result[:] = value
        return result
    return np.asarray(value)


def _strings(array: np.ndarray[Any, Any], name: str) -> Handle:
    items = array.reshape(-1).tolist()
    if not all(isinstance(item, (str, bytes)) for item in items):
        raise UsageError(f"{name}: some elements are not strings")
    data = [item.encode("utf-8", "surrogateescape") if type(item) is str else _utf8(item) for item in items]
    return _made(lib.any_strings, (c.c_char_p * len(data))(*data), (c.c_size_t * len(data))(*map(len, data)),
                 (c.c_int64 * array.ndim)(*array.shape), array.ndim)


def from_any(value: Handle) -> Any:
    """Returns a value of the library as one of Python."""
    kind = lib.any_kind(value.address)
    if kind == _library.NONE:
        return None
    if kind == _library.TENSOR:
        return _array(value)
    if kind == _library.SHAPE:
        return _shape(value)[0]
    if kind == _library.INT:
        number = c.c_int64()
        check(lib.any_get_int(value.address, c.byref(number)))
        return number.value
    if kind == _library.DOUBLE:
        real = c.c_double()
        check(lib.any_get_double(value.address, c.byref(real)))
        return real.value
    if kind == _library.STRING:
        return _strings_of(value, 1)[0]
    if kind in (_library.TUPLE, _library.SEQUENCE):
        items = [from_any(item) for item in _items_of(value)]
        return tuple(items) if kind == _library.TUPLE else items
    if kind == _library.MAP:
        keys, values = (from_any(item).tolist() for item in _items_of(value))
        return dict(zip(keys, values))
    raise UsageError(f"a value of kind {kind} ({text(lib.any_describe(value.address))}) has no form in Python")


def _items_of(value: Handle) -> list[Handle]:
    count = c.c_int32()
    check(lib.any_num_items(value.address, c.byref(count)))
    return [_made(lib.any_item, value.address, index) for index in range(count.value)]


def _shape(value: Handle) -> tuple[tuple[int, ...], int]:
    dims, rank, dtype = c.POINTER(c.c_int64)(), c.c_int32(), _library.DataType()
    check(lib.any_get_shape(value.address, c.byref(dims), c.byref(rank), c.byref(dtype)))
    return tuple(dims[:rank.value]), dtype.code


def _array(value: Handle) -> np.ndarray[Any, Any]:
    address = c.c_void_p()
    if not lib.any_get_tensor(value.address, c.byref(address)):
        return take(address.value or 0, read_only=True)
    shape, code = _shape(value)
    if code != _library.STRING_CODE:
        check(lib.any_get_tensor(value.address, c.byref(address)))  # for its error
    result = np.empty(int(np.prod(shape, dtype=np.int64)), object)
    result[:] = _strings_of(value, result.size)
    return result.reshape(shape)


def _strings_of(value: Handle, count: int) -> list[str]:
    data, length = c.c_void_p(), c.c_size_t()
    get, address, to_data, to_length, read = lib.any_get_string, value.address, c.byref(data), c.byref(length), c.string_at
    result = []
    for index in range(count):
        status = get(address, index, to_data, to_length)
        if status:
            check(status)
        result.append(read(data.value or 0, length.value).decode("utf-8", "surrogateescape") if length.value else "")
    return result
