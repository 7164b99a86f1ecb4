"""The methods that there are, the choice among them, and its reasons.

Methods are the modules of a table, and entry points of other distributions.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from prplugin.errors import InvalidOptionError, MethodUnavailableError, PageRankWarning
from prplugin.graph.edges import Edges, Problem
from prplugin.graph.memory import Counts, Memory
from prplugin.machine import Machine
from prplugin.methods.base import Method, SeedsMethod, Step
from prplugin.options import check_choice
from prplugin.types.edges import PackedParts
from prplugin.types.records import Considered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint  # takes as long to import as a small ranking

logger = logging.getLogger(__name__)

BUILT_IN = {
    "binned": ("prplugin.papers.binned", "gpu", False),
    "block": ("prplugin.papers.block", "gpu", False),
    "cpu-split": ("prplugin.papers.cpu_split", "gpu", True),
    "dense": ("prplugin.papers.dense", "gpu", False),
    "edge": ("prplugin.papers.edge", "gpu", True),
    "expanded": ("prplugin.papers.expanded", "gpu", False),
    "native": ("prplugin.methods.native", "cpu", False),
    "node": ("prplugin.papers.node", "gpu", False),
    "numpy": ("prplugin.methods.numpy", "cpu", False),
    "packed": ("prplugin.methods.packed", "gpu", False),
    "persistent": ("prplugin.methods.persistent", "gpu", False),
    "propagation-blocking": ("prplugin.methods.propagation_blocking", "gpu", False),
    "segmented": ("prplugin.papers.segmented", "gpu", True),
    "streamed": ("prplugin.methods.streamed", "gpu", False),
    "warp": ("prplugin.papers.warp", "gpu", False),
}
"""Module, processor, and whether it is nondeterministic, of each method of this package.

