"""What a graph and its rankings will take, before any of the work: bytes on both sides, seconds, and what would run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from traceback import clear_frames
from typing import Any, Literal, NamedTuple, get_args

from prplugin.errors import MethodUnavailableError, OutOfMemoryError, counted
from prplugin.gpu import runtime
from prplugin.graph.memory import NOTHING, Counts, Footprint
from prplugin.machine import COMPILED_FROM, Machine, bytes_available, this_machine
from prplugin.methods.base import Method
from prplugin.methods.registry import contenders, methods
from prplugin.options import check_choice, whole
from prplugin.types.arrays import Place
from prplugin.types.edges import index_dtype

__all__ = [
    "Estimate",
    "MethodEstimate",
    "estimate",
    "of_a_plan",
    "of_an_ingest",
    "of_graph",
    "of_many_seeds",
    "telling",
]

Ids = Literal["int32", "int64", "string"]

DISTINCT = 1.11
"""Of the distinct ids that there are, what a table has room for: see `graph.device_ids.slots_needed`."""

SLOTS = 1.7
"""Of a hash table on the GPU, for each of those: its `ROOM`."""

SKETCHED = 1 << 20
"""Ids up to which a table has slots for all: that of `graph.device_ids`."""


class MethodEstimate(NamedTuple):
    """What a ranking by one method takes, with the defaults of `Graph.rank` and without vectors of the user's.

    Attributes
    ----------
    method : str
    chosen : bool
        Whether ``method="auto"`` would take it.
    reason : str or None
        Why it cannot run here; None if it can.
    device, host : int
        The most bytes that `rank` holds at a time in the memory of a GPU and of this machine, beside what the graph
        held before: arrays that the graph builds on that occasion, and keeps, are among them. Memory that NumPy and
        CuPy ask for counts; compiled kernels, the CUDA context and the frame of the result do not.
    device_leaping, host_leaping : int
        The same where many steps are left, as with an alpha near 1: float64 takes over, and it leaps ahead. On the GPU
        it only leaps if there is room.
    seconds : float
        By which "auto" chooses: some tens of steps, warm.
    """

    method: str
    chosen: bool
    reason: str | None
    device: int
    host: int
    device_leaping: int
    host_leaping: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """What a graph takes, and each method on it; printed, a table.

    Attributes
    ----------
    vertices, edges : int
    place : {"host", "device"}
        Where the edges lie.
    ingest : Footprint or None
        Of making the graph: ``ingest.device`` and ``ingest.host`` have the bytes that are `held` by it afterwards, and
        the `peak` meanwhile, both beside the frame. None where there is a graph.
    methods : tuple of MethodEstimate
        In the order of their names. ``estimate["numba"]`` gives one by name.
    """

    vertices: int
    edges: int
    place: Place
    ingest: Footprint | None
    methods: tuple[MethodEstimate, ...]

    @property
    def chosen(self) -> MethodEstimate | None:
        """That which ``method="auto"`` would take; None where no method can run."""
        return next((method for method in self.methods if method.chosen), None)

    def __getitem__(self, name: str) -> MethodEstimate:
        return next(method for method in self.methods if method.method == name)

    def __str__(self) -> str:
        title = f"{counted(self.vertices, 'vertex', 'vertices')}, {counted(self.edges, 'edge')}, on the {self.place}"
        if self.ingest is not None:
            made, side = self.ingest.on(self.place), "GPU" if self.place == "device" else "host"
            title += f"; at most {spelt(made.peak)} of the {side} to make the graph, which holds {spelt(made.held)}"
        rows = [("method", "GPU", "leaping", "host", "leaping", "seconds", "")]
        for one in self.methods:
            note = "auto takes it" if one.chosen else "" if one.reason is None else f"cannot run: {one.reason}"
            sizes = (one.device, one.device_leaping, one.host, one.host_leaping)
            rows.append((one.method, *map(spelt, sizes), f"{one.seconds:.2g}", note))  # type: ignore[arg-type]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        placed = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *cells[1:-1], row[-1]]) for row, cells in zip(rows, placed, strict=True)
        ]
        return "\n".join([title, *(line.rstrip() for line in lines)])


def spelt(size: int) -> str:
    """Spell bytes with three digits."""
    scaled, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB", "EB"):
        if scaled < 999.5:
            break
        scaled, unit = scaled / 1000, larger
    return f"{scaled:.3g} {unit}"


def of_graph(graph: Any, machine: Machine, ingest: Footprint | None = None) -> Estimate:
    """Estimate every method on an `Adjacency`, or on the `Counts` of one; nothing is built."""
    counts: Any = Counts.of(graph)
    try:
        chosen = next(contenders(counts, machine, {})).name
    except MethodUnavailableError:
        chosen = None
    estimates = tuple(_of_method(method, counts, machine, chosen) for method in methods().values())
    return Estimate(counts.n, counts.m, counts.place, ingest, estimates)


def _of_method(method: Method, counts: Any, machine: Machine, chosen: str | None) -> MethodEstimate:
    plan = method.footprint(counts, machine)
    leaping = getattr(method, "leaping_footprint", method.footprint)(counts.in_float64, machine)
    return MethodEstimate(
        method.name, method.name == chosen, method.unfit(counts, machine), plan.device.peak, plan.host.peak,
        leaping.device.peak, leaping.host.peak, method.cost(counts, machine),
    )  # fmt: skip


# --- from counts alone --------------------------------------------------------------------------------------------


def estimate(
    *,
    edges: int,
    vertices: int | None = None,
    weighted: bool = False,
    ids: Ids = "int64",
    id_bytes: int = 16,
    place: Place = "host",
) -> Estimate:
    """Bound what a graph and its rankings take from counts alone, before there is a frame.

    It is for directed edges in two columns with ``duplicates="sum"``. What is counted is as for `Graph.estimate`.

    Parameters
    ----------
    edges : int
        Rows of the frame.
    vertices : int, optional
        Distinct ids. Not given: as many as there can be, two an edge.
    weighted : bool, default False
    ids : {"int64", "int32", "string"}
    id_bytes : int, default 16
        Of a string in UTF-8, on average.
    place : {"host", "device"}
        "host" for frames of pandas, polars and Arrow; "device" for those of cuDF.

    Returns
    -------
    Estimate
        `ingest` and the bytes of every method are upper bounds, whether the graph holds its edges by row or by target.
        Seconds are those of a graph whose vertices have equally many in-edges.

    Raises
    ------
    InvalidOptionError
        If an argument has no meaning.

    Examples
    --------
    >>> import prplugin
    >>> bound = prplugin.estimate(edges=1_000_000_000, vertices=50_000_000, place="device")
    >>> bound.ingest.device.peak // 10**9, bound["streamed"].device < bound["persistent"].device
    (41, True)
    """
    edges = whole("edges", edges, least=0)
    most = 2 * edges
    vertices = most if vertices is None else min(whole("vertices", vertices, least=0), most)
    check_choice("ids", ids, get_args(Ids))
    check_choice("place", place, get_args(Place))
    counts = Counts(vertices, edges, bool(weighted), place)
    making = ingest(counts, ids, whole("id_bytes", id_bytes, least=0))
    by_row, by_target = of_graph(counts, this_machine(), making), of_graph(counts.by_target, this_machine())
    return replace(by_row, methods=tuple(_most(one, by_target[one.method]) for one in by_row.methods))


def _most(one: MethodEstimate, other: MethodEstimate) -> MethodEstimate:
    """Take the larger of two numbers of bytes; all else of the first."""
    return one._replace(
        device=max(one.device, other.device),
        host=max(one.host, other.host),
        device_leaping=max(one.device_leaping, other.device_leaping),
        host_leaping=max(one.host_leaping, other.host_leaping),
    )


def ingest(graph: Counts, ids: Ids, id_bytes: int) -> Footprint:
    """Bound the bytes of making a graph of a frame, and of what it holds afterwards."""
    n, m = graph.n, graph.m
    an_id = id_bytes + 8 if ids == "string" else int(ids[3:]) // 8
    # By row, or by target: never both at once, but what the rows come from may last as long as the graph.
    held = 2 * m * graph.index + m * (graph.index + graph.weight) + n * (an_id + 2 * 8)
    passing = _on_device if graph.place == "device" else _on_host
    return NOTHING.then(graph.place, passes=passing(graph, ids, id_bytes)).then(graph.place, held)


def _on_device(graph: Counts, ids: Ids, id_bytes: int) -> int:
    """Bound what `graph.device_ids`, `device_edges` and `device_strings` hold."""
    n, m = graph.n, graph.m
    many = 2 * m if 2 * m <= SKETCHED else min(2 * m, int(DISTINCT * n) + (1 << 13))
    slots = int(SLOTS * many) + 1
    codes = 2 * m * index_dtype(slots).itemsize
    in_order = 3 * (8 + index_dtype(slots).itemsize) * n + n // 2  # the distinct, and two copies to sort
    if ids == "string":
        return codes + 2 * 8 * slots + max(2 * 8 * m, in_order + n * (8 + id_bytes)) + m * graph.weight
    sparse = codes + 8 * slots + in_order + 8 * n
    dense = codes + 12 * m + 8 * n  # marks of a range of 32 ids an edge
    grouped = (33 if graph.weighted else 17) * m + 24 * m  # of a range of one
    return max(sparse, dense, grouped) + m * graph.weight


def _on_host(graph: Counts, ids: Ids, id_bytes: int) -> int:
    """Bound what renumbering and grouping on the host take, as measured: tests/test_estimates.py holds it to that."""
    n, m = graph.n, graph.m
    if ids == "string":
        return m * (64 + 2 * id_bytes + graph.weight) + n * (240 + 2 * id_bytes)
    if m < COMPILED_FROM:
        return m * (92 + graph.weight) + 16 * n
    return m * (22 + graph.weight) + 112 * n  # of these, tables of ids that have just grown


# --- when memory runs out -----------------------------------------------------------------------------------------


@contextmanager
def telling(plan: Callable[[], str]) -> Iterator[None]:
    """Say what was needed, if memory runs out within, and what to do.

    Parameters
    ----------
    plan : function
        Says what the work needs.

    Raises
    ------
    OutOfMemoryError
    """
    try:
        yield
    except MemoryError as error:
        of_gpu = isinstance(error, OutOfMemoryError)  # as `runtime.allocating` has it
        cause = error.__cause__ if of_gpu and error.__cause__ is not None else error
        clear_frames(cause.__traceback__)  # what had been made goes, though the error be kept
        where = "the GPU's memory" if of_gpu else "this machine's memory"
        raise OutOfMemoryError(f"{where} ran out: {cause}. {plan()}") from error


def of_a_plan(graph: Any, name: str, machine: Machine) -> str:
    """Say what a method needs on a graph, what is free, and which methods need less."""
    found = of_graph(graph, machine)
    needed = found[name]
    needs = [f"{needed.host_leaping:,} bytes of this machine's memory, of which {_free('host')}"]
    less = [other for other in found.methods if other.reason is None and other.host_leaping < needed.host_leaping]
    if needed.device:
        needs.insert(0, f"{needed.device:,} bytes of the GPU's memory, of which {_free('device')}")
        less = [other for other in found.methods if other.reason is None and other.device < needed.device]
    names = ", ".join(repr(other.method) for other in sorted(less, key=lambda other: (other.device, other.host)))
    remedy = f"Less is needed by {names}. " if names else ""
    return f"method={name!r} needs about {' and '.join(needs)}. {remedy}{runtime.REMEDY}"


def of_an_ingest(frame: Any, weighted: bool, place: Place) -> str:
    """Say what it may take to make a graph of a frame, and what is free."""
    rows = len(frame)
    most = estimate(edges=rows, weighted=weighted, place=place).ingest
    assert most is not None
    side = "the GPU's memory" if place == "device" else "this machine's memory"
    return (
        f"A graph of {counted(rows, 'edge')} with integer ids takes up to {most.on(place).peak:,} bytes of {side} "
        f"while it is made, beside its frame, and {_free(place)}. Drop columns that are not in use, turn ids that are "
        "strings into integers, or rank without weights."
    )


def of_many_seeds(seeds: int, n: int) -> str:
    """Say what the ranks of many seeds take, and what takes less."""
    return (
        f"The ranks of {counted(n, 'vertex', 'vertices')} from {counted(seeds, 'seed')} take {8 * seeds * n:,} bytes "
        "in float64. Rank from fewer at once, or keep the highest of each with top=."
    )


def _free(place: Place) -> str:
    size = runtime.bytes_free() if place == "device" else int(bytes_available())
    return f"{size:,} are free"
