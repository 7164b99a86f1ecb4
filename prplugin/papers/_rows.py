"""Row sums on the GPU by one thread, lanes of a warp or a block per row, and the timing of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

from prplugin.errors import InvalidOptionError
from prplugin.gpu import cupy, runtime
from prplugin.methods.base import Array, Floats
from prplugin.methods.engines import gpu_pull
from prplugin.numerics import compensated_depth
from prplugin.options import validate_int

LANES = (4, 8, 16, 32)  # valid numbers of threads per row for `warp`
LIMIT = 0.1  # total seconds after which `best_seconds` does not repeat the work


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Launch configuration of some rows: a thread, lanes of a warp or a block of the GPU per row, or host threads."""

    method: str  # "node", "warp", "block" or "host"
    threads: int  # per block; for "host", those that share all its segments
    lanes: int | None = None  # threads per row, only for "warp"
    blocks: int | None = None  # of the grid; None: as many as give each row its threads
    ms: float = 0.0  # measured time; for "host" with the copy of the sums to the GPU

    def __post_init__(self) -> None:
        if self.method not in ("node", "warp", "block", "host"):
            raise InvalidOptionError(f"the method of a segment must be node, warp, block or host, not {self.method!r}.")
        check_ms("ms", self.ms)
        if self.method == "host":
            validate_int("threads", self.threads)
            if self.lanes is not None or self.blocks is not None:
                raise InvalidOptionError("a segment of the host has neither lanes nor blocks.")
            return
        validate_int("threads", self.threads, multiple_of=1 if self.method == "node" else 32, at_most=1024)
        if self.blocks is not None:
            validate_int("blocks", self.blocks, at_most=runtime.MOST_BLOCKS)
        is_lanes = isinstance(self.lanes, Integral) and self.lanes in LANES
        if not (is_lanes if self.method == "warp" else self.lanes is None):
            raise InvalidOptionError(
                f"lanes must be one of {', '.join(map(str, LANES))} for 'warp', and None otherwise, not {self.lanes!r}."
            )

    @property
    def threads_per_row(self) -> int:
        """Number of threads per row."""
        return {"warp": self.lanes or 1, "block": self.threads}.get(self.method, 1)


def check_ms(name: str, value: object) -> None:
    """Raise InvalidOptionError unless a value is a number of milliseconds."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise InvalidOptionError(f"{name} must be a number of at least 0, not {value!r}.")


class RowsPull:
    """Sums the runs ``span[0]`` to ``span[1] - 1`` of a layout in one launch on the GPU, by default all.

    The sums are the same for any number of blocks.
    """

    def __init__(self, layout: gpu_pull.Layout, segment: Segment, span: tuple[int, int] | None = None) -> None:
        self._kernel = f"papers/{segment.method}.cu", f"{segment.method}_pull"
        self._macros = {} if segment.lanes is None else {"LANES": int(segment.lanes)}
        self._layout = layout
        self._first, self._last = span or (0, layout.begins.size)
        self.rounding_depth = compensated_depth(layout.sources.size)
        self.threads = int(segment.threads)
        needed = runtime.blocks_for((self._last - self._first) * int(segment.threads_per_row), self.threads)
        self.blocks = needed if segment.blocks is None else int(segment.blocks)

    def __call__(self, contributions: Floats, row_sums: Array) -> None:
        if self._first == self._last:
            return
        layout = self._layout
        runtime.run(
            *self._kernel, self.blocks, self.threads, self._first, self._last, layout.rows, layout.begins, layout.ends,
            layout.sources, layout.normalized_weights.of(contributions.dtype), contributions, row_sums,
            **gpu_pull.pull_types(layout, contributions.dtype), **self._macros,
        )  # fmt: skip


def best_seconds(
    work: Callable[[], object], times: int = 3, of: Callable[[list[float]], float] = min, *, gpu: bool = True
) -> float:
    """Return the least, or another statistic, of the seconds of several runs on GPU or host after a warm-up run."""
    wait = cupy.cuda.get_current_stream().synchronize if gpu else lambda: None

    def run() -> float:
        began = time.perf_counter()
        work()
        wait()
        return time.perf_counter() - began

    run()
    taken = [run()]
    while len(taken) < times and sum(taken) < LIMIT:
        taken.append(run())
    return of(taken)