All modules together take as long to import as several rankings, so that one is imported when it is used. The core
imports those of papers in no other way.
"""

REQUIRED = Method.__annotations__.keys() - {"cost"}  # attributes of every method
GROUP = "prplugin.methods"  # entry points of other distributions: the name of a method, and its module
NAMED_GROUP = "prplugin.methods.named"  # the same for those that "auto" never chooses, and need not import

ChoiceCache: TypeAlias = dict[tuple[object, ...], Method]  # methods of least cost on one graph, by what they depend on
PACKED_ONLY = "the edges were packed when they were read, and only method 'packed' ranks them."


class Unusable:
    """A method of another distribution that cannot be imported, or is none."""

    runs_on = "cpu"
    memory = Memory()

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    def unavailable_reason(self, adjacency: Edges | Counts | None, machine: Machine) -> str | None:
        """Return the error of its import."""
        return self.reason

    def prepare(self, problem: Problem, machine: Machine) -> Step:
        """Raise the error of its import."""
        raise MethodUnavailableError(self.reason)


class Methods(Mapping[str, Method]):
    """All methods by name, in alphabetical order: those of `BUILT_IN`, and entry points of other distributions.

    A method is imported when it is used; of another distribution, when it is named, or when "auto" needs its cost. One
    that cannot be imported is `Unusable`. None of another distribution replaces a built-in one.
    """

    def __init__(self, others: Iterable[EntryPoint]) -> None:
        self._others = {point.name: point for point in others if point.name not in BUILT_IN}
        self._imported: dict[str, Method] = {}
        self._names = sorted({*BUILT_IN, *self._others})
        self._considered: dict[str, dict[str, Method]] = {}

    def __getitem__(self, name: str) -> Method:
        if name not in self._imported:
            known = BUILT_IN.get(name)
            self._imported[name] = importlib.import_module(known[0]) if known else _foreign(self._others[name])
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def runs_on(self, name: str) -> str:
        """Return the processor of a method, "cpu" or "gpu"."""
        return BUILT_IN[name][1] if name in BUILT_IN else self[name].runs_on

    def nondeterministic(self, name: str) -> bool:
        """Return whether the last bits of a method vary from run to run."""
        return BUILT_IN[name][2] if name in BUILT_IN else getattr(self[name], "nondeterministic", False)

    def only_by_name(self, name: str) -> bool:
        """Return whether a method is of another distribution, which declares that "auto" never chooses it."""
        return name in self._others and self._others[name].group == NAMED_GROUP

    def considered(self, processor: str) -> dict[str, Method]:
        """Return the methods of one processor that "auto" may choose: deterministic, and with a cost.

        Warns the first time about methods of other distributions that cannot be used.
        """
        if processor not in self._considered:
            names = [name for name in self if not self.only_by_name(name)]
            names = [name for name in names if self.runs_on(name) == processor and not self.nondeterministic(name)]
            self._considered[processor] = {name: self[name] for name in names if hasattr(self[name], "cost")}
            for method in self._imported.values():
                if isinstance(method, Unusable) and not self.only_by_name(method.name):
                    warnings.warn(f"method {method.name!r}: {method.reason}", PageRankWarning, stacklevel=2)
        return self._considered[processor]


@cache
def methods() -> Methods:
    """Return all methods."""
    if not _is_named(f"[{GROUP}".encode()):
        return Methods(())
    from importlib.metadata import entry_points

    return Methods(point for group in (NAMED_GROUP, GROUP) for point in entry_points(group=group))


def _foreign(point: EntryPoint) -> Any:
    """Import a method of another distribution."""
    try:
        method = point.load()
        if absent := sorted(each for each in REQUIRED if not hasattr(method, each)):
            raise TypeError(f"it has no {', '.join(absent)}")
    except Exception as error:  # of foreign code
        return Unusable(point.name, f"{point.value}, of another package, cannot be used: {error}")
    return method


def _is_named(group: bytes) -> bool:
    """Return whether an installed distribution names a group of entry points that begins so.

    `importlib.metadata` takes as long as a small ranking, and is used only in this case.
    """
    for folder in filter(None, sys.path):
        with suppress(OSError), os.scandir(folder) as entries:  # absent, or not readable
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError), open(f"{entry.path}/entry_points.txt", "rb") as file:
                        if group in file.read():
                            return True
    return False


@cache
def compile_ahead(weighted: bool) -> None:
    """Start to compile the GPU kernels that most graphs need, once per process."""
    for method in methods().considered("gpu").values():
        if hasattr(method, "compile_ahead"):
            method.compile_ahead(weighted)


def check_options(method: Method, options: Mapping[str, object]) -> None:
    """Raise InvalidOptionError for an option that the method does not have."""
    known = options_of(method)
    for name in options:
        if name not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options of its own"
            raise InvalidOptionError(f"{name!r} is an option of other methods: method {method.name!r} {takes}.")


def is_option(name: str) -> bool:
    """Return whether any method has an option of that name."""
    # Those of the GPU, and then those of other distributions, are imported only if necessary.
    nearest_first = sorted(methods(), key=lambda each: BUILT_IN[each][1] if each in BUILT_IN else "other")
    return any(name in options_of(methods()[method]) for method in nearest_first)


def all_options() -> list[str]:
    """Return the names of the options of all methods, each once."""
    return list(dict.fromkeys(option for method in methods().values() for option in options_of(method)))


def options_of(method: Method) -> tuple[str, ...]:
    """Return the names of a method's options."""
    return _keywords_of(method.prepare)


@cache
def _keywords_of(prepare: Callable[..., Step]) -> tuple[str, ...]:
    return tuple(p.name for p in inspect.signature(prepare).parameters.values() if p.kind is p.KEYWORD_ONLY)


def readable(method: Method, graph: Edges | Counts) -> bool:
    """Return whether edges can be had in a layout that a method reads: those packed on the GPU have no other."""
    return graph.given is not PackedParts or PackedParts in getattr(method, "reads", ())


