"""The dtypes of tensors: DLPack's codes, NumPy's dtypes, and those that NumPy lacks.

bfloat16 and float8 are dtypes of the package ml_dtypes where it is installed, else their bits as uint16 and uint8. A
tensor of elements of 2 or 4 bits, of which several share a byte, is an int8 or uint8 array with one element to a byte;
float4_e2m1fn is ml_dtypes' dtype or uint8 with its codes."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._library import STRING_CODE, DataType

try:
    import ml_dtypes as _extra  # type: ignore[import]
except ImportError:
    _extra = None

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6

# DLPack's code and bits of the dtypes that NumPy lacks: ml_dtypes' name, and the dtype without it.
_OTHERS = {
    (BFLOAT, 16): ("bfloat16", np.uint16),
    (7, 8): ("float8_e3m4", np.uint8),
    (8, 8): ("float8_e4m3", np.uint8),
    (9, 8): ("float8_e4m3b11fnuz", np.uint8),
    (10, 8): ("float8_e4m3fn", np.uint8),
    (11, 8): ("float8_e4m3fnuz", np.uint8),
    (12, 8): ("float8_e5m2", np.uint8),
    (13, 8): ("float8_e5m2fnuz", np.uint8),
    (14, 8): ("float8_e8m0fnu", np.uint8),
    (17, 4): ("float4_e2m1fn", np.uint8),
    (INT, 4): (None, np.int8),
    (UINT, 4): (None, np.uint8),
    (INT, 2): (None, np.int8),
    (UINT, 2): (None, np.uint8),
}
_KINDS = {"i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX, "b": BOOL}


class Code(NamedTuple):
    """A dtype as DLPack tells it."""

    code: int
    bits: int

    @property
    def is_packed(self) -> bool:
        return self.bits < 8 and self.code != BOOL

    @property
    def is_string(self) -> bool:
        return self.code == STRING_CODE

    @property
    def is_bits(self) -> bool:
        """Whether NumPy's arrays of it hold the bits of floats."""
        return self in _TO_NUMPY and self.code not in (INT, UINT, BOOL) and self.numpy.kind == "u"

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest number of a packed dtype of integers."""
        least = -(1 << (self.bits - 1)) if self.code == INT else 0
        return least, least + (1 << self.bits) - 1

    @property
    def name(self) -> str:
        """The name of a packed dtype."""
        return _OTHERS[self][0] or f"{'int' if self.code == INT else 'uint'}{self.bits}"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of NumPy arrays of it."""
        if self not in _TO_NUMPY:
            raise TypeError(f"DLPack's dtype of code {self.code} with {self.bits} bits has no NumPy dtype")
        return _TO_NUMPY[self]


def code_of(dtype: DataType) -> Code:
    return Code(dtype.code, dtype.bits)


def _other(name: str | None, without: type) -> np.dtype[Any]:
    return np.dtype(getattr(_extra, name or "", without))


_TO_NUMPY: dict[Code, np.dtype[Any]] = {Code(*code): _other(*names) for code, names in _OTHERS.items()}
_TO_NUMPY[Code(BOOL, 8)] = np.dtype(np.bool_)
_TO_NUMPY[Code(STRING_CODE, 64)] = np.dtype(object)
for _kind, _bits in (("i", (8, 16, 32, 64)), ("u", (8, 16, 32, 64)), ("f", (16, 32, 64)), ("c", (64, 128))):
    for _count in _bits:
        _TO_NUMPY[Code(_KINDS[_kind], _count)] = np.dtype(f"{_kind}{_count // 8}")
_FROM_EXTRA = {dtype: code for code, dtype in _TO_NUMPY.items() if dtype.kind == "V"}


def code_for(dtype: np.dtype[Any], declared: Code | None) -> Code | None:
    """Returns the code of an array's elements, None if there is none. Bits of a declared dtype that NumPy lacks count as
    that dtype."""
    if declared is not None and declared in _TO_NUMPY and (declared.code, declared.bits) in _OTHERS:
        if dtype == _TO_NUMPY[declared] or dtype == _OTHERS[declared][1]:
            return declared
    if dtype.kind == "V":
        return _FROM_EXTRA.get(dtype)
    kind = _KINDS.get(dtype.kind)
    return None if kind is None else Code(kind, dtype.itemsize * 8)


def check_packed(array: np.ndarray[Any, Any], code: Code) -> None:
    """Raises TypeError for a number that is not a value of a packed dtype."""
    if array.dtype.kind == "V":  # of ml_dtypes
        return
    least, most = code.range if code.code in (INT, UINT) else (0, (1 << code.bits) - 1)
    flat = array.reshape(-1)
    wrong = np.flatnonzero((flat < least) | (flat > most))
    if wrong.size:
        raise TypeError(f"element {wrong[0]} is {flat[wrong[0]]}, which is not a value of {code.name}: expected {least} to "
                        f"{most}")


def packed(array: np.ndarray[Any, Any], code: Code) -> np.ndarray[Any, Any]:
    """Returns bytes of several elements each, the first in the lowest bits. Raises TypeError for another number."""
    check_packed(array, code)
    bits = code.bits
    per_byte = 8 // bits
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    flat = np.append(flat, np.zeros(-flat.size % per_byte, np.uint8)).reshape(-1, per_byte)
    result: np.ndarray[Any, Any] = np.bitwise_or.reduce(flat << (np.arange(per_byte, dtype=np.uint8) * bits), axis=1,
                                                              dtype=np.uint8)
    return result


def unpacked(data: np.ndarray[Any, Any], shape: tuple[int, ...], code: Code) -> np.ndarray[Any, Any]:
    """Returns the elements of such bytes, one to a byte."""
    shifts = np.arange(8 // code.bits, dtype=np.uint8) * code.bits
    flat = ((data[:, None] >> shifts) & ((1 << code.bits) - 1)).astype(np.uint8).reshape(-1)
    if code.code == INT:
        sign = np.uint8(1 << (code.bits - 1))
        flat = (flat ^ sign) - sign  # extends the sign bit; wraps
    result: np.ndarray[Any, Any] = flat[:element_count(shape)].reshape(shape).view(code.numpy)
    return result


def element_count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def packed_bytes(shape: tuple[int, ...], bits: int) -> int:
    """Returns the bytes of a tensor of packed elements."""
    return -(-element_count(shape) * bits // 8)
