"""Row sums on the GPU by one thread, lanes of a warp or a block per row, and the timing of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral

from prplugin.errors import InvalidOptionError
from prplugin.gpu import cupy, runtime
from prplugin.methods.base import Array, Floats
from prplugin.methods.engines import gpu_pull
from prplugin.numerics import compensated_depth
from prplugin.options import validate_int

LANES = (4, 8, 16, 32)  # valid numbers of threads per row for `warp`
THREADS = 256  # per block by default
LIMIT = 0.1  # total seconds after which `best_seconds` does not repeat the work


def check_launch(method: str, threads: int, lanes: int | None, blocks: int | None) -> None:
    """Raise InvalidOptionError for an invalid launch configuration of a method's kernel."""
    validate_int("threads", threads, multiple_of=1 if method == "node" else 32, at_most=1024)
    if blocks is not None:
        validate_int("blocks", blocks, at_most=runtime.MOST_BLOCKS)
    if not (isinstance(lanes, Integral) and lanes in LANES if method == "warp" else lanes is None):
        raise InvalidOptionError(
            f"lanes must be one of {', '.join(map(str, LANES))} for 'warp', and None otherwise, not {lanes!r}."
        )


class RowsPull:
    """Sums the runs `first` to `last` - 1 of a layout in one launch, by default all.

    `method` ({"node", "warp", "block"}): The kernel.
    `threads`, `lanes`: Threads per block, 256 by default, and, only for "warp", per run.
    `short`: Whether no thread has more than a few edges of a run; "node" and "warp" then use fewer registers.
    `blocks`: Blocks of the grid, by default as many as give each run its threads. The sums are the same for any number.
    """

    def __init__(
        self, layout: gpu_pull.Layout, method: str, *, threads: int | None = None, lanes: int | None = None,
        blocks: int | None = None, first: int = 0, last: int | None = None, short: bool = False,
    ) -> None:  # fmt: skip
        threads = THREADS if threads is None else threads
        check_launch(method, threads, lanes, blocks)
        self._kernel = f"papers/{method}.cu", f"{method}_pull"
        self._macros = ({} if lanes is None else {"LANES": int(lanes)}) | ({"SHORT": 1} if short else {})
        self._layout = layout
        self._first, self._last = first, layout.begins.size if last is None else last
        self.rounding_depth = compensated_depth(layout.sources.size)
        self.threads = int(threads)
        per_run = {"node": 1, "warp": self._macros.get("LANES", 1), "block": self.threads}[method]
        needed = runtime.blocks_for((self._last - first) * per_run, self.threads)
        self.blocks = needed if blocks is None else int(blocks)

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