def unavailable_reason(method: Method, adjacency: Edges | Counts, machine: Machine) -> str | None:
    """Return why a method cannot rank a graph here, or None."""
    if not readable(method, adjacency):
        return PACKED_ONLY
    return method.unavailable_reason(adjacency, machine)


def choose(
    name: str, adjacency: Edges | Counts, machine: Machine, options: Mapping[str, object],
    cheapest: ChoiceCache | None = None, failed: Mapping[str, str] | None = None,
) -> Method:  # fmt: skip
    """Return the named method, or for "auto" the available one of least cost that takes these options.

    A named method is never replaced by another. `cheapest` keeps the method of least cost on this graph between calls.
    `failed`: Methods that "auto" does not choose, and why: those that ran out of memory in this call.
    """
    if name == "auto":
        key = machine, *options
        known = None if failed or not cheapest else cheapest.get(key)
        if known:
            has_memory = isinstance(adjacency, Edges) and adjacency.has_step(known.name)
            if has_memory or not unavailable_reason(known, adjacency, machine):
                return known
        chosen, is_least = _cheapest(adjacency, machine, options, failed=failed)
        if cheapest is not None and is_least:
            cheapest[key] = chosen
        return chosen
    if name not in methods():
        check_choice("method", name, ("auto", *methods()))
    method: Method = methods()[name]
    if reason := unavailable_reason(method, adjacency, machine):
        raise MethodUnavailableError(f"method {name!r} cannot run here: {reason}")
    check_options(method, options)
    return method


def choose_batch(
    name: str, adjacency: Edges | Counts, machine: Machine, options: Mapping[str, object], seeds: int
) -> Method:
    """Return the named method, or for "auto" the one of least cost, that ranks many seeds at once."""
    if name == "auto":
        if adjacency.given is PackedParts:
            raise MethodUnavailableError(f"no method ranks many personalizations in one call here: {PACKED_ONLY}")
        return _cheapest(adjacency, machine, options, seeds)[0]
    method = choose(name, adjacency, machine, options)
    if not hasattr(method, "batch_cost"):
        raise MethodUnavailableError(
            f"method {name!r} ranks one personalization at a time. Call it for each, or name one that ranks many "
            f"at once: {_with_batch()}."
        )
    return method


def _cheapest(
    adjacency: Edges | Counts, machine: Machine, options: Mapping[str, object], seeds: int | None = None,
    failed: Mapping[str, str] | None = None,
) -> tuple[Method, bool]:  # fmt: skip
    """Return the first of the contenders, and whether no other of less cost is unavailable; warn if it is "numpy"."""
    unavailable = dict(failed or {})
    by_cost = contenders(adjacency, machine, options, unavailable, seeds)
    chosen = next(by_cost)
    is_least = not unavailable
    if chosen.name == "numpy" and (reason := unavailable.get("native")):
        warnings.warn(f"ranking by the slower method 'numpy': {reason}", PageRankWarning, stacklevel=2)
    if seeds is None and logger.isEnabledFor(logging.INFO):
        for name, reason in unavailable.items():
            logger.info("%s is not used: %s", name, reason)
        logger.info(
            "%s for %d vertices and %d edges: %s",
            chosen.name, adjacency.n, adjacency.m,
            ", ".join(f"{method.name} {method.cost(adjacency, machine):.2g} s" for method in (chosen, *by_cost)),
        )  # fmt: skip
    return chosen, is_least


