"""Schedules of the segmented method: where rows are cut, what runs each segment, and how a schedule is kept."""

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
    """What runs one segment.

    `method` ({"node", "warp", "block", "host"}): A thread, lanes of a warp or a block of the GPU per row; or threads of
    the host.
    `threads`: Per block; of the host, all that share its segments.
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
        if self.method != "host":
            check_launch(self.method, self.threads, self.lanes, self.blocks)
        elif validate_int("threads", self.threads) and (self.lanes is not None or self.blocks is not None):
            raise InvalidOptionError("a segment of the host has neither lanes nor blocks.")
        _check_ms("ms", self.ms)

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
        validate_int("n", self.n, least=0)
        validate_int("m", self.m, least=0)
        _check_ms("copy_ms", self.copy_ms)
        if not isinstance(self.device, str):
            raise InvalidOptionError(f"device must be a string, not {self.device!r}.")

    @property
    def host_segments(self) -> list[int]:
        """The segments that run on the host."""
        return [k for k, segment in enumerate(self.segments) if segment.method == "host"]

    def __str__(self) -> str:
        """Print it as the paper does: a line a segment, and the time of each device, which work at once."""
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
        """Write it as JSON; raise InvalidOptionError if nothing can be written there."""
        try:
            text = json.dumps(asdict(self), indent=1, default=int)  # NumPy's integers
            Path(path).write_text(text + "\n", encoding="utf-8")
        except (OSError, TypeError) as error:
            raise InvalidOptionError(f"the schedule cannot be saved to {path!r}: {error}") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schedule:
        """Read what `save` wrote; raise InvalidOptionError if there is no such file, or no schedule in it."""
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


def _check_ms(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise InvalidOptionError(f"{name} must be a number of at least 0, not {value!r}.")


def cut(offsets: Integers, segments: int) -> list[int]:
    """Return where each of at most so many segments of about equally many edges begins, and n.

    Every segment gets its part of the edges that are left, so that a hub of more than a segment's share does not leave
    others empty. Each has a row with edges, as far as there are as many; rows without come last in falling order, and
    are all in the last segment.
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
    """Return the first row before which there are so many edges."""
    xp = namespace(offsets)
    return int(xp.searchsorted(offsets, xp.asarray([edges]))[0])


def for_the_host(gpu_ms: list[float], host_ms: list[float], copy_ms: float) -> list[int]:
    """Return the segments that the host takes, by what each takes on either side and what the host's first copy takes.

    Greedy: the segments at which the host is least behind the GPU come first, and each is taken over if that lowers
    max(GPU, copy + host).
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
