"""Every kernel with random valid arguments: it writes only what it may, the same bits on any number of threads.

`.ci/sanitize` runs this on a library that checks every access and every operation on integers.

A kernel is tested here by an entry in `INPUTS`: a function of a `Draw` that returns the sizes of dimensions, and the
arguments whose values matter, by name. Others are drawn: numbers in [0, 1) for floats, zeros for integers, None for some
optional arrays, 1 to 3 threads. Arrays named `scratch` may differ between numbers of threads.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from typing import Any

import numpy as np
import pytest
from bv_files import Writer, gamma, packed, random_graph

import prplugin.cpu
import prplugin.papers
from prplugin.cpu import kernels, packing, sums
from prplugin.cpu.library import VARIABLES, Kernel
from prplugin.io.webgraph import CODES, PARTS
from prplugin.methods.engines.packed_rows import Rows, joined

SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 257, 1000, 5000]
"""With widths of vectors and sizes of blocks, plus and minus one."""

BEYOND_32_BITS = 2**31 + 5


class Draw:
    """Random numbers for the arguments of one call.

    With `first`, compressed rows begin there, and optional arrays are None: they may be as long as the edges.
    """

    def __init__(self, size: int, types: dict[str, str], seed: int, first: int | None = None) -> None:
        self.size, self.types, self.first = size, types, first or 0
        self.has_optional = first is None
        self.random = np.random.default_rng(seed)

    def integers(self, high: int, size: Any, dtype: str = "i8") -> Any:
        """Return integers below `high`, or zeros if there are none; `dtype` may be a type variable."""
        return self.random.integers(0, max(high, 1), size).astype(self.types.get(dtype, dtype))

    def one_of(self, *values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def rows(self, rows: int, columns: int, dtype: str) -> tuple[Any, Any]:
        """Return offsets and indices of compressed rows, some empty and one long, that begin at `first`."""
        lengths = self.random.integers(0, 5, rows) * (columns > 0)
        if rows and columns:
            lengths[self.random.integers(rows)] = self.random.integers(2000)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype="i8")))
        # Pages of zeros that nothing touches take no memory.
        indices = np.zeros(self.first + offsets[-1], self.types.get(dtype, "i8"))
        indices[self.first :] = self.integers(columns, offsets[-1])
        return offsets + self.first, indices


def iterate(draw: Draw) -> dict[str, Any]:
    n, size = draw.size, max(draw.size, 1)
    lumps = int(n > 0 and draw.has_optional and draw.one_of(0, 1))
    offsets, sources = draw.rows(n, n - lumps, "I")
    order = np.append(sums.order_rows(offsets[: n + 1 - lumps], 1), np.zeros(lumps, np.uint8))
    period, cycles = draw.one_of((0, 0), (2, 1), (5, 2), (8, 2)) if draw.has_optional else (0, 0)
    history = ... if cycles else None
    unpacked = {"data": None, "begins": None, "piece_rows": None, "packed_sums": None, "continued": None, "bits": 0}
    if draw.types["I"] == "i4" and draw.one_of(0, 1) and draw.has_optional:
        known = packed_rows(offsets, sources) | {"offsets": None, "sources": None, "weights": None, "order": None}
    else:
        known = unpacked | {"offsets": offsets, "sources": sources, "order": order}
    return known | {
        "n": n, "m": sources.size, "budget": 40, "rows": max(period * cycles + cycles - 1, 0), "target": np.full(draw.one_of(1, size), 1 / size),
        "teleport": np.full(draw.one_of(1, size), 0.15 / size), "alpha": 0.85, "fan_in": 32, "memory": np.zeros(704),
        "norm": 1.0, "goal": draw.one_of(-1.0, 1e-6), "period": period, "cycles": cycles,
        "history": history, "scratch": history, "lump_scale": 0.5,
        "outside": np.full(n, draw.random.random()) if lumps else None,
    }  # fmt: skip


def sum_rows(draw: Draw) -> dict[str, Any]:
    offsets, sources = draw.rows(draw.size, draw.size, "I")
    return {"n": draw.size, "m": sources.size, "all": draw.size, "offsets": offsets, "sources": sources, "fan_in": 32}


def packed_rows(offsets: Any, sources: Any) -> dict[str, Any]:
    """Return packed edges by the names of arguments of kernels."""
    n = offsets.size - 1
    rows = joined([Rows(offsets, sources, None)], 1)
    return {
        "data": rows.data, "begins": rows.begins, "piece_rows": rows.rows, "bits": packing.bits_of(n),
        "bytes": rows.data.size, "pieces": rows.rows.size, "packed_sums": np.zeros(n), "continued": np.zeros(rows.rows.size),
    }  # fmt: skip


def unpack_pieces(draw: Draw) -> dict[str, Any]:
    offsets, sources = draw.rows(draw.size, draw.size, "i4")
    known = packed_rows(offsets, sources)
    data, begins = known["data"], known["begins"][:-1]
    firsts = np.append(0, np.cumsum(data[begins] + 256 * data[begins + 1].astype("i8")))
    damaged = draw.one_of(0, 1)
    if damaged and sources.size:
        data = data.copy()
        data[draw.integers(data.size, 20)] = draw.integers(256, 20)
    is_given = draw.one_of(..., None)
    return known | {
        "n": draw.size, "rows": known["piece_rows"], "data": data, "firsts": firsts, "m": sources.size, "sources": is_given,
        "in_degrees": None if is_given is None else np.zeros(draw.size, "i8"),
    }  # fmt: skip


def order_rows(draw: Draw) -> dict[str, Any]:
    return {"n": draw.size, "offsets": draw.rows(draw.size, draw.size, "I")[0]}


def step_rows(draw: Draw) -> dict[str, Any]:
    n, (offsets, sources) = draw.size, draw.rows(draw.size, draw.size, "I")
    known = {"n": n, "m": sources.size, "offsets": offsets, "sources": sources, "target": np.full(1, 1 / max(n, 1))}
    more = {"all": draw.size, "teleport": np.full(1, 0.1), "alpha": 0.85, "fan_in": 32, "dangling": 0.1}
    return known | more


def count_ids(draw: Draw) -> dict[str, Any]:
    n, parts = draw.size, draw.one_of(1, 2, 3)
    ids = draw.integers(n, 3 * n, "I") - np.array(7, draw.types["I"])
    return {"m": 3 * n, "n": n, "parts": parts, "ids": ids, "low": -7}


def add_compensated(draw: Draw) -> dict[str, Any]:
    n = draw.size
    return {"k": 3 * n, "n": n, "groups": draw.integers(n, 3 * n, "I")}


def scatter(draw: Draw) -> dict[str, Any]:
    n = draw.size
    targets = draw.integers(n, 3 * n, "I")
    places = np.cumsum(np.bincount(targets, minlength=n)) - np.bincount(targets, minlength=n)
    weights = draw.one_of(..., None)
    return {
        "k": 3 * n, "n": n, "m": 3 * n, "sources": draw.integers(n, 3 * n, "I"), "targets": targets,
        "places": places, "weights": weights, "placed_weights": weights,
    }  # fmt: skip


def batch(draw: Draw) -> dict[str, Any]:
    n, width, tiles = draw.size, 16 if draw.types["F"] == "f4" else 8, draw.one_of(1, 3)
    offsets, sources = draw.rows(n, n, "I")
    teleport_rows = draw.integers(3, n) - 1
    rows = np.flatnonzero(teleport_rows >= 0)
    seeds, entries = tiles * width, rows.size
    return {
        "n": n, "m": sources.size, "width": width, "tiles": tiles, "columns": seeds, "teleports": 2,
        "seeds": seeds, "entries": entries, "movers": tiles, "teleport_rows": teleport_rows, "rows": rows,
        "bounds": np.sort(draw.integers(entries + 1, seeds + 1)),
        "offsets": offsets, "sources": sources, "fan_in": 32, "alpha": 0.85,
        "chosen": draw.random.permutation(tiles * width) - draw.one_of(0, 1), "goal": draw.one_of(0.0, 0.01), "budget": 17,
    }  # fmt: skip


def extremes(draw: Draw) -> dict[str, Any]:
    m = 3 * draw.size
    return {"m": m, "parts": draw.one_of(1, 2, 3), "ids": draw.integers(100, m, "I"), "flip": draw.one_of(0, -(2**63))}


def factorize_few(draw: Draw) -> dict[str, Any]:
    count, edges = 6 * draw.size, draw.one_of(..., None)
    return {
        "count": count, "size": 1 << (2 * count).bit_length(), "values": draw.integers(draw.size, count, "I"),
        "flip": draw.one_of(0, -(2**63)), "offsets": edges, "indices": edges, "degrees": edges,
    }  # fmt: skip


def texts(draw: Draw) -> dict[str, Any]:
    n = draw.size
    offsets = np.append(0, np.cumsum(draw.integers(20, n)))
    data, known = draw.integers(3, offsets[-1], "u1"), np.stack([np.arange(n), offsets[:-1], np.diff(offsets)], axis=1)
    return {
        "n": n, "bytes": data.size, "count": n, "most": n + 64, "size": 1 << (2 * n + 128).bit_length(), "first": 0,
        "last": n, "data": data, "offsets": offsets.astype(draw.types.get("I", "i8")), "known": known,
    }  # fmt: skip


def factorize_strings(draw: Draw) -> dict[str, Any]:
    return {name: value for name, value in texts(draw).items() if name not in ("known", "count")}


def map_ids(draw: Draw) -> dict[str, Any]:
    n, m = draw.size, 3 * draw.size
    bounds = np.arange(4) * m // 3
    return {
        "m": m, "n": n, "ids": draw.integers(n, m, "I") - np.array(7, draw.types["I"]), "low": -7, "firsts": bounds[:-1],
        "lasts": bounds[1:], "positions": draw.one_of(None, draw.integers(n, n, "K")),
    }  # fmt: skip


def partition_edges(draw: Draw) -> dict[str, Any]:
    n, m, shift, low = max(draw.size, 1), 3 * draw.size, draw.one_of(0, 1, 8), np.array(-7, draw.types["I"])
    weights = draw.one_of(..., None)
    return {
        "m": m, "buckets": (n - 1 >> shift) + 1, "pieces": draw.one_of(1, 2, 5), "rows": draw.integers(n, m, "I") + low,
        "columns": draw.integers(n, m, "I") + low, "weights": weights, "bucket_weights": weights, "low": -7,
        "shift": shift, "bits": n.bit_length(),
    }  # fmt: skip


def sort_buckets(draw: Draw) -> dict[str, Any]:
    n, m, shift = max(draw.size, 1), 3 * draw.size, draw.one_of(0, 1, 8)
    buckets, bits, weights = (n - 1 >> shift) + 1, n.bit_length(), draw.one_of(..., None)
    rows = np.sort(draw.integers(n, m) >> shift)
    within = draw.integers(np.minimum(1 << shift, n - (rows << shift)).min(initial=n), m)
    return {
        "buckets": buckets, "m": m, "n": n, "bounds": np.searchsorted(rows, np.arange(buckets + 1)), "shift": shift,
        "bits": bits, "pairs": within << bits | draw.integers(n, m), "bucket_weights": weights, "weights": weights,
        "order": draw.random.permutation(buckets),
    }  # fmt: skip


def graph_rows(draw: Draw) -> dict[str, Any]:
    """Return the rows of a square matrix; out-weights are at least the sums of the weights."""
    n = draw.size
    offsets, indices = draw.rows(n, n, "I")
    return {
        "n": n, "rows": n, "size": indices.size, "begins": offsets[:-1].copy(), "ends": offsets[1:].copy(),
        "indices": indices, "out_weight": np.diff(offsets).astype(float),
    }  # fmt: skip


def find_pairs(draw: Draw) -> dict[str, Any]:
    n, pairs = draw.size, 3 * draw.size
    return graph_rows(draw) | {"pairs": pairs, "rows": draw.integers(n, pairs), "columns": draw.integers(n, pairs)}


def changed_rows(draw: Draw) -> dict[str, Any]:
    """Return some rows, entries to remove, in ascending order within a row, and entries to add."""
    n = draw.size
    rows = draw.random.permutation(n)[: draw.one_of(n, n // 2)]
    removed_at, removed = draw.rows(rows.size, n, "i8")
    added_at, added = draw.rows(rows.size, n, "i8")
    for first, last in itertools.pairwise(removed_at):
        removed[first:last].sort()
    return {
        "changed": rows.size, "rows": rows, "removals": removed.size, "removed_at": removed_at, "removed": removed,
        "additions": added.size, "added_at": added_at, "added": added,
    }  # fmt: skip


def rewrite_rows(draw: Draw) -> dict[str, Any]:
    known, changes = graph_rows(draw), changed_rows(draw)
    rewritten = np.zeros(
        int((known["ends"] - known["begins"])[changes["rows"]].sum()) + changes["additions"], known["indices"].dtype
    )
    weights = draw.one_of(..., None)
    more = {"indices": np.concatenate([known["indices"], rewritten]), "at": known["size"], "weights": weights}
    more |= {"size": more["indices"].size, "removed_weights": weights, "added_weights": weights}
    if weights is not None:
        more["removed_weights"] = np.full(changes["removals"], np.nan)
    return known | changes | more


def change_rows(draw: Draw) -> dict[str, Any]:
    return changed_rows(draw) | {"n": draw.size, "alpha": 0.85, "depth": 3}


def compact_rows(draw: Draw) -> dict[str, Any]:
    known, weights = graph_rows(draw), draw.one_of(..., None)
    offsets = np.append(0, known["ends"])
    return known | {"capacity": known["size"], "offsets": offsets, "weights": weights, "new_weights": weights}


def commit_rows(draw: Draw) -> dict[str, Any]:
    rows = draw.random.permutation(draw.size)[: draw.size // 2]
    return {"n": draw.size, "count_change": 5, "changed": rows.size, "rows": rows}


def pushes(draw: Draw) -> dict[str, Any]:
    n = draw.size
    listed, some = draw.random.permutation(n).astype(draw.types["I"]), n // 2
    is_listed = np.zeros(n, "u1")
    is_listed[listed[:some]] = 1
    return graph_rows(draw) | {
        "listed": listed, "count": np.array([some]), "is_listed": is_listed, "listed_from": draw.one_of(0.0, 0.1),
        "goal": 1e-3, "ratio": draw.one_of(0.0, 1e-3), "budget": 1e4, "trial": draw.one_of(10.0, 1e4), "threshold": 0.1, "relaxation": 1.2,
        "alpha": 0.85, "depth": 3, "sums": np.zeros(3),
    }  # fmt: skip


def collect_listed(draw: Draw) -> dict[str, Any]:
    n, some = draw.size, draw.size // 2
    listed = draw.random.permutation(n)[:some].astype(draw.types["I"])
    return {"count": some, "n": n, "listed": listed, "clear": draw.one_of(0, 1)}


def residual(draw: Draw) -> dict[str, Any]:
    return {"n": draw.size, "c": 0.1, "center": draw.one_of(0, 1), "sum_r": 0.1, "sum_y": 2.0}


def sum_runs(draw: Draw) -> dict[str, Any]:
    offsets, places = draw.rows(draw.size, draw.size, "I")
    parts = draw.one_of(0, min(draw.size, 3), draw.size)
    long = draw.one_of(1, 3) if parts else 0
    return {
        "parts": parts, "whole": draw.size - parts, "edges": places.size, "sources": draw.size, "long": long,
        "part_bounds": offsets[: parts + 1], "bounds": offsets[parts:], "places": places,
        "runs_of": np.arange(long + 1) * parts // max(long, 1),
        "pieces": np.array([[0, draw.size // 3], [draw.size // 3, draw.size]]),
    }  # fmt: skip


def sort_rows(draw: Draw) -> dict[str, Any]:
    n, weights = draw.size, draw.one_of(..., None)
    offsets, sources = draw.rows(n, n, "I")
    rows = draw.random.permutation(n)
    starts = np.append(0, np.cumsum(np.diff(offsets)[rows]))
    return {
        "count": n, "n": n, "m": sources.size, "edges": sources.size, "rows": rows, "starts": starts, "offsets": offsets,
        "sources": sources, "position": draw.one_of(None, draw.random.permutation(n).astype(sources.dtype)),
        "weights": weights, "sorted_weights": weights, "scratch_weights": weights,
    }  # fmt: skip


def paper_rows(draw: Draw) -> dict[str, Any]:
    """Return compressed rows; sources have out-edges."""
    offsets, sources = draw.rows(draw.size, draw.size, "I")
    degrees = 1 + draw.integers(9, draw.size, "i4")
    return {"n": draw.size, "m": sources.size, "offsets": offsets, "sources": sources, "out_degrees": degrees}


def divided_tails(draw: Draw) -> dict[str, Any]:
    blocks = draw.one_of(1, 2, 7)
    return paper_rows(draw) | {"blocks": blocks, "limits": draw.integers(3, blocks)}


def update_scores(draw: Draw) -> dict[str, Any]:
    first, last = sorted(draw.integers(draw.size + 1, 2).tolist())
    numbers = {"rest": 0.15, "damping": 0.85, "epsilon": draw.one_of(0.0, 0.5), "keep": draw.one_of(0, 1)}
    return paper_rows(draw) | numbers | {"first": first, "last": last}


def pack_parts(draw: Draw) -> dict[str, Any]:
    starts, sources = draw.rows(draw.size, draw.size, "I")
    begins = np.unique([0, draw.integers(sources.size, 1)[0], sources.size])
    longest = int(np.diff(begins).max(initial=0))
    pieces = -(-longest // packing.PIECE)
    return {
        "rows": draw.size, "edges": sources.size, "parts": begins.size - 1, "pieces": pieces, "starts": starts,
        "width": packing.MAX_EDGE_BYTES * longest + packing.MAX_PIECE_BYTES * pieces, "sources": sources,
        "bits": max(draw.size, 1).bit_length(), "begins": begins,
    }  # fmt: skip


def webgraph(draw: Draw) -> dict[str, Any]:
    n, window, shortest = min(draw.size, 300), draw.one_of(0, 7), draw.one_of(0, 1, 4)
    residuals = draw.one_of(*CODES)
    k = 3 if residuals in ("ZETA", "GOLOMB") else 0
    codes = dict(zip(PARTS, ["GAMMA", "UNARY", "GAMMA", "GAMMA", "GAMMA", residuals], strict=True))
    rows, writer = random_graph(draw.random, n), Writer(codes, 3, window, shortest)
    records = [writer.record(draw.random, v, rows) for v in range(n)]
    content = np.frombuffer(packed("".join(records)), np.uint8)
    degrees = np.array([len(row) for row in rows], np.int64)
    pieces, parts, width = draw.one_of(1, 2, 5), draw.one_of(1, 2, 3), 3 * int(degrees.max(initial=0))
    positions = np.append(0, np.cumsum([len(record) for record in records], dtype=np.int64))
    codes_given = np.array([CODES.index(code) for code in codes.values()], np.int64)
    codes_given[-1] += 8 * k
    bounds = np.arange(pieces + 1) * n // pieces
    given = {
        "size": content.size, "n": n, "m": int(degrees.sum()), "pieces": pieces, "parts": parts, "width": width,
        "bytes": content, "codes": codes_given, "window": window, "shortest": shortest, "bounds": bounds,
        "positions": positions, "offsets": np.append(0, np.cumsum(degrees)),
    }  # fmt: skip
    kernels.bv_cuts(content, codes_given, window, positions, bounds)
    return given


def webgraph_degrees(draw: Draw) -> dict[str, Any]:
    given = webgraph(draw) | {"known": (known := draw.one_of(0, 1))}
    n = given["n"]
    return given if known else given | {"pieces": 1, "bounds": np.array([0, n]), "positions": np.zeros(n + 1, np.int64)}


def webgraph_positions(draw: Draw) -> dict[str, Any]:
    gaps = "".join(map(gamma, [0, *draw.integers(1000, draw.size).tolist()]))
    content = np.frombuffer(packed(gaps), np.uint8)
    return {"size": content.size, "n": draw.size, "bytes": content, "code": 1}


def check_arcs(draw: Draw) -> dict[str, Any]:
    parts = draw.one_of(1, 2, 3)
    offsets, indices = draw.rows(draw.size, draw.size, "I")
    bounds = np.sort(np.append(draw.integers(draw.size, parts - 1), [0, draw.size]))
    width = draw.one_of(0, draw.size) if draw.has_optional else 0
    return {
        "n": draw.size, "m": indices.size, "parts": parts, "width": width, "offsets": offsets, "indices": indices,
        "bounds": bounds, "wanted": draw.one_of(1, 2, 3),
    }  # fmt: skip


INPUTS = {
    "check_arcs": check_arcs,
    "bv_positions": webgraph_positions,
    "bv_degrees": webgraph_degrees,
    "bv_cuts": webgraph,
    "bv_decode": webgraph,
    "iterate": iterate,
    "sum_rows": sum_rows,
    "order_rows": order_rows,
    "step_rows": step_rows,
    "count_ids": count_ids,
    "enter_strings": texts,
    "factorize_strings": factorize_strings,
    "add_compensated": add_compensated,
    "scatter": scatter,
    "batch_begin": batch,
    "batch_step": batch,
    "batch_sweep": batch,
    "extremes": extremes,
    "factorize_few": factorize_few,
    "map_ids": map_ids,
    "partition_edges": partition_edges,
    "sort_buckets": sort_buckets,
    "find_pairs": find_pairs,
    "rewrite_rows": rewrite_rows,
    "compact_rows": compact_rows,
    "commit_rows": commit_rows,
    "add_contributions": pushes,
    "push_listed": pushes,
    "collect_listed": collect_listed,
    "push_all": pushes,
    "change_rows": change_rows,
    "residual_norms": residual,
    "residual_ranks": residual,
    "sum_runs": sum_runs,
    "sort_rows": sort_rows,
    "divided_tails": divided_tails,
    "update_scores": update_scores,
    "pack_parts": pack_parts,
    "unpack_pieces": unpack_pieces,
}

WITH_OFFSETS = ["iterate"]
"""Kernels that read compressed rows in place, wherever the offsets say."""


COUNTING = {
    "bv_positions", "iterate", "factorize_few", "factorize_strings", "rewrite_rows", "push_listed", "push_all", "update_scores"
}  # fmt: skip
"""Kernels whose result is a number of something; others return 0."""


def all_kernels() -> dict[str, Kernel]:
    """Return the kernels that any module of the package declares."""
    found = {}
    for package in (prplugin.cpu, prplugin.papers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            declared = vars(importlib.import_module(module.name)).values()
            found |= {each.name: each for each in declared if isinstance(each, Kernel)}
    return found


KERNELS = all_kernels()
VARIANTS = [
    (name, types)
    for name, kernel in ((name, KERNELS[name]) for name in INPUTS)
    for types in itertools.product(*(VARIABLES[variable] for variable in kernel.variables))
]


def arguments(kernel: Kernel, draw: Draw) -> dict[str, Any]:
    """Return all arguments of a call by name."""
    given = INPUTS[kernel.name](draw)
    drawn: dict[str, Any] = {}
    for parameter in kernel.parameters:
        name = parameter.name
        wanted = given.get(name, ...)
        if wanted is ... and not parameter.is_array:
            wanted = {"threads": 1}[name]
        if wanted is ... and parameter.optional and name not in given and not draw.has_optional & draw.one_of(0, 1):
            wanted = None
        if wanted is ...:
            shape = [-(-given.get(size, 0) // divisor) + more for size, more, divisor in parameter.dimensions]
            dtype = draw.types.get(parameter.dtype, parameter.dtype)
            wanted = draw.random.random(shape).astype(dtype) if dtype[0] == "f" else np.zeros(shape, dtype)
        drawn[name] = wanted
    return drawn


def call(kernel: Kernel, drawn: dict[str, Any], threads: int) -> tuple[int, dict[str, Any]]:
    """Call a kernel on copies of what it writes; return its result and these copies."""
    written = {
        each.name: drawn[each.name].copy()
        for each in kernel.parameters
        if each.written and drawn[each.name] is not None
    }
    passed = drawn | written | ({"threads": threads} if "threads" in drawn else {})
    before = {
        name: array.copy() for name, array in passed.items() if isinstance(array, np.ndarray) and array.size < 1e6
    }
    result = kernel(**passed)
    for name in before.keys() - written.keys():
        np.testing.assert_array_equal(passed[name], before[name], err_msg=f"{kernel.name} wrote to {name}")
    return result, {name: array for name, array in written.items() if "scratch" not in name}


def test_every_kernel_is_tested():
    assert KERNELS.keys() - INPUTS.keys() == {"insert_ids"}  # its slots depend on the number of threads


@pytest.mark.parametrize("types", [("i4", "i4"), ("i4", "i8"), ("i8", "i4"), ("i8", "i8")])
@pytest.mark.parametrize("threads", [1, 2, 3, 100])
def test_ids_are_inserted(types, threads):
    for seed, size in enumerate(SIZES):
        random = np.random.default_rng(seed)
        ids = np.append(random.choice(size + 1, 3 * size), np.iinfo("i8").min * (types[0] == "i8")).astype(types[0])
        bits = (4 * ids.size).bit_length()
        slots, codes = np.full((1 << bits) + 1, np.iinfo("i8").min), np.zeros(ids.size, types[1])
        ends = np.arange(1, 4) * ids.size // 3
        done = np.append(0, ends[:-1])
        added, limit = 0, int(random.integers(1, 2 * size + 2))
        while (done < ends).any():
            found = KERNELS["insert_ids"](ids, done, slots, bits, codes, limit, threads)
            assert found <= limit
            added, limit = added + found, limit + 100
        ordinary = ids[ids != np.iinfo("i8").min]
        assert added == np.unique(ordinary).size
        assert (slots[codes[ids != np.iinfo("i8").min]] == ordinary).all()
        assert (codes[ids == np.iinfo("i8").min] == 1 << bits).all()


@pytest.mark.parametrize(("name", "types"), VARIANTS, ids=["_".join((name, *types)) for name, types in VARIANTS])
def test_random_arguments(name, types):
    kernel = KERNELS[name]
    for seed, size in enumerate(SIZES * 2):
        drawn = arguments(kernel, Draw(size, dict(zip(kernel.variables, types, strict=True)), seed))
        expected, alone = call(kernel, drawn, 1)
        assert expected == 0 or name in COUNTING
        several = (2, 3, 100) if seed < len(SIZES) else (2, 3)  # a hundred threads take longer to start than to work
        for threads in several if "threads" in drawn else ():
            result, together = call(kernel, drawn, threads)
            assert result == expected, (seed, size, threads)
            for array in alone:
                np.testing.assert_array_equal(together[array], alone[array], err_msg=f"{array}: {seed, size, threads}")


@pytest.mark.parametrize("name", WITH_OFFSETS)
def test_offsets_beyond_32_bits(name):
    kernel = KERNELS[name]
    types = {variable: VARIABLES[variable][0] for variable in kernel.variables}
    near = arguments(kernel, Draw(100, types, seed=1, first=0))
    try:
        far = arguments(kernel, Draw(100, types, seed=1, first=BEYOND_32_BITS))
    except MemoryError:
        pytest.skip("needs 9 GB of address space")
    expected, arrays = call(kernel, near, 2)
    result, others = call(kernel, far, 2)
    assert result == expected
    for array in arrays:
        np.testing.assert_array_equal(others[array], arrays[array])
