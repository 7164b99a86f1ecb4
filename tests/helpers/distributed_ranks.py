"""The SPMD program of `prplugin.distributed` on workers that are threads, and drawn edges to compare its ranks on."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from threaded_communicator import run_workers

from prplugin.distributed.ranks import rank_shard
from prplugin.distributed.shard import build
from prplugin.distributed.update import update
from prplugin.frames import partitions
from prplugin.frames.columns import resolve
from prplugin.frames.times import Clock
from prplugin.options import EdgeOptions, Options
from prplugin.streams.changes import read_changes

__all__ = ["KINDS", "assert_same_ranks", "edge_frames", "rank_distributed"]


def rank_distributed(
    edges, size, cuts=None, holders=None, *, vertices=None, threads=1, changes=(), ranked_before=None, altering=None,
    **options,
):  # fmt: skip
    """Rank a frame, partitioned at `cuts`, on `size` workers; `holders` maps each partition to its worker.

    `changes`: Pairs of frames to add and to remove before.
    `ranked_before`: Options of a ranking before the changes, from whose ranks the one after them may start.
    `altering`: Function of the ranks of each worker that are kept from it, which alters them as a user might.
    """
    schema = EdgeOptions(
        **{field.name: options.pop(field.name) for field in fields(EdgeOptions) if field.name in options}
    )
    directed, duplicates = schema.directed, schema.duplicates
    clock = None if schema.time is None else Clock(schema.half_life, schema.window, schema.now)
    columns = resolve(list(edges.columns), schema.source, schema.destination, schema.weight, schema.time, clock)
    columns = columns._replace(missing=schema.missing)
    schema = replace(schema, source=columns.source_names, destination=columns.destination_names)
    bounds = [0, *(len(edges) * cut // size for cut in range(1, size)), len(edges)] if cuts is None else cuts
    frames = [edges.iloc[first:last] for first, last in pairwise(bounds)]
    holders = [index % size for index in range(len(frames))] if holders is None else holders
    several = columns.source_names if len(columns.source) > 1 else None
    more_vertices = None if vertices is None else partitions.given_ids(vertices, several, "vertices")
    chosen = partitions.converted(Options(**options))

    def program(communicator):
        indices = [index for index, holder in enumerate(holders) if holder == communicator.rank] or [len(frames)]
        shard = build(
            communicator, "host", [[*frames, edges.iloc[:0]][index] for index in indices], indices, columns,
            more_vertices, directed=directed, duplicates=duplicates,
        )  # fmt: skip
        if ranked_before is not None:
            before = partitions.converted(Options(**ranked_before))
            rank_shard(communicator, shard, columns.vertex_names, before, threads)
        if altering is not None:
            altering(shard.starts.latest.ranks)
        for add, remove in changes:
            change = read_changes(add, remove, schema, shard.clock, "host", columns.vertex_names)
            shard = update(communicator, shard, columns.vertex_names, change, schema)
        return rank_shard(communicator, shard, columns.vertex_names, chosen, threads)

    parts = run_workers(size, program)
    report = parts[0][1]
    if report.positions:
        return parts[0][0][0][: sum(map(sum, report.rows))], report
    return pd.concat(
        [frame for frames in zip(*(frames for frames, _ in parts), strict=True) for frame in frames]
    ), report


def assert_same_ranks(found, expected, atol=1e-9):
    pd.testing.assert_frame_equal(found.drop(columns="pagerank"), expected.drop(columns="pagerank"))
    assert found["pagerank"].dtype == expected["pagerank"].dtype
    np.testing.assert_allclose(found["pagerank"], expected["pagerank"], rtol=0, atol=atol)


def edge_frames(ids, weighted, dtype=None):
    columns = {"src": ids, "dst": ids} | ({"w": st.sampled_from([0.0, 0.5, 1.0, 1e-300, 3.0])} if weighted else {})
    names = list(columns)
    return st.lists(st.tuples(*columns.values()), max_size=25).map(
        lambda rows: pd.DataFrame(
            {
                name: pd.Series([row[position] for row in rows], dtype=None if name == "w" else dtype)
                for position, name in enumerate(names)
            }
        )
    )


KINDS = {
    "integers": (st.integers(0, 12), "int64"),
    "sparse": (st.sampled_from([-(2**62), -5, 0, 7, 2**40, 2**62]), "int64"),
    "unsigned": (st.sampled_from([0, 3, 2**63, 2**64 - 1]), "uint64"),
    "strings": (st.sampled_from(["a", "b", "", "é", "ab", "ba", "\ud800"]), object),
    "arrow": (st.sampled_from(["a", "b", "", "é"]), "string[pyarrow]"),
    "dates": (st.sampled_from(list(pd.to_datetime(["2020-01-01", "2021-05-05", "1999-12-31"]))), "datetime64[ns]"),
    "categories": (st.sampled_from(["x", "y", "z"]), pd.CategoricalDtype(["z", "x", "y", "w"])),
    "booleans": (st.booleans(), "bool"),
    "nullable": (st.integers(0, 9), "Int32"),
}
