"""Attempts to answer a query, each of which returns the ranks, or where the next one starts; those by pushes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from prplugin.graph.teleports import normalised
from prplugin.options import Options
from prplugin.result.selection import remaining
from prplugin.solver.loop import Outcome
from prplugin.streams.state import GraphState, LastRanks, normalized_start
from prplugin.types.array_module import Ranks
from prplugin.types.edges import Floats, Integers

if TYPE_CHECKING:
    from prplugin.graph.edges import Edges
    from prplugin.progress import Watch
    from prplugin.solver.groups import GroupProof
    from prplugin.solver.top_k import Equal
    from prplugin.streams.host_edges import HostEdges
    from prplugin.streams.local_pushes import LocalPushes, LocalRanks

# Approximate times, relative to the time per edge of an iteration of a method.
VERTEX_COST = 8  # per vertex of an iteration, which mixes iterates
PUSH_SLOWDOWN = 3  # per pushed edge
PREPARATION_PASSES = 14  # per edge, to group the edges by target and to prepare a method
CALL_COST = 1_000_000  # of the calls that prepare a method and run it on a small graph, in pushed edges

# Fractions of the tolerance.
TOL_FRACTION = 1 / 2  # that a method is to attain if few edges changed, so that pushes suffice afterwards
MAX_ROUNDING_FRACTION = 1 / 10  # that the rounding errors of a residual may take before it is computed anew


class Query:
    """The options of one ranking, those given by vertex as arrays; None if they are not given.

    `began`: Time by `time.perf_counter` at which the ranking began.
    `seeds`: Positions to which it teleports, and their values; if they were read, `v` is None before it is needed.
    `v`, `w`, `nstart`: Teleport and dangling distribution, and the initial ranks: n float64 with sum 1.
    `among`, `excluded`: Positions to return, and to leave out.
    `groups`: Proves the ranks of each group; None unless vertices have groups.
    """

    options: Options
    watch: Watch
    began: float
    seeds: tuple[Integers, Floats] | None = None
    v: Floats | None = None
    w: Floats | None = None
    nstart: Floats | None = None
    among: Integers | None = None
    excluded: Integers | None = None
    groups: GroupProof | None = None


class Start(NamedTuple):
    """Start of the next attempt.

    `ranks`: Ranks of sum 1; None: any that the attempt chooses.
    `tol`: Error bound to attain.
    `passes`: Passes over the edges that found these ranks.
    """

    ranks: Floats | None
    tol: float
    passes: int = 0


class Solved(NamedTuple):
    """The answer to a query.

    `ranks`: In the requested scale and type, an array of n or a `prplugin.streams.local_pushes.LocalRanks`.
    `selected`: Positions to return; None for all, or for those that `ranks` names.
    `terms`: The equation, or one with positions and values for v: see `prplugin.queries.Terms`.
    `why`: Why pushes were faster than any method; None for a method.
    """

    ranks: Ranks | LocalRanks
    outcome: Outcome
    method: str
    selected: Integers | None
    terms: tuple[float, Floats | tuple[Integers, Floats] | None, Floats | None]
    why: str | None = None


def push_near_seeds(
    query: Query, start: Start, edges: Edges | HostEdges, pushes: LocalPushes, equal: Equal | None
) -> Solved | Start:
    """Rank by pushes from the seeds, unless most of the ranks are far from them.

    `equal`: Proves that two vertices have equal ranks; needed for a certified order.
    """
    from prplugin.streams.local_pushes import Wanted

    assert query.seeds is not None
    options, (rows, values) = query.options, query.seeds
    wanted = Wanted(options.top, query.among, query.excluded)
    found = pushes.rank(edges, (rows, normalised(values, "personalization")), options, wanted, equal=equal)
    if found is None:
        return start
    if not found.met:
        return start._replace(ranks=normalized_start(found.dense()), passes=found.passes)
    outcome = Outcome(False, True, found.passes, found.error_bound, order=found.order)
    selected = None if found.shown is not None else remaining(edges.n, query.among, query.excluded)
    why = "few vertices near the seeds have most of the ranks"
    return Solved(found, outcome, "push", selected, (options.alpha, query.seeds, None), why)


def push_residual(query: Query, start: Start, state: GraphState, last: LastRanks) -> tuple[Solved | Start, LastRanks]:
    """Rank by pushes of the residual of the last ranks, unless a method is expected to take less time.

    Also return the last ranks for the next ranking.
    """
    from prplugin.streams import bounds  # lazy imports: few graphs change
    from prplugin.streams.host_edges import HostEdges
    from prplugin.streams.residual import Residual

    options, edges, tol = query.options, state.edges, query.options.tol
    by_default = options.method == "auto" and options.max_iter is None and not options.certified
    may_push = by_default and query.w is None and query.groups is None
    residual, passes = last.residual, start.passes
    if not isinstance(edges, HostEdges) or (residual is None and not may_push):  # a residual has edges on the host
        return start._replace(ranks=last.ranks), last
    if residual is None:
        residual, passes = Residual(edges, options.alpha, query.v, last.ranks), passes + 1
    if residual.rounding > MAX_ROUNDING_FRACTION * tol:
        residual.recompute(edges)
        passes += 1
    if may_push:
        of_cast = bounds.of_cast(options)
        spent = residual.push(edges, tol - of_cast, _max_pushes(state, last.passes, residual.bound, tol))
        bound = residual.bound + of_cast
        if bound <= tol:
            outcome = Outcome(False, True, passes + -(-spent // max(edges.m, 1)), bound)
            ranks, why = options.requested(residual.ranks()), "the ranks have changed little since the last ranking"
            solved = Solved(ranks, outcome, "push", remaining(edges.n, query.among, query.excluded), last.equation, why)
            return solved, last._replace(ranks=None, residual=residual)
    ranks = normalized_start(residual.ranks())
    kept = last._replace(ranks=ranks, residual=None)
    return Start(ranks, tol * TOL_FRACTION if may_push else tol, start.passes), kept


def _max_pushes(state: GraphState, passes: int, error: float, tol: float) -> float:
    """Return how many edges pushes may take until a method would take less time.

    A method converges geometrically, from an error of 2 to tol in `passes` passes without a start vector.
    """
    error = min(error, 2.0)
    fraction = math.log(error / tol) / math.log(2 / tol) if error > tol else 0.0
    passes_left = PREPARATION_PASSES + passes * fraction
    return CALL_COST + passes_left * (state.edges.m + VERTEX_COST * state.edges.n) / PUSH_SLOWDOWN
