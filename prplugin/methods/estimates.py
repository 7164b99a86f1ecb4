"""Estimates of the memory and time of a graph and its rankings, before any computation."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from prplugin.cpu import library
from prplugin.errors import MethodUnavailableError, counted
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges
from prplugin.graph.memory import Counts, Footprint, Rate, footprint
from prplugin.machine import Machine, bytes_available, this_machine
from prplugin.methods.registry import contenders, methods, unavailable_reason
from prplugin.options import check_choice, validate_int
from prplugin.tables import Display, Displayed
from prplugin.types.arrays import SPACE, MemorySpace

Ids = Literal["int32", "int64", "string"]


class MethodEstimate(NamedTuple):
    """Memory and time of a ranking by one method, with the defaults of `Graph.rank` and no vectors from the user.

    Bytes may be 20 % off: see `prplugin.graph.memory`.

    Attributes
    ----------
    method : str
    chosen : bool
        Whether ``method="auto"`` chooses it.
    reason : str or None
        Why it cannot run here; None if it can.
    device, host : int
        Peak bytes of `rank` in GPU memory and in host memory, beside those that the graph held before, if few
        iterations suffice. Arrays that the graph builds during `rank`, and keeps, are included. Memory requested by
        NumPy and CuPy counts; compiled kernels, the CUDA context and the frame of the result do not.
    device_at_most, host_at_most : int
        The same for many iterations, as with alpha close to 1: the method continues in float64 and extrapolates. On
        the GPU it extrapolates only if the memory suffices.
    seconds : float
        Estimate by which "auto" chooses: some tens of iterations, after warm-up. NaN if the method declares no cost.
    """

    method: str
    chosen: bool
    reason: str | None
    device: int
    host: int
    device_at_most: int
    host_at_most: int
    seconds: float


@dataclass(frozen=True, repr=False)
class Estimate(Displayed):
    """Memory and time of a graph, and of each method on it; prints as a table.

    Attributes
    ----------
    vertices, edges : int
    memory_space : {"host", "device"}
        Memory space of the edges.
    ingest : Footprint or None
        Building the graph: ``ingest.device`` and ``ingest.host`` have the bytes `held` by the graph afterwards, and
        the `peak` during construction, both beside the frame. None for an existing graph.
    methods : tuple of MethodEstimate
        Sorted by name. ``estimate["native"]`` returns one by name.
    """

    vertices: int
    edges: int
    memory_space: MemorySpace
    ingest: Footprint | None
    methods: tuple[MethodEstimate, ...]

    @property
    def chosen(self) -> MethodEstimate | None:
        """The method that ``method="auto"`` chooses; None if no method can run."""
        return next((method for method in self.methods if method.chosen), None)

    def __getitem__(self, name: str) -> MethodEstimate:
        by_name = {method.method: method for method in self.methods}
        check_choice("method", name, tuple(by_name))
        return by_name[name]

    def _display(self) -> Display:
        from rich.filesize import decimal as in_units  # lazy import: few calls show a table

        title = (
            f"{counted(self.vertices, 'vertex', 'vertices')}, {counted(self.edges, 'edge')}, on the {self.memory_space}"
        )
        if self.ingest is not None:
            made, space = self.ingest.on(self.memory_space), "GPU" if self.memory_space == "device" else "host"
            title += (
                f"; at most {in_units(made.peak)} of {space} memory to build the graph; it holds {in_units(made.held)}"
            )
        rows = []
        first: dict[str, str] = {}  # method of each reason
        for one in sorted(self.methods, key=lambda method: method.reason is not None):
            sizes = (one.device, one.device_at_most, one.host, one.host_at_most)
            note = "auto takes it" if one.chosen else ""
            if one.reason is not None:
                alike = first.setdefault(one.reason, one.method)
                note = f"cannot run: {one.reason if alike == one.method else f'as {alike}'}"
            rows.append([one.method, *map(in_units, sizes), f"{one.seconds:.2g}", note])
        return Display(title, ["method", "GPU", "at most", "host", "at most", "seconds", ""], rows, left=(0, 6))


def estimate_graph(graph: Edges | Counts, machine: Machine) -> Estimate:
    """Estimate every method for `Edges`, or for their `Counts`; builds nothing."""
    counts = Counts.of(graph)
    chosen, estimates = None, []
    with suppress(MethodUnavailableError):
        chosen = next(contenders(counts, machine, {})).name
    for name, method in methods().items():
        few, many = (footprint(method.memory, counts, many=many) for many in (False, True))
        estimate = MethodEstimate(
            name, name == chosen, unavailable_reason(method, counts, machine), few.device.peak, few.host.peak,
            many.device.peak, many.host.peak, method.cost(counts, machine) if hasattr(method, "cost") else math.nan,
        )  # fmt: skip
        estimates.append(estimate)
    return Estimate(counts.n, counts.m, counts.memory_space, None, tuple(estimates))


# --- from counts alone --------------------------------------------------------------------------------------------


def estimate_counts(
    edges: object, vertices: int | None, weighted: bool, ids: Ids, id_bytes: int, place: MemorySpace
) -> Estimate:
    """Estimate the memory of a graph and its rankings from counts alone: see `prplugin.estimate`."""
    edges = validate_int("edges", edges, least=0)
    vertices = 2 * edges if vertices is None else validate_int("vertices", vertices, least=0)
    check_choice("ids", ids, get_args(Ids))
    check_choice("place", place, get_args(MemorySpace))
    counts = Counts(vertices, edges, weighted, place)
    ingest = _ingest(counts, ids, validate_int("id_bytes", id_bytes, least=0))
    return replace(estimate_graph(counts, this_machine()), ingest=ingest)


def _ingest(graph: Counts, ids: Ids, id_bytes: int) -> Footprint:
    """Bound the bytes of building a graph from a frame, and those that it holds afterwards, as measured."""
    strings, on_device = ids == "string", graph.memory_space == "device"
    one_id = id_bytes + 8 if strings else int(ids[3:]) // 8
    # The graph has an edge list or a CSC layout, never both; but what an edge list is computed from may be kept.
    held = Rate(12, 8, one_id + 16).of(graph)
    if not on_device:  # including hash tables that have just grown
        rates = [Rate(64 + 2 * id_bytes, 8, 240 + 2 * id_bytes)] if strings else [Rate(22, 8, 112)]
        if not strings and not library.is_available():
            rates.append(Rate(92, 8, 16))
    elif strings:
        rates = [Rate(62, 8, 75 + id_bytes)]
    else:  # ids in a hash table, or grouped over a range of one id per edge
        rates = [Rate(20, 8, 60), Rate(41, 24)]
    return Footprint().then(graph.memory_space, held, max(rate.of(graph) for rate in rates))


# --- when memory runs out -----------------------------------------------------------------------------------------


def describe_method_memory(graph: Edges | Counts, name: str, machine: Machine) -> str:
    """Return a message on the memory requirement of a method, the free memory, and methods that need less."""
    found = estimate_graph(graph, machine)
    needed = found[name]
    needs = [f"{needed.host_at_most:,} bytes of {SPACE['host']}, of which {_free('host')}"]
    less = [other for other in found.methods if other.reason is None and other.host_at_most < needed.host_at_most]
    if needed.device:
        needs.insert(0, f"{needed.device:,} bytes of {SPACE['device']}, of which {_free('device')}")
        less = [other for other in found.methods if other.reason is None and other.device < needed.device]
    names = ", ".join(repr(other.method) for other in sorted(less, key=lambda other: (other.device, other.host)))
    remedy = f"Less is needed by {names}. " if names else ""
    return f"method={name!r} needs about {' and '.join(needs)}. {remedy}{runtime.MEMORY_ADVICE}"


def describe_ingest_memory(rows: int, weighted: bool, memory_space: MemorySpace) -> str:
    """Return a message on the memory to build a graph from the rows of a frame, and the free memory."""
    peak = _ingest(Counts(2 * rows, rows, weighted, memory_space), "int64", 0).on(memory_space).peak
    return (
        f"A graph of {counted(rows, 'edge')} with integer ids takes up to {peak:,} bytes of {SPACE[memory_space]} "
        f"while it is built, beside its frame, and {_free(memory_space)}. Drop unused columns, "
        "convert string ids to integers, or rank without weights."
    )


def describe_seeds_memory(seeds: int, n: int) -> str:
    """Return a message on the memory for the ranks of many seeds, and on smaller alternatives."""
    return (
        f"The ranks of {counted(n, 'vertex', 'vertices')} from {counted(seeds, 'seed')} take {8 * seeds * n:,} bytes "
        "in float64. Rank fewer seeds at once, or keep only the highest ranks of each with top=."
    )


def _free(memory_space: MemorySpace) -> str:
    size = runtime.available_bytes() if memory_space == "device" else int(bytes_available())
    return f"{size:,} are free"
