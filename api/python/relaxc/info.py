"""What a model declares of its inputs and outputs."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from . import _library
from ._dtypes import Code, code_of
from ._library import text

Dim = Union[int, str]
_KINDS = {_library.NONE: "none", _library.TENSOR: "tensor", _library.SHAPE: "shape", _library.INT: "int",
          _library.DOUBLE: "double", _library.STRING: "string", _library.TUPLE: "tuple",
          _library.SEQUENCE: "sequence", _library.MAP: "map"}


@dataclass(frozen=True)
class ValueInfo:
    """One input or output."""

    name: str
    type: str
    """The whole type as text, such as "float32[batch, 3, 224, 224]"."""
    kind: str
    """"tensor", "shape", "int", "double", "string", "tuple", "sequence" or "map"; "none": any."""
    dtype: np.dtype[Any] | None
    """The dtype of its NumPy arrays; None where it is any or the value is not a tensor."""
    dtype_name: str
    """The dtype as relaxc names it: "float32", "bfloat16", "int4", "string"; "" where it is any."""
    shape: tuple[Dim, ...] | None
    """The dims: int, or str for a symbolic one ("batch", "4 * n"); None where the rank is any."""
    optional: bool
    """Whether the value may be None."""
    ranges: tuple[tuple[int, int | None], ...] | None
    """The sizes that each dim may have, both ends included; None for the second: any."""
    fields: tuple[ValueInfo, ...]
    """Of a tuple; the item of a sequence; key and value of a map."""
    code: Code | None
    is_cache: bool = False
    """Whether a run extends it in place, and so writes to the array that is given."""

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"

    @property
    def is_array(self) -> bool:
        """Whether it is a tensor of numbers in any case, so that runs need no other values."""
        return self.kind == "tensor" and not self.optional and self.code is not None and not self.code.is_string


@dataclass(frozen=True)
class CacheInfo:
    """A cache of a decoder that runs extend in place: a run writes to the memory of an input, and gives that memory back
    as an output."""

    input: str
    output: str
    length: str | None
    """The input that says how many tokens are in the cache; None: other inputs of the model say where it writes."""
    axis: int
    """The axis of the tokens, whose dim is the room for them."""


def _range_of(dim: _library.Dim) -> tuple[int, int | None]:
    if dim.value >= 0:
        return dim.value, dim.value
    return dim.least, None if dim.most == _library.ANY_SIZE else dim.most


def info_of(row: _library.ValueInfo) -> ValueInfo:
    kind = _KINDS.get(row.kind, "none")
    code = code_of(row.dtype) if row.has_dtype and kind == "tensor" else None
    shape: tuple[Dim, ...] | None = None
    if row.rank >= 0 and kind in ("tensor", "shape"):
        shape = tuple(dim.value if dim.value >= 0 else text(dim.text) for dim in row.dims[:row.rank])
    ranges: tuple[tuple[int, int | None], ...] | None = None
    if shape is not None:
        ranges = tuple(_range_of(dim) for dim in row.dims[:row.rank])
    fields = tuple(info_of(field) for field in row.fields[:row.num_fields]) if row.num_fields else ()
    return ValueInfo(text(row.name), text(row.type), kind, code.numpy if code is not None else None,
                     text(row.dtype_name), shape, bool(row.optional), ranges, fields, code)
