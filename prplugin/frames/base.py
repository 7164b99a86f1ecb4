"""Protocol of the frame adapters, and functions on objects of libraries that may not be loaded."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any, Protocol

from prplugin.frames.columns import Columns
from prplugin.frames.vertices import Vertices
from prplugin.types.arrays import MemorySpace, to_host
from prplugin.types.edges import Edges, GroupedEdges


class FrameAdapter(Protocol):
    """Reads edges from the frames of one library; implemented by a module or an object.

    It imports the library only in `open_frame` and `read`. `Any` stands for types of the library.
    """

    def accepts(self, frame: Any, /) -> bool:
        """Return whether this adapter reads an object."""

    def memory_space_of(self, frame: Any, /) -> MemorySpace:
        """Return the memory space of the edges that `read` returns."""

    def open_frame(self, frame: Any, /) -> tuple[Any, list[Hashable]]:
        """Return the frame in the form that `read` takes, and its column labels."""

    def read(
        self, frame: Any, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True
    ) -> tuple[Edges | GroupedEdges, Vertices]:
        """Factorize the endpoints; return the edges by position, and the vertices in the order of the result.

        Integer ids are in ascending order. Other ids are in the order of first appearance: row by row, source before
        destination, then `vertices`.

        `vertices`: Additional vertices, or None.
        `edge_list`: Whether `Edges` in the order of the rows are required instead of `GroupedEdges`.
        `lasting`: Whether the edges outlive the frame. If not, they may alias its columns.

        Raises InvalidEdgesError: if ids are null, floating-point or of mixed kinds, or weights are not finite and
        non-negative.
        """


def is_a(value: object, module: str, name: str) -> bool:
    """Return whether a value is an instance of a class of a module, without importing the module."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def on_host(given: Any) -> Any:
    """Convert cuDF objects to pandas and CuPy arrays to NumPy; return other objects unchanged."""
    return given.to_pandas() if type(given).__module__.partition(".")[0] == "cudf" else to_host(given)
