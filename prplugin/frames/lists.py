"""Adapter of lists of frames of one library, which are read as one frame, or one at a time if that is too large."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any, TypeAlias

from prplugin.errors import InvalidEdgesError, full_name, rows_of_frame
from prplugin.frames import cudf, narwhals, pandas
from prplugin.frames.columns import Columns, Frame
from prplugin.frames.vertices import ids_in
from prplugin.options import EdgeOptions
from prplugin.types.arrays import MemorySpace, is_a

Frames: TypeAlias = Any  # an iterable of frames


def _adapter_of(given: object) -> Any:
    """Return the adapter of a frame, None for other objects; also of plain frames while cudf.pandas is in use."""
    for adapter, library in ((cudf, "cudf"), (pandas, "pandas")):
        if is_a(given, library, "DataFrame"):
            return adapter
    return narwhals if narwhals.accepts(given) else None


class _Frames:
    """Adapter of lists of frames, and of other objects that yield the same frames whenever they are iterated."""

    def accepts(self, frame: object) -> bool:
        if not isinstance(frame, Iterable) or isinstance(frame, Iterator):
            return False
        some = frame if isinstance(frame, (list, tuple)) else [*islice(frame, 1)]
        return bool(some) and all(map(_adapter_of, some))

    def memory_space_of(self, frame: Frames) -> MemorySpace:
        return "device" if _adapter_of(next(iter(frame))) is cudf else "host"

    def open_frame(self, frame: Frames) -> tuple[Any, list[Hashable]]:
        first = next(iter(frame))
        if _adapter_of(first) is not narwhals:
            return frame, list(first)
        import narwhals as nw  # imported by `accepts`

        try:
            whole = nw.concat([nw.from_native(one) for one in frame]).to_native()
        except Exception as error:  # each library has its own
            raise InvalidEdgesError(f"the frames cannot be joined: {error}. Give them one schema.") from error
        return [whole], narwhals.open_frame(whole)[1]

    def read(self, frame: Frames, columns: Columns, how: EdgeOptions, **options: bool) -> Any:
        from prplugin.frames import parts, pieces  # imports pandas, which every library needs

        first = next(iter(frame))
        adapter = _adapter_of(first)
        if adapter is narwhals:
            return narwhals.read(narwhals.open_frame(first)[0], columns, how, **options)
        if adapter is cudf and options["edge_list"] == how.edge_list:  # those of an update are not packed
            rows = sum(map(len, _of_one_library(frame, cudf)))
            if not pieces.fit_at_once(rows, weighted=columns.weight is not None):
                return pieces.read(lambda: frame, columns, rows, how)
        frames = list(_of_one_library(frame, adapter))
        if len(frames) == 1:
            return adapter.read(first, columns, how, **options)
        ids, lengths = ids_in(adapter.memory_space_of(first)), list(map(len, frames))
        frames, kept = parts.complete_parts(ids, frames, columns)
        with nullcontext() if kept is None else rows_of_frame(parts.in_whole(kept, lengths)):
            first, columns = parts.joined(ids, frames, columns)
            return adapter.read(first, columns, how, **options)


def _of_one_library(frames: Frames, adapter: object) -> Iterator[Frame]:
    for number, frame in enumerate(frames):
        if _adapter_of(frame) is not adapter:
            raise InvalidEdgesError(
                f"frame {number} is of {full_name(frame)}, and frames before it of another library: convert it."
            )
        yield frame


FRAMES = _Frames()  # the adapter of lists of frames
