"""Save a graph of this process to a folder, and load it again by mapping its files to memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from prplugin import folders
from prplugin.errors import PageRankWarning, listed
from prplugin.folders import Folder
from prplugin.frames import saved
from prplugin.frames.literals import from_json, to_json
from prplugin.gpu import runtime
from prplugin.graph import stored
from prplugin.graph.edges import Edges
from prplugin.local import LocalGraph
from prplugin.options import EdgeOptions
from prplugin.streams.state import Aging, GraphState, LastRanks
from prplugin.types.arrays import explain_oom, to_host, to_memory

OPTIONS = tuple(each.name for each in fields(EdgeOptions) if each.name != "vertices")

NEWER = {"missing": "error", "by": to_json(None, "by="), "bipartite": to_json(False, "bipartite=")}
"""Options that folders of earlier versions lack."""

CLOCK = "half_life", "window", "now", "kind", "origin", "latest"  # attributes of a `prplugin.frames.times.Clock`

LAST = "last_ranks", "last_personalization", "last_dangling"
"""Arrays of the last ranks and of the vectors of the equation that they solve; None is not saved."""

EXPONENTS = 1 << 42  # limit of the reference exponents of weights that decay: more than `prplugin.streams.decay` makes


def save(graph: LocalGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a folder: see `prplugin.Graph.save`."""
    state = graph.state()
    schema, aging, last = state.schema, state.aging, state.last
    if last is not None and not stored.are_values(to_host(last.ranks)):  # the user has altered the ranks
        last = None

    def fill(folder: Path) -> dict[str, Any]:
        with runtime.device_allocation(graph.memory_space, state.adjacency.gpu):
            arrays, facts = stored.stored(state.adjacency)
        if aging is not None:
            arrays["references"] = to_host(aging.references)
        vectors = {} if last is None else dict(zip(LAST, (last.ranks, *last.equation[1:]), strict=True))
        known = {name: np.asarray(to_host(one), float) for name, one in vectors.items() if one is not None}
        for name, array in (arrays | known).items():
            folders.save_array(folder / f"{name}.npy", array)
        return {
            "version": folders.PACKED_VERSION if "packed" in facts else folders.VERSION,
            "graph": facts,
            "weights": graph.weights_label,
            "unused_weight": to_json(graph.unused_weight, "the label of a column"),
            "options": {name: to_json(getattr(schema, name), f"{name}=") for name in OPTIONS},
            "clock": None if aging is None else [to_json(getattr(aging.clock, name), name) for name in CLOCK],
            "last": None if last is None else [last.equation[0], last.passes, *known],
            "vertices": saved.write(state.vertices, folder),
        }

    folders.write(path, fill)


def load(path: str | os.PathLike[str], *, mapped: bool = True, in_pandas: bool = False) -> LocalGraph:
    """Return the graph in a folder: see `prplugin.Graph.load`.

    `in_pandas`: Whether results are pandas frames, of the library of the edges if not.
    """
    with explain_oom(lambda: "With mapped=True files are read as far as they are used."):
        folder = Folder(path, mapped=mapped)
    try:
        return _load(folder, in_pandas=in_pandas)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError) as error:
        raise folder.damaged(error) from error


def _load(folder: Folder, *, in_pandas: bool) -> LocalGraph:
    manifest, types = folder.manifest, _types_of(folder.manifest)
    facts = manifest["graph"]
    expected = {*(f"{name}.npy" for name in types), saved.FILE}
    if unknown := expected ^ {*manifest["files"]}:
        raise ValueError(f"it lacks, or should not have, {listed(sorted(unknown))}")
    arrays = {name: folder.array(name, *allowed) for name, allowed in types.items()}

    def check() -> None:
        try:
            folder.verify(expected - {saved.FILE})
            stored.check(arrays, facts)
            references = arrays.get("references", np.zeros(1))
            if references.size and not -EXPONENTS < references.min() <= references.max() < EXPONENTS:
                raise ValueError("references holds exponents that no weights have")
            stored.check_values(arrays, *LAST)  # their sums are not checked, since they are divided by
        except ValueError as error:
            raise folder.damaged(error) from error

    adjacency = stored.restored(arrays, facts)
    if facts["memory_space"] == "device":
        check()  # before a kernel of the GPU reads them
        adjacency = _on_gpu_if_there(adjacency, folder.name, needs_cudf=manifest["vertices"]["in_cudf"])
    space, last = adjacency.memory_space, None
    if manifest["last"] is not None:
        ranks, v, w = (to_memory(arrays.get(name), space) for name in LAST)
        alpha, passes = manifest["last"][:2]
        last = LastRanks((alpha, v, w), ranks, passes)
    state = GraphState(
        adjacency,
        saved.read(manifest["vertices"], folder, facts["n"], space, in_pandas=in_pandas),
        EdgeOptions(**{name: from_json((NEWER | manifest["options"])[name]) for name in OPTIONS}),
        _aging(manifest["clock"], arrays),
        last,
    )
    unused_weight = from_json(manifest["unused_weight"])
    return LocalGraph(state, str(manifest["weights"]), unused_weight=unused_weight, check=check)


def _types_of(manifest: dict[str, Any]) -> dict[str, tuple[Collection[np.dtype[np.generic]], int]]:
    """Return the possible types and the size of each array of a graph; raise ValueError for what no graph has."""
    facts, last = manifest["graph"], manifest["last"]
    types: dict[str, Any] = {**stored.types_of(facts)}
    if manifest["clock"] is not None:
        types["references"] = ((stored.LONG,), facts["n"])
    if last is not None:
        alpha, passes, *names = last
        if type(alpha) is not float or not 0 <= alpha < 1 or type(passes) is not int or names[:1] != ["last_ranks"]:
            raise ValueError(f"the last ranks are those of {last!r}")
        types |= dict.fromkeys(names, ((stored.FLOAT,), facts["n"]))
    return types


def _aging(clock: Any, arrays: dict[str, Any]) -> Aging | None:
    if clock is None:
        return None
    from prplugin.frames.times import Clock  # imports pandas

    return Aging(Clock(**dict(zip(CLOCK, map(from_json, clock), strict=True))), arrays["references"])


def _on_gpu_if_there(adjacency: Edges, name: str, *, needs_cudf: bool) -> Edges:
    """Return a copy of the graph in the memory of the GPU; the graph itself, with a warning, if there is none."""
    if reason := runtime.unavailable_reason() or (needs_cudf and find_spec("cudf") is None and "cuDF is not installed"):
        message = f"{name} was saved from the memory of a GPU, and is loaded to that of the host: {reason}."
        warnings.warn(message, PageRankWarning, stacklevel=5)
        return adjacency
    with runtime.device_allocation("device"):
        return adjacency.on("device")
