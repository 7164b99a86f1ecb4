"""Structs of kernel arguments, passed by value: declared here in Python, and compared with the .cu files by a test.

A kernel of many arguments takes them as a few structs. Their bytes are written once, and single members afterwards;
CuPy copies them at each launch.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from prplugin.gpu import cupy
from prplugin.gpu.runtime import CTYPES, Macro
from prplugin.types.edges import Floats

FORMATS = {"i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f8": "d"}  # of the module `struct`


class Argument(Protocol):
    """A struct as an argument of a kernel."""

    values: dict[str, Any]

    def set(self, **numbers: int | float) -> None:
        """Replace members that are no pointers."""


class Struct:
    """Declares a struct of a .cu or .cuh file.

    Parameters
    ----------
    path : str
        File, relative to the folder of the package.
    name : str
        Name of the struct.
    members : str
        Name and type of each member, as in "n:i8 offsets:offset_t*": a type of NumPy, or a macro or struct of the file.
    """

    def __init__(self, path: str, name: str, members: str) -> None:
        self.path, self.name = path, name
        self.kinds: dict[str, str] = dict(member.split(":") for member in members.split())
        self.formats = {name: "P" if kind.endswith("*") else FORMATS[kind] for name, kind in self.kinds.items()}
        self.packer = struct.Struct("".join(self.formats.values()))  # aligns as C++ does
        sizes = {name: struct.calcsize(text) for name, text in self.formats.items()}
        self.alignment = max(sizes.values())
        self.size = -(-self.packer.size // self.alignment) * self.alignment
        texts = accumulate(self.formats.values())
        self.offsets = {
            name: struct.calcsize(text) - size for (name, size), text in zip(sizes.items(), texts, strict=True)
        }
        self._names = tuple(self.kinds)
        self._buffer = ctypes.c_char * self.size
        self._pointers = [  # place, name and element type of each
            (place, name, np.dtype(kind[:-1]) if kind[:-1] in CTYPES else kind[:-1])
            for place, (name, kind) in enumerate(self.kinds.items())
            if kind.endswith("*")
        ]

    def __call__(self, types: Mapping[str, Macro], **values: Any) -> Argument:
        """Return a kernel argument: all members by name, in order, given the types that macros of the kernel stand for.

        The type of an array is checked; there may be a `cupy.cuda.MemoryPointer` or None instead.
        """
        if tuple(values) != self._names:
            raise TypeError(f"struct {self.name} has the members {', '.join(self._names)}, not {', '.join(values)}")
        numbers = [*values.values()]
        for place, name, element in self._pointers:
            value = numbers[place]
            if value is None:
                numbers[place] = 0
                continue
            if (dtype := getattr(value, "dtype", None)) is None:
                numbers[place] = value.ptr
                continue
            wanted = types.get(element) if type(element) is str else element
            if wanted is not None and dtype != wanted:
                raise TypeError(f"{self.name}.{name} points to {wanted}, not to {dtype}")
            numbers[place] = value.data.ptr
        buffer = self._buffer()
        self.packer.pack_into(buffer, 0, *numbers)
        argument: Argument = _arguments()(self, buffer, values)
        return argument


@cache
def _arguments() -> Callable[..., Argument]:
    """Return the class of kernel arguments, which derives from one of CuPy."""

    class Arguments(cupy.cuda.function.CPointer):  # type: ignore[misc]
        """The bytes of a struct, which CuPy passes by value, and the arrays to which they point."""

        def __init__(self, declared: Struct, buffer: ctypes.Array[ctypes.c_char], values: dict[str, object]) -> None:
            super().__init__(ctypes.addressof(buffer))
            self.declared, self._buffer, self.values = declared, buffer, values

        def set(self, **numbers: int | float) -> None:
            """Replace members that are no pointers."""
            for name, number in numbers.items():
                struct.pack_into(self.declared.formats[name], self._buffer, self.declared.offsets[name], number)
            self.values.update(numbers)

    return Arguments


class Workspace:
    """Arrays of doubles of the given sizes, by name, in one allocation, which is freed with the last of them.

    They are `cupy.cuda.MemoryPointer` where no array is needed: a slice costs half as much as a kernel launch.
    """

    def __init__(self, **sizes: int) -> None:
        self.nbytes = 8 * sum(sizes.values())
        memory = cupy.cuda.alloc(self.nbytes)
        begins = accumulate(sizes.values(), initial=0)
        self._sizes = sizes
        self._memory = {name: memory + 8 * begin for name, begin in zip(sizes, begins, strict=False)}

    def __getitem__(self, name: str) -> Any:
        return self._memory[name]

    def array(self, name: str) -> Floats:
        """Return an array of float64."""
        found: Floats = cupy.ndarray(self._sizes[name], np.float64, self._memory[name])
        return found


# --- structs of the files in this folder ------------------------------------------------------------------------------

COLUMNS = Struct("gpu/ids.cuh", "Columns", "a:id_t* b:id_t* c:id_t* in_a:i8 in_b:i8 in_c:i8")
STRINGS = Struct("gpu/strings.cu", "Strings", "chars:u1* offsets:offset_t* rows:i8")
DIGITS = Struct("gpu/sort.cu", "Digits", "skipped:i4 bits:i4 passes:i4")
SORTED = Struct(
    "gpu/sort.cu", "Items", "keys:key_t* values:value_t* weights:f8* step:i4 low:u4 value_step:i4 value_low:u4"
)
ORDERS = Struct("gpu/blocks.cu", "Orders", "tile_sources:u2* piece_rows:u2* piece_edges:u4*")
GROUPS = Struct(
    "gpu/blocks.cu", "Groups", "tile_bits:i4 piece_bits:i4 tiles:i4 pieces:i4 tile_begins:u4* piece_begins:u4*"
)

EQUATION = Struct(
    "gpu/equation.cuh", "Equation",
    "alpha:f8 target:f8* target_step:i8 teleport:f8* teleport_step:i8 inverse_out_weight:f8*",
)  # fmt: skip
PIECES = Struct(
    "gpu/merge.cuh", "Pieces", "n:i8 m:i8 size:i8 count:i8 cuts:index_t* offsets:offset_t* fronts:f8* tails:f8*"
)
LAUNCH = Struct(
    "gpu/iterate.cuh", "Launch",
    "count:i4 parts:i4 goal:f8 stall:f8 before:f8 mixing_from:f8 latest:Totals* totals:Totals* partials:Totals* "
    "arrived:u4* ranks:f8* contributions:real_t* following:real_t*",
)  # fmt: skip
STORE = Struct("gpu/mixing.cuh", "Store", "window:i4 period:i4 phase:i4 width:i4 vectors:f4* state:f8*")
SETUP = Struct(
    "gpu/merge_start.cu", "Setup",
    "n:i8 pieces:i8 out_weight:f8* weighted:i4 target:f8 teleport:f8 tails:f8* constants:f8* inverse_out_weight:f8* "
    "arrived:u4* begun:Totals*",
)  # fmt: skip
START = Struct("gpu/merge_start.cu", "Start", "given:f8* uniform:f8 per_edge:f8 in_degrees:u4*")

LAYOUT = Struct(
    "gpu/batch.cu", "Layout",
    "n:i8 m:i8 size:i8 pieces:i8 cuts:index_t* offsets:offset_t* sources:index_t* normalized_weights:real_t*",
)  # fmt: skip
ENTRIES = Struct("gpu/batch.cu", "Entries", "cuts:i8* rows:i8* columns:i8* values:f8*")
VECTORS = Struct("gpu/batch.cu", "Vectors", "ranks:f8* to:real_t* moves:f4* inverse_out_weight:f8* target:f8*")
