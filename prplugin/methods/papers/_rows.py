"""Row sums on the GPU by a thread, lanes of a warp or a block per row: what `node`, `warp` and `block` share."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from prplugin.errors import InvalidOptionError
from prplugin.gpu import runtime
from prplugin.graph.problem import Problem
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.numerics.rounding import compensated_depth
from prplugin.options import validate_int
from prplugin.types.edges import Floats

__all__ = ["LANES", "RowsPull", "check_launch", "step"]

LANES = (4, 8, 16, 32)
"""Threads per row that `warp` may have."""


def step(problem: Problem, method: str, **launch: Any) -> Step:
    """Return a step that sums the in-edges of all vertices by one of the three kernels."""
    layout = gpu_pull.csc_layout(problem.adjacency.on("device"))
    return gpu_pull.DeviceStep(problem, RowsPull(layout, method, **launch))


def check_launch(method: str, threads: int, lanes: int | None, blocks: int | None) -> None:
    """Raise InvalidOptionError unless the kernel of a method can be launched so."""
    validate_int("threads", threads, multiple_of=1 if method == "node" else 32, at_most=1024)
    if blocks is not None:
        validate_int("blocks", blocks, at_most=gpu_pull.MOST_BLOCKS)
    if not (isinstance(lanes, Integral) and lanes in LANES if method == "warp" else lanes is None):
        raise InvalidOptionError(
            f"lanes must be one of {', '.join(map(str, LANES))} for warp and not given else, not {lanes!r}."
        )


class RowsPull:
    """Sums some of the runs of a layout in one launch.

    `method` ({"node", "warp", "block"}): Whose kernel.
    `threads`: Per block.
    `lanes`: Threads per run, for "warp" alone.
    `blocks`: Of the grid, over which the kernels stride: any number gives the same sums. As many as give each run its
    threads if not given.
    `first`, `last`: Which runs; up to the end of the layout where `last` is None.
    """

    def __init__(
        self,
        layout: gpu_pull.Layout,
        method: str,
        *,
        threads: int = 256,
        lanes: int | None = None,
        blocks: int | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        check_launch(method, threads, lanes, blocks)
        self._kernel = f"methods/papers/{method}.cu", f"{method}_pull"
        self._macros = {} if lanes is None else {"LANES": int(lanes)}
        self._layout = layout
        self._first, self._last = first, layout.begins.size if last is None else last
        self.rounding_depth = compensated_depth(layout.sources.size)
        self.threads = int(threads)
        per_run = {"node": 1, "warp": self._macros.get("LANES", 1), "block": self.threads}[method]
        self.blocks = gpu_pull.blocks_option(blocks, (self._last - first) * per_run, self.threads)

    def __call__(self, contributions: Floats, pulled: Any) -> None:
        if self._first == self._last:
            return
        layout = self._layout
        launch = runtime.kernel(*self._kernel, **gpu_pull.pull_types(layout, contributions.dtype), **self._macros)
        launch(
            (self.blocks,),
            (self.threads,),
            (
                self._first, self._last, layout.rows, layout.begins, layout.ends, layout.sources,
                layout.normalized_weights.of(contributions.dtype), contributions, pulled,
            ),
        )  # fmt: skip
