"""Schedules of the segmented method: where rows are cut, what runs each segment, and how a schedule is kept."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

from prplugin.errors import InvalidOptionError, listed
from prplugin.methods.engines.gpu_pull import MOST_BLOCKS
from prplugin.methods.papers.warp import LANES
from prplugin.options import whole
from prplugin.types.arrays import namespace
from prplugin.types.edges import Integers

__all__ = ["Schedule", "Segment", "cut", "for_the_host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """What runs one segment.

    `method` ({"node", "warp", "block", "host"}): A thread, lanes of a warp or a block of the GPU a row; or threads of
    the host.
    `threads`: Threads of a block; of the host, all that share its segments.
    `lanes`: Of a warp, for "warp" alone.
    `blocks`: Of the grid; as many as give each row its threads if not given.
    `ms` (float, default 0): What it took when it was measured; of the host with its sums' way up.
    """

    method: str
    threads: int
    lanes: int | None = None
    blocks: int | None = None
    ms: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in ("node", "warp", "block", "host"):
            raise InvalidOptionError(f"the method of a segment must be node, warp, block or host, not {self.method!r}.")
        if self.method == "host":
            whole("threads", self.threads)
        else:
            whole("threads", self.threads, multiple_of=1 if self.method == "node" else 32, at_most=1024)
        if self.blocks is not None:
            whole("blocks", self.blocks, at_most=MOST_BLOCKS)
        if self.method == "warp":
            lanes_fit = isinstance(self.lanes, Integral) and self.lanes in LANES
        else:
            lanes_fit = self.lanes is None
        if not lanes_fit:
            raise InvalidOptionError(
                f"lanes must be one of {', '.join(map(str, LANES))} for warp and not given else, not {self.lanes!r}."
            )
        if not _is_duration(self.ms):
            raise InvalidOptionError(f"ms must be a number of at least 0, not {self.ms!r}.")

    @property
    def threads_a_row(self) -> int:
        """How many threads share a row."""
        return {"warp": self.lanes or 1, "block": self.threads}.get(self.method, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What runs each segment of a graph.

    `n`, `m`: Vertices and edges of the graph.
    `segments` (tuple of Segment): In falling order of in-degree.
    `device`: The GPU on which it was measured.
    `copy_ms` (float, default 0): What the contributions' way down to the host took, once an iteration where the host
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
        for what, value in (("n", self.n), ("m", self.m)):
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
                raise InvalidOptionError(f"{what} must be a whole number of at least 0, not {value!r}.")
        if not _is_duration(self.copy_ms):
            raise InvalidOptionError(f"copy_ms must be a number of at least 0, not {self.copy_ms!r}.")
        if not isinstance(self.device, str):
            raise InvalidOptionError(f"device must be a string, not {self.device!r}.")

    @property
    def host_segments(self) -> list[int]:
        """The segments that run on the host."""
        return [k for k, segment in enumerate(self.segments) if segment.method == "host"]

    @property
    def gpu_ms(self) -> float:
        """What the GPU takes for its segments, one after the other."""
        return sum(segment.ms for segment in self.segments if segment.method != "host")

    @property
    def host_ms(self) -> float:
        """What the host takes for its segments and for the copies; 0 if it has none."""
        if not self.host_segments:
            return 0.0
        return self.copy_ms + sum(self.segments[k].ms for k in self.host_segments)

    def __str__(self) -> str:
        """Print it as the paper does: a line a segment, and the time of each device, which work at once."""
        lines = ["segment  method   blocks  threads         ms"]
        for k, segment in enumerate(self.segments):
            method = segment.method if segment.lanes is None else f"{segment.method}/{segment.lanes}"
            blocks = "-" if segment.blocks is None else segment.blocks
            lines.append(f"{k:7}  {method:7} {blocks:>7}  {segment.threads:7}  {segment.ms:9.4f}")
        lines.append(f"{self.device} [{self.gpu_ms:.4f} ms]")
        if self.host_segments:
            lines.append(f"host [{self.host_ms:.4f} ms, of which {self.copy_ms:.4f} ms copy the contributions]")
        lines.append(f"longest device time {max(self.gpu_ms, self.host_ms):.4f} ms")
        return "\n".join(lines)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as JSON.

        Raises InvalidOptionError: if nothing can be written there.
        """
        try:
            text = json.dumps(asdict(self), indent=1, default=int)  # NumPy's integers
            Path(path).write_text(text + "\n", encoding="utf-8")
        except (OSError, TypeError) as error:
            raise InvalidOptionError(f"the schedule cannot be saved to {path!r}: {error}") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schedule:
        """Read what `save` wrote.

        Raises InvalidOptionError: if there is no such file, or no schedule in it.
        """
        try:
            fields: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
            segments = tuple(Segment(**segment) for segment in fields.pop("segments"))
            return cls(**fields, segments=segments)
        except OSError as error:
            raise InvalidOptionError(f"the schedule {str(path)!r} cannot be read: {error}") from error
        except KeyError as error:
            raise InvalidOptionError(f"{str(path)!r} holds no schedule: it has no {error}.") from error
        except (AttributeError, TypeError, ValueError) as error:  # of JSON, of a field's type, of its value
            raise InvalidOptionError(f"{str(path)!r} holds no schedule: {error}") from error

    def check(self, n: int, m: int, segments: int, *, cpu: bool) -> None:
        """Raise InvalidOptionError unless it fits a graph of that size, cut into so many segments."""
        ours = (("vertices", self.n, n), ("edges", self.m, m), ("segments", len(self.segments), segments))
        if differ := [f"{there:,} {what}, not {here:,}" for what, there, here in ours if there != here]:
            raise InvalidOptionError(
                f"the schedule is of another graph or another number of segments: it has {' and '.join(differ)}."
            )
        if self.host_segments and not cpu:
            raise InvalidOptionError(
                f"the schedule has segments for the host ({listed(self.host_segments)}): give cpu=True, "
                "or have it measured anew without."
            )


def _is_duration(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def cut(offsets: Integers, segments: int) -> list[int]:
    """Cut rows into consecutive segments of about as many edges each.

    Every segment gets its part of the edges that are left, so that a hub of more than a segment's share does not leave
    others empty. Each has a row with edges, as far as there are as many; rows without are all in the last, which is
    where falling order puts them.

    `offsets` (array of n + 1): Where each row's edges begin, and where the last one's end; rows with edges come first.
    `segments`: How many, at most.

    Returns `list of int`: Where each segment begins, and n.
    """
    n, m = offsets.size - 1, int(offsets[-1])
    filled = _reached(offsets, m)  # rows that have edges
    bounds = [0]
    for left in range(min(segments, filled), 1, -1):
        first = bounds[-1]
        done = int(offsets[first])
        last = _reached(offsets, done + -(-(m - done) // left))
        bounds.append(min(max(last, first + 1), filled - (left - 1)))
    return [*bounds, n]


def _reached(offsets: Integers, edges: int) -> int:
    """Give the first row before which there are so many edges."""
    xp = namespace(offsets)
    return int(xp.searchsorted(offsets, xp.asarray([edges]))[0])


def for_the_host(gpu_ms: list[float], host_ms: list[float], copy_ms: float) -> list[int]:
    """Choose the segments that the host takes, so that the longer of the two times becomes less.

    Greedy: the segments at which the host is least behind the GPU come first, and each is taken over if that lowers
    max(GPU, copy + host).

    `gpu_ms`, `host_ms` (lists of float): What each segment takes on each side.
    `copy_ms`: What the host needs once, for the first segment.
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
