"""Three bins of rows by in-degree: one thread, 16 lanes or 128 threads per row (Wu and others 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np

from prplugin.errors import InvalidOptionError
from prplugin.methods.base import Edges, Floats, Machine, Problem, Rate, Step
from prplugin.methods.engines import gpu_pull
from prplugin.numerics import compensated_depth
from prplugin.options import validate_int
from prplugin.papers._forms import Form, PowerMethod, Spmv, launch_of, step_of
from prplugin.papers._rows import RowsPull
from prplugin.types.arrays import namespace
from prplugin.types.edges import Csc

name = "binned"
runs_on = "gpu"
memory = gpu_pull.MEMORY._replace(step=Rate(0, 4, 40))  # rows, begins, ends
unavailable_reason = gpu_pull.reason_of(memory)
cost = gpu_pull.cost_of(69e-6, edge=2.1e-11, vertex=4e-11, longest=1.5e-9)  # fitted to benchmarks/results/kernels.md

forms = {"paper": Form("Wu and others 2010, Algorithms 1 and 4 to 6; groups of 64 threads", {"thresholds": (6, 96)})}


def prepare(
    problem: Problem, machine: Machine, *, thresholds: tuple[int, int] = (6, 96), form: str | None = None
) -> Step:
    """Group the edges by target, and partition the rows into bins.

    Parameters
    ----------
    thresholds : (int, int), default (6, 96)
        The most in-edges of a tiny row, which one thread sums, and of a small one, which 16 lanes sum; 128 threads sum
        each other row. The defaults are the paper's: no thread of a tiny or small row reads more than six edges.
    form : "paper", optional
        Iterate by the power method of Wu and others as printed, in float32 with stored values and 64 threads for each
        row of the last bin, which an exact step then proves. It has uniform teleport.
    """
    launch_of(forms, form)
    adjacency = problem.adjacency.on("device")
    pull = BinnedPull(adjacency, thresholds)

    def iteration() -> PowerMethod:
        return PowerMethod(Spmv(adjacency, bins=(pull.layout, pull.sizes)), problem.alpha)

    return step_of(problem, pull, form, iteration, values=True)


class BinnedPull:
    """The modified CSR of the paper: begin, end and original index of every row, with the rows ordered by bin.

    Indices and weights are not moved. The paper stores sizes instead of ends, which takes as many bytes. A stable
    partition in O(n) keeps the order of rows within a bin, so that neighbouring threads read neighbouring edges.
    """

    def __init__(self, adjacency: Edges, thresholds: Sequence[int] = (6, 96)) -> None:
        at_most = [min(threshold, adjacency.m) for threshold in _checked(thresholds)]
        offsets, sources, _ = adjacency.get(Csc)
        xp = namespace(offsets)
        degrees = offsets[1:] - offsets[:-1]
        bin_of_row = (degrees > at_most[0]).astype(np.int8) + (degrees > at_most[1])
        bins = [xp.flatnonzero(bin_of_row == which) for which in range(3)]
        rows = xp.concatenate(bins).astype(sources.dtype)
        self.layout = gpu_pull.csc_layout(adjacency)._replace(
            rows=rows, begins=offsets[:-1][rows], ends=offsets[1:][rows]
        )
        self.rounding_depth = compensated_depth(adjacency.m)
        self.sizes = tuple(part.size for part in bins)  # numbers of tiny, small and normal rows
        bounds = np.cumsum([0, *self.sizes]).tolist()
        tiny, small, normal = ({"first": first, "last": last} for first, last in pairwise(bounds))
        self._pulls = (  # the fastest of five combinations of kernels (docs/decisions/appendix.md)
            RowsPull(self.layout, "node", short=True, **tiny),
            RowsPull(self.layout, "warp", lanes=16, short=True, **small),
            RowsPull(self.layout, "block", threads=128, **normal),
        )

    def __call__(self, contributions: Floats, row_sums: Floats) -> None:
        for pull in self._pulls:
            pull(contributions, row_sums)


def _checked(thresholds: Sequence[int]) -> list[int]:
    """Validate two integers 0 <= a <= b."""
    if isinstance(thresholds, Sequence) and len(thresholds) == 2:
        with suppress(InvalidOptionError):
            low = validate_int("thresholds", thresholds[0], least=0)
            return [low, validate_int("thresholds", thresholds[1], least=low)]
    raise InvalidOptionError(f"thresholds must be two whole numbers (a, b) with 0 <= a <= b, not {thresholds!r}.")