def contenders(
    adjacency: Edges | Counts, machine: Machine, options: Mapping[str, object],
    unavailable: dict[str, str] | None = None, seeds: int | None = None,
) -> Iterator[Method]:  # fmt: skip
    """Yield the available methods that "auto" may choose and that take these options, by ascending cost.

    Costs are those of equal in-degrees, which are not computed: methods that long rows slow down are not the fastest
    with equal rows either. Those in `unavailable` are left out, and the reasons of others that are not available are
    added to it. With a number of `seeds`, only methods that rank many at once.
    """
    eligible = [
        method
        for method in candidates(adjacency).values()
        if (not options or set(options) <= set(options_of(method))) and (seeds is None or hasattr(method, "batch_cost"))
    ]
    if not eligible:
        given = ", ".join(map(repr, options))
        raise InvalidOptionError(
            f'no method that "auto" may choose for this frame takes all of {given}: name the method.'
            if seeds is None
            else f"no method that ranks many personalizations at once takes {given}: there are {_with_batch()}."
        )
    reasons = {} if unavailable is None else unavailable
    counts = _with_equal_rows(adjacency)

    def cost(method: Method) -> float:
        return (
            method.cost(counts, machine)
            if seeds is None
            else cast(SeedsMethod, method).batch_cost(counts, machine, seeds)
        )

    for method in sorted(eligible, key=cost):
        if reason := reasons.get(method.name) or unavailable_reason(method, adjacency, machine):  # queries the GPU
            reasons[method.name] = reason
        else:
            yield method
    if len(reasons) == len(eligible):
        each = "; ".join(f"{method.name}: {reasons[method.name]}" for method in eligible)
        raise MethodUnavailableError(f"no method can run here: {each}")


def _with_batch() -> str:
    """Return the names of the methods that rank many seeds at once, for messages."""
    return ", ".join(repr(name) for name, method in methods().items() if hasattr(method, "batch_cost"))


def _with_equal_rows(graph: Edges | Counts) -> Counts:
    """Return the counts of a graph with equal in-degrees, which are not computed.

    On large graphs on the GPU the spread of sources is sampled, which groups the edges by target.
    """
    return Counts(graph.n, graph.m, graph.weighted, graph.memory_space, spread=graph.spread)


def candidates(adjacency: Edges | Counts) -> Mapping[str, Method]:
    """Return the deterministic methods for the memory space of the edges, among which "auto" chooses."""
    on_gpu = (adjacency.frame_space or adjacency.memory_space) == "device"
    considered = methods().considered("gpu" if on_gpu else "cpu")
    return {name: method for name, method in considered.items() if readable(method, adjacency)}


def reasons(
    name: str, asked: str, graph: Counts, machine: Machine, options: Mapping[str, object]
) -> tuple[Considered, ...]:
    """Return the reasons why the method `name` was chosen and each other method was not.

    `asked` is the value of the argument `method`.
    """
    chosen = methods()[name]
    if asked != "auto":
        return (Considered(name, None, "requested by name"),)
    counts = _with_equal_rows(graph)
    chosen_cost = chosen.cost(counts, machine)

    def reason_against(name: str) -> Considered:
        if methods().only_by_name(name):
            return Considered(name, None, "its package declares that it is chosen only by name")
        method = methods()[name]
        if isinstance(method, Unusable):
            return Considered(name, None, method.reason)
        if (processor := methods().runs_on(name)) != chosen.runs_on:
            here, there = processor.upper(), chosen.runs_on.upper()
            return Considered(name, None, f"runs on the {here}; this frame is ranked on the {there}")
        if not readable(method, graph):
            return Considered(name, None, PACKED_ONLY)
        if name not in methods().considered(processor):
            varies = methods().nondeterministic(name)
            return Considered(name, None, "its last bits vary from run to run" if varies else "declares no cost")
        if unknown := set(options) - set(options_of(method)):
            return Considered(name, None, f"takes no option {', '.join(sorted(unknown))}")
        seconds = method.cost(counts, machine)
        if seconds >= chosen_cost:
            return Considered(name, seconds, "a higher estimate")
        unavailable = method.unavailable_reason(graph, machine)
        return Considered(name, seconds, unavailable or "was unavailable when the method was chosen")

    others = [reason_against(name) for name in methods() if name != chosen.name]
    others.sort(key=lambda one: math.inf if one.seconds is None else one.seconds)
    return (Considered(chosen.name, chosen_cost, "the least estimate"), *others)
