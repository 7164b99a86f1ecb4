"""Proof of an error bound for each group of vertices that no edge leaves, from rankings of all groups at once.

Let v be positive on some vertex of each group, and w = v. Then a group of the ranks is proportional to that of the
solution of

    y = c v + alpha P^T y,

for every c > 0: the dangling mass only scales v. That equation has no term that connects groups, and the ranks x* of a
group by itself are those of y* divided by their sum. Let z be the computed step from x, with D its dangling mass, and
take c = alpha D + 1 - alpha. Then z = c v + alpha P^T x + e, and so the residual of z in a group g is alpha P^T (z - x)
- e. As in (2) of `prplugin.solver.certificate`,

    ||z - y*||_g <= E = (alpha ||z - x||_g + ||e||_g) / (1 - alpha).                                              (1)

A computed rank has a relative error of at most gamma(k), so ||e||_g <= gamma(k) / (1 - gamma(k)) ||z||_g. Let s and s*
be the sums of z and of y* in g. As |s - s*| <= E,

    ||z / s - y* / s*||_g <= ||z - y*||_g / s + s* |1 / s - 1 / s*| <= 2 E / s.                                   (2)

Norms and sums are measured with a rounding depth d, which adds gamma(d + 1) to the ranks and factors to (2).
docs/semantics.md names all terms.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from prplugin.cpu.sums import GroupSums
from prplugin.errors import InvalidOptionError
from prplugin.graph.edges import Edges
from prplugin.methods.base import Step
from prplugin.numerics import StepRounding, compensated_depth
from prplugin.options import Options
from prplugin.solver.certificate import ROUND_UP, depth_of_rank, gamma, rounding_of_result
from prplugin.solver.loop import Outcome
from prplugin.types.array_module import Ranks
from prplugin.types.arrays import is_host, namespace, to_host
from prplugin.types.edges import Coo, Csc, Floats, Integers


def bounds_of_groups(
    alpha: float, moved: Floats, sums: Floats, rounding: StepRounding, depth: int, dtype: str, scale: object
) -> Floats:
    """Bound the L1 error of the ranks of each group by (2), from ||z - x|| and the sum of z, of rounding depth `depth`.

    `rounding`: Of the step, in float64.
    """
    of_rank, of_sum = gamma(depth_of_rank(rounding)), gamma(depth + 1)
    if not max(of_rank, of_sum) < 1:
        return np.full(sums.shape, math.inf)
    residual = moved * (alpha * (1 + of_sum)) / (sums * (1 - of_sum)) + of_rank / (1 - of_rank)
    cast = rounding_of_result(dtype, scale) * (1 + of_sum)
    bounds: Floats = (np.minimum(2 * residual / (1 - alpha), 2.0) + of_sum + cast) * ROUND_UP
    return bounds


def refuse_options(options: Options) -> None:
    """Raise InvalidOptionError for options of a ranking that have no meaning for groups, or no proof.

    Seeds are ranked in their group alone, by any rule.
    """
    together = options.seeds is None
    unproved = together and not options.rule.proves
    given = {
        "dangling=": options.dangling is not None and "the dangling mass of each group goes where it teleports",
        "stop=": unproved and "what is proved of each group is its error: use stop='error', tol > 0",
        "max_iter=0": together and options.max_iter == 0 and "the proof of each group is a pass over the edges",
        "certified=True": options.certified and "orders are proved of one group: rank it by itself",
    }
    for name, why in given.items():
        if why:
            raise InvalidOptionError(f"{name} is not supported with by=: {why}.")


ALONE = 10_000
"""Mean number of edges per group from which each is ranked by itself, which takes half the passes of all together, and
0.3 ms for each: 20 groups of 10,000 edges 15 ms instead of 29, 5 of 300,000 60 instead of 150."""


class GroupProof:
    """Ends a ranking when the ranks of each group are proved.

    `offsets`: Position of the first vertex of each group, and their number, on the host.
    `sums`, `bounds`: After `settle`, of each group the sum of its ranks, and the error bound of its ranks divided by
    it. Both are on the host, and so is `iterations`, the number of passes over the edges of each.
    """

    def __init__(self, offsets: Integers, options: Options) -> None:
        refuse_options(options)
        self._offsets, self._options = offsets, options
        self.sums = self.bounds = np.zeros(offsets.size - 1)
        self.iterations = np.zeros(offsets.size - 1, np.int64)
        self._sum: Callable[[Floats], Floats]

    @property
    def proved(self) -> tuple[Floats, float, Integers]:
        """The bound of each group, the tolerance that it was to meet, and the passes that it took."""
        return self.bounds, self._options.tol, self.iterations

    def parts(self, adjacency: Edges) -> list[tuple[int, int]]:
        """Return the first position and the one past the last of each group, if each is to be ranked by itself.

        That takes fewer passes over the edges of large groups, which the caches hold, and on the host alone.
        """
        large = adjacency.m >= ALONE * self.sums.size and adjacency.given in (Coo, Csc)
        return list(pairwise(self._offsets.tolist())) if large and adjacency.memory_space == "host" else []

    def settle_alone(self, outcomes: Sequence[Outcome]) -> Outcome:
        """Return the outcome of rankings of each group by itself."""
        self.sums = np.ones(len(outcomes))
        self.bounds = np.array([float(outcome.error_bound) for outcome in outcomes])
        self.iterations = np.array([int(outcome.iterations) for outcome in outcomes])
        most = int(self.iterations.max())
        return Outcome(False, all(outcome.converged for outcome in outcomes), most, float(self.bounds.max()), most)

    def begin(self, step: Step) -> Options:
        """Return the options of a ranking of all groups; raise if rounding makes the tolerance too small to prove."""
        options, xp = self._options, namespace(step.ranks())
        if is_host(step.ranks()):
            summed = GroupSums(np.repeat(np.arange(self.sums.size), np.diff(self._offsets)), self.sums.size)
            self._depth, self._sum = summed.depth, summed
        else:
            from prplugin.gpu.group import run_sums  # imports CuPy, which holds the ranks

            offsets, self._depth = xp.asarray(self._offsets), compensated_depth(int(self._offsets[-1]))
            self._sum = lambda values: to_host(run_sums(values, offsets))
        least = 5 * float(self._bounds(step.rounding, np.zeros(()), np.ones(())))
        if options.tol < least:
            raise InvalidOptionError(
                f"tol={options.tol:g} cannot be proved for each group in {options.dtype} at alpha={options.alpha:g}, "
                f"because of rounding: ask for {least:.2g} or more."
            )
        return self._of_all(options.tol)

    def settle(self, step: Step, outcome: Outcome, provable: float, again: Callable[[Options, int], Outcome]) -> None:
        """Continue a ranking of all groups that has ended until the bound of each is at most the tolerance.

        `provable`: Least tolerance of a ranking of all groups.
        `again`: Continues it, given options and the number of passes before.
        """
        tol, most, goal = self._options.tol, self._options.max_iter or sys.maxsize, math.inf
        self._measure(step)
        outcome.iterations += 1
        while (worst := float(self.bounds.max())) > tol and outcome.iterations < most:
            goal = max(min(goal, float(outcome.error_bound), tol) * tol / worst / 2, provable)
            found = again(self._of_all(goal), int(outcome.iterations))
            outcome.iterations, outcome.error_bound = outcome.iterations + found.iterations, found.error_bound
            self._measure(step)
            outcome.iterations += 1
        outcome.error_bound, outcome.converged = worst, worst <= tol
        self.iterations[:] = outcome.iterations

    def ranks_of_each(self, ranks: Floats) -> Ranks:
        """Return the ranks divided by the sum of their group, in the requested scale and type."""
        xp, sizes = namespace(ranks), np.diff(self._offsets)
        ranks = ranks / xp.asarray(np.repeat(self.sums, sizes))
        if self._options.scale == "n":
            ranks *= xp.asarray(np.repeat(sizes, sizes))
        return ranks.astype(self._options.dtype, copy=False)

    def as_one(self, ranks: Floats) -> Floats:
        """Return the ranks with a sum of 1 over all groups, which may have been ranked by themselves."""
        ranks_of_all: Floats = ranks / self.sums.sum()
        return ranks_of_all

    def _of_all(self, tol: float) -> Options:
        most = self._options.max_iter
        return replace(
            self._options, tol=tol, max_iter=None if most is None else most - 1, dtype="float64", scale=1, seeds=None
        )

    def _measure(self, step: Step) -> None:
        """Take one exact step in float64, and measure it by group."""
        before = step.ranks().copy()
        if step.rounding.single:
            step.set_contribution_dtype("float64")
            step.start(before)
        step()
        after = step.ranks()
        self.sums = self._sum(after)
        self.bounds = self._bounds(step.rounding, self._sum(abs(after - before)), self.sums)

    def _bounds(self, rounding: StepRounding, moved: Floats, sums: Floats) -> Floats:
        options = self._options
        return bounds_of_groups(options.alpha, moved, sums, rounding, self._depth, options.dtype, options.scale)
