"""Schedules of `segmented`: a launch configuration for each segment, as JSON files have them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from prplugin.errors import InvalidOptionError, listed
from prplugin.options import validate_int
from prplugin.papers._rows import check_launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Launch configuration of one segment: a thread, lanes of a warp or a block of the GPU per row, or host threads."""

    method: str  # "node", "warp", "block" or "host"
    threads: int  # per block; for "host", those that share all its segments
    lanes: int | None = None  # threads per row, only for "warp"
    blocks: int | None = None  # of the grid; None: as many as give each row its threads
    ms: float = 0.0  # measured time; for "host" with the copy of the sums to the GPU

    def __post_init__(self) -> None:
        if self.method not in ("node", "warp", "block", "host"):
            raise InvalidOptionError(f"the method of a segment must be node, warp, block or host, not {self.method!r}.")
        if self.method != "host":
            check_launch(self.method, self.threads, self.lanes, self.blocks)
        elif validate_int("threads", self.threads) and (self.lanes is not None or self.blocks is not None):
            raise InvalidOptionError("a segment of the host has neither lanes nor blocks.")
        _check_ms("ms", self.ms)

    @property
    def threads_per_row(self) -> int:
        """Number of threads per row."""
        return {"warp": self.lanes or 1, "block": self.threads}.get(self.method, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Launch configurations of the segments of a graph with n vertices and m edges."""

    n: int
    m: int
    segments: tuple[Segment, ...]  # by descending in-degree
    device: str = "GPU"  # name of the GPU on which it was measured
    copy_ms: float = 0.0  # measured time of the copy of contributions to the host, once per iteration

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
