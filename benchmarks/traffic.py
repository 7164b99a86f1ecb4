"""Required bytes of each kernel: every input read once and every output written once.

The bytes follow from the arguments of a launch, by their names in the .cu file; an argument that is read and written is
named twice. Gathered contributions count once per vertex, counters once read and once written. Bytes that a kernel
moves in addition, such as the unused parts of sectors, are counted by ncu. Tickets, totals and the reads of searches
are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from prplugin.gpu import runtime

__all__ = ["BYTES", "COUNTED", "kernel_names", "parameters", "required_bytes"]

COUNTED = (
    "gpu/binned_sizes.cu", "gpu/blocks.cu", "gpu/dense_ids.cu", "gpu/exact_sums.cu", "gpu/one_block.cu",
    "gpu/grouped.cu", "gpu/offsets.cu", "gpu/pairs.cu", "gpu/run_sums.cu", "gpu/sort.cu", "gpu/sparse_ids.cu",
    "papers/block.cu", "methods/propagation_blocking.cu", "gpu/cut.cu", "papers/dense.cu",
    "papers/edge.cu", "papers/expanded.cu", "gpu/finish.cu", "gpu/merge_start.cu",
    "papers/node.cu",
    "methods/persistent.cu", "gpu/normalized_weights.cu", "papers/warp.cu",
)  # fmt: skip
"""Files whose kernels have a formula. Kernels of `cpu_split.cu` and `streamed.cu` are limited by the host; those of
`strings.cu` read strings of any length."""


def _row_spans(a: Mapping[str, Any]) -> int:
    """Return the bytes of the row spans that are scattered first, in proportion to those of all."""
    moved = sum(a[name].nbytes for name in ("bounds", "tile_sources", "chunk_by_piece", "values", "from"))
    return moved * int(a["row_spans"]) * 3 // a["bounds"].size


def _pull(a: Mapping[str, Any]) -> int:
    """Return the bytes of indices and normalized weights per edge, offsets per row, contributions and sums."""
    runs = slice(a["first"], a["last"])
    count = int(a["last"] - a["first"])
    edges = int((a["ends"][runs] - a["begins"][runs]).sum())
    per_edge = int(a["sources"].itemsize + (0 if a["normalized_weights"] is None else a["normalized_weights"].itemsize))
    offset = int(a["begins"].itemsize)
    offsets = (count + 1) * offset if a["rows"] is None else count * (2 * offset + int(a["rows"].itemsize))
    return edges * per_edge + offsets + int(a["contributions"].nbytes) + count * int(a["row_sums"].itemsize)


def _place(a: Mapping[str, Any]) -> int:
    """Return the bytes of keys and slots read, and ids and positions written; the table of positions is larger."""
    return _named("keys slots slots ids", a)


def _recode(a: Mapping[str, Any]) -> int:
    """Return the bytes of the codes, and of the positions, which have the type of the slots in an array of keys."""
    return _named("a a b b c c", a) + int(a["positions"].size * a["a"].itemsize)


BYTES: dict[str, str | Callable[[Mapping[str, Any]], int]] = {
    # Graph construction.
    "dense_ids.extremes": "a b c weights",
    "dense_ids.mark": "a b c bits",
    "dense_ids.count_marks": "bits marks",
    "dense_ids.encode": "a b c marks codes_a codes_b codes_c ids",
    "sparse_ids.sketch": "a b c",
    "sparse_ids.insert": "a b c table slots_a slots_b slots_c",
    "sparse_ids.collect": "table keys slots",
    "sparse_ids.place": _place,
    "sparse_ids.recode": _recode,
    "one_block.factorize_one_block": "a b c codes ids",
    "one_block.group_one_block": "groups values weights begins values_out weights_out",
    "grouped.mark_endpoints": "ins outs bits",
    "grouped.compact": "marks ins outs ids ins_by_position out_weights",
    "grouped.compact_codes": "codes codes marks",
    "sort.digit_counts": "keys states",
    "sort.sort_pass": "keys keys_out values values_out weights weights_out states next_states",
    "offsets.offsets": "rows begins",
    "offsets.group_sizes": "rows sizes sizes",
    "offsets.group_of_rows": "begins rows",
    "binned_sizes.bin_rows": "rows begins binned",
    "binned_sizes.binned_sizes": "rows begins sizes sizes",
    "exact_sums.add_exactly": "rows weights sums sums",
    "exact_sums.rounded": "sums values",
    "run_sums.run_sums": "offsets values sums partials",
    "run_sums.crossing_sums": "partials",
    "pairs.pair_keys": "tails heads keys",
    "pairs.mark_repeated": "keys rows",
    "pairs.keep_rows": "marks kept_tails kept_tails kept_heads kept_heads kept_weights kept_weights",
    # Layouts of methods.
    "cut.cut": "cuts",
    "blocks.count_tiles": "sources begins next batches",
    "blocks.by_tile": "sources targets sources_out targets_out edges_out",
    "blocks.count_cells": "begins sources targets cells out_degrees",
    "blocks.cell_chunks": "cells in_tile in_piece tile_begins piece_begins",
    "blocks.place_cells": "in_tile in_tile in_piece in_piece",
    "blocks.by_piece": "sources targets edges next next later tile_sources piece_rows piece_edges",
    "blocks.finish_cells": "counts next later chunk_by_piece",
    "blocks.mark_all": "marks",
    "blocks.in_degrees": "piece_rows in_degrees",
    "blocks.endpoints": "chunk_by_piece tile_sources piece_rows sources targets",
    "blocks.arrange_normalized_weights": "piece_edges normalized_weights arranged",
    "normalized_weights.normalized_weights": "sources weights out_weights normalized_weights",
    # One iteration.
    "merge_start.merge_start": "out_weight given in_degrees tails ranks inverse_out_weight contributions",
    "persistent.persist": "cuts offsets sources normalized_weights target teleport inverse_out_weight "
    "ranks ranks from to",
    "propagation_blocking.propagate": "marks bounds tile_sources chunk_by_piece piece_rows values values "
    "normalized_weights unit_bounds target teleport inverse_out_weight ranks ranks from to",
    "propagation_blocking.scatter_row_spans": _row_spans,
    "node.node_pull": _pull,
    "warp.warp_pull": _pull,
    "block.block_pull": _pull,
    "edge.edge_push": "sources targets normalized_weights contributions row_sums row_sums",
    "dense.dense_pull": "matrix contributions row_sums",
    "expanded.expand": "sources contributions expanded",
    "expanded.sum_expanded": "rows starts heads expanded normalized_weights row_sums partials",
    "expanded.collect": "heads partials",
    "finish.inverse_out_weight": "out_weight inverse_weight",
    "finish.begin": "ranks inverse_out_weight contributions",
    "finish.finish": "row_sums target teleport inverse_out_weight ranks ranks contributions",
    "finish.total": "partials",
}


def required_bytes(kernel: str, arguments: Mapping[str, Any]) -> int | None:
    """Return the required bytes of a launch; None for a kernel without a formula.

    Parameters
    ----------
    kernel : str
        File and function name, such as "sort.sort_pass".
    arguments : mapping
        By name: arrays of NumPy or CuPy, numbers, and None or 0 for an array that is absent.
    """
    formula = BYTES.get(kernel)
    if formula is None:
        return None
    return _named(formula, arguments) if isinstance(formula, str) else formula(arguments)


def _named(names: str, arguments: Mapping[str, Any]) -> int:
    return sum(int(getattr(arguments[name], "nbytes", 0)) for name in names.split())


# --- names of kernels and arguments ---------------------------------------------------------------------------------


@cache
def parameters(path: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the parameters of each kernel in a .cu file of prplugin."""
    found = re.findall(r'extern "C" __global__[^;{]*?\b(\w+)\(([^()]*)\)\s*\{', runtime.source(path))
    return {name: tuple(re.findall(r"(\w+)\s*(?:,|$)", listed)) for name, listed in found}


def kernel_names(paths: Iterable[str] = COUNTED) -> list[str]:
    """Return the names of all kernels of the given files."""
    return sorted({name for path in paths for name in parameters(path)})
