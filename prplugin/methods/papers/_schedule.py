"""Schedules of the segmented method: boundaries of segments, the kernel of each, and JSON files."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from prplugin.errors import InvalidOptionError, listed
from prplugin.methods.papers._rows import check_launch
from prplugin.options import validate_int
from prplugin.types.arrays import namespace
from prplugin.types.edges import Integers

__all__ = ["Schedule", "Segment", "cut", "for_the_host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Launch configuration of one segment.

    `method` ({"node", "warp", "block", "host"}): One thread, lanes of a warp or a block of the GPU per row; or host
    threads.
    `threads`: Threads per block; for "host", the threads that share all its segments.
    `lanes`: Threads per row, only for "warp".
    `blocks`: Blocks of the grid; as many as give each row its threads if not given.
    `ms` (float, default 0): Measured time; for "host" with the copy of the sums to the GPU.
    """

    method: str
    threads: int
    lanes: int | None = None
    blocks: int | None = None
    ms: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in ("node", "warp", "block", "host"):
            raise InvalidOptionError(f"the method of a segment must be node, warp, block or host, not {self.method!r}.")
        if self.method != "host":
            check_launch(self.method, self.threads, self.lanes, self.blocks)
        elif validate_int("threads", self.threads) and (self.lanes is not None or self.blocks is not None):
            raise InvalidOptionError("a segment of the host has neither lanes nor blocks.")
        _check_ms("ms", self.ms)

    @property
    def threads_a_row(self) -> int:
        """Number of threads per row."""
        return {"warp": self.lanes or 1, "block": self.threads}.get(self.method, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Launch configurations of the segments of a graph.

    `n`, `m`: Vertices and edges of the graph.
    `segments` (tuple of Segment): By descending in-degree.
    `device`: Name of the GPU on which it was measured.
    `copy_ms` (float, default 0): Measured time of the copy of contributions to the host, once per iteration if the host
    has segments.
    """

    n: int
    m: int
    segments: tuple[Segment, ...]
    device: str = "GPU"
    copy_ms: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.segments, tuple) or not all(isinstance(segment, Segment) for segment in self.segments):
            raise InvalidOptionError(f"segments must be a tuple of Segment, not {self.segments!r}.")
        validate_int("n", self.n, least=0)
        validate_int("m", self.m, least=0)
        _check_ms("copy_ms", self.copy_ms)
        if not isinstance(self.device, str):
            raise InvalidOptionError(f"device must be a string, not {self.device!r}.")

    @property
    def host_segments(self) -> list[int]:
        """Indices of the segments that run on the host."""
        return [k for k, segment in enumerate(self.segments) if segment.method == "host"]

    def __str__(self) -> str:
        """Format as in the paper: one line per segment, and the time of each device; devices work concurrently."""
        lines = ["segment  method   blocks  threads         ms"]
        for k, segment in enumerate(self.segments):
            method = segment.method if segment.lanes is None else f"{segment.method}/{segment.lanes}"
            blocks = "-" if segment.blocks is None else segment.blocks
            lines.append(f"{k:7}  {method:7} {blocks:>7}  {segment.threads:7}  {segment.ms:9.4f}")
        gpu = sum(segment.ms for segment in self.segments if segment.method != "host")
        host = self.copy_ms + sum(segment.ms for segment in self.segments if segment.method == "host")
        lines.append(f"{self.device} [{gpu:.4f} ms]")
        if self.host_segments:
            lines.append(f"host [{host:.4f} ms, of which {self.copy_ms:.4f} ms copy the contributions]")
        lines.append(f"longest device time {max(gpu, host if self.host_segments else 0.0):.4f} ms")
        return "\n".join(lines)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schedule as JSON; raise InvalidOptionError if that fails."""
        try:
            text = json.dumps(asdict(self), indent=1, default=int)  # NumPy's integers
            Path(path).write_text(text + "\n", encoding="utf-8")
        except (OSError, TypeError) as error:
            raise InvalidOptionError(f"the schedule cannot be saved to {path!r}: {error}") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schedule:
        """Read a schedule that `save` wrote; raise InvalidOptionError if the file is missing or invalid."""
        try:
            fields: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
            segments = tuple(Segment(**segment) for segment in fields.pop("segments"))
            return cls(**fields, segments=segments)
        except OSError as error:
            raise InvalidOptionError(f"the schedule {str(path)!r} cannot be read: {error}") from error
        except KeyError as error:
            raise InvalidOptionError(f"{str(path)!r} holds no schedule: it has no {error}.") from error
        except (AttributeError, TypeError, ValueError) as error:  # invalid JSON, or a field of the wrong type or value
            raise InvalidOptionError(f"{str(path)!r} holds no schedule: {error}") from error

    def check(self, n: int, m: int, segments: int, *, cpu: bool) -> None:
        """Raise InvalidOptionError unless the schedule has n vertices, m edges and `segments` segments."""
        ours = (("vertices", self.n, n), ("edges", self.m, m), ("segments", len(self.segments), segments))
        if differ := [f"{there:,} {what}, not {here:,}" for what, there, here in ours if there != here]:
            raise InvalidOptionError(
                f"the schedule is of another graph or another number of segments: it has {' and '.join(differ)}."
            )
        if self.host_segments and not cpu:
            raise InvalidOptionError(
                f"the schedule has segments for the host ({listed(self.host_segments)}): give cpu=True, "
                "or measure a new schedule without it."
            )


def _check_ms(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise InvalidOptionError(f"{name} must be a number of at least 0, not {value!r}.")


def cut(offsets: Integers, segments: int) -> list[int]:
    """Return the boundaries, n included, of at most `segments` segments of about equally many edges.

    Every segment gets an equal part of the edges that are left, so that a hub larger than a segment does not leave
    others empty. Each segment has a row with edges if there are enough such rows. Rows without edges come last, and are
    all in the last segment.
    """
    n, m = offsets.size - 1, int(offsets[-1])
    filled = _reached(offsets, m)  # rows with edges
    bounds = [0]
    for left in range(min(segments, filled), 1, -1):
        first = bounds[-1]
        done = int(offsets[first])
        last = _reached(offsets, done + -(-(m - done) // left))
        bounds.append(min(max(last, first + 1), filled - (left - 1)))
    return [*bounds, n]


def _reached(offsets: Integers, edges: int) -> int:
    """Return the first row that `edges` edges precede."""
    xp = namespace(offsets)
    return int(xp.searchsorted(offsets, xp.asarray([edges]))[0])


def for_the_host(gpu_ms: list[float], host_ms: list[float], copy_ms: float) -> list[int]:
    """Return the segments that run on the host, given the time of each on GPU and host, and that of the copy.

    Greedy: segments in order of the ratio of host time to GPU time, each moved if that lowers max(GPU, copy + host).
    """
    chosen: list[int] = []
    gpu, host = sum(gpu_ms), copy_ms
    longest = gpu
    for k in sorted(range(len(gpu_ms)), key=lambda k: host_ms[k] / max(gpu_ms[k], 1e-9)):
        then = max(gpu - gpu_ms[k], host + host_ms[k])
        if then < longest:
            gpu, host, longest = gpu - gpu_ms[k], host + host_ms[k], then
            chosen.append(k)
    return sorted(chosen)
