"""Serialized graphs of the GAP benchmark suite."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from damaged_files import graphs_of_damaged

import prplugin
from prplugin.errors import InvalidEdgesError, InvalidOptionError, OutOfMemoryError, PageRankError

EDGES = pd.DataFrame({"src": [0, 0, 1, 2, 3, 3], "dst": [1, 2, 2, 0, 0, 2], "weight": [3, 1, 4, 1, 5, 9]})
N = 5


def lists(rows, columns, weights, n):
    order = np.lexsort((columns, rows))
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=n))).astype("<i8")
    entries = columns[order] if weights is None else np.column_stack([columns[order], weights[order]])
    return offsets.tobytes() + entries.astype("<i4").tobytes()


def serialized(edges, n, *, directed=True, weighted=False):
    source, target = edges["src"].to_numpy(), edges["dst"].to_numpy()
    weights = edges["weight"].to_numpy() if weighted else None
    text = struct.pack("<?qq", directed, len(edges), n) + lists(source, target, weights, n)
    return text + lists(target, source, weights, n) if directed else text


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


def same(found, expected):
    pd.testing.assert_frame_equal(found, expected, atol=1e-9, rtol=0)


def test_directed(write):
    path = write("g.sg", serialized(EDGES, N))
    expected = EDGES.pagerank(vertices=range(N))
    same(prplugin.pagerank(path), expected)
    graph = prplugin.Graph.from_file(path)
    assert graph.csc().indices.tolist() == [2, 3, 0, 0, 1, 3]
    assert graph.csr().indices.tolist() == EDGES["dst"].tolist()
    same(prplugin.pagerank(path, "destination", "source"), EDGES.pagerank("dst", "src", vertices=range(N)))


def test_weighted(write):
    path = write("g.wsg", serialized(EDGES, N, weighted=True))
    same(prplugin.pagerank(path), EDGES.pagerank(weight="weight", vertices=range(N)))
    turned = EDGES.pagerank("dst", "src", weight="weight", vertices=range(N))
    same(prplugin.pagerank(path, "destination", "source"), turned)


def test_undirected(write):
    both = pd.concat([EDGES, EDGES.rename(columns={"src": "dst", "dst": "src"})]).drop_duplicates(["src", "dst"])
    path = write("g.sg", serialized(both, N, directed=False))
    same(prplugin.pagerank(path), both.pagerank(vertices=range(N)))


def test_empty(write):
    assert len(prplugin.pagerank(write("g.sg", serialized(EDGES[:0], 0)))) == 0
    assert prplugin.pagerank(write("g.sg", serialized(EDGES[:0], 3)))["pagerank"].tolist() == [1 / 3] * 3


def test_damaged_files(write):
    path = Path(write("g.sg", serialized(EDGES, N)))
    outcomes = list(graphs_of_damaged(path, path, bits=8))
    errors = [error for error in outcomes if isinstance(error, PageRankError)]
    assert all(str(error).startswith(str(path)) for error in errors)
    assert len(errors) > 0.8 * len(outcomes)
    assert all(each.number_of_edges == len(EDGES) for each in outcomes if isinstance(each, prplugin.Graph))


def test_messages(write, set_available_bytes):
    content = bytearray(serialized(EDGES, N, weighted=True))
    content[17 + 8 * (N + 1) + 4 : 17 + 8 * (N + 1) + 8] = struct.pack("<i", -2)
    with pytest.raises(InvalidEdgesError, match="list of weights has 1 value below 0: -2 in entry 0"):
        prplugin.pagerank(write("g.wsg", bytes(content)))
    content = bytearray(serialized(EDGES, N))
    content[-4:] = struct.pack("<i", 1)
    with pytest.raises(InvalidEdgesError, match=r"differ in the out-degree of vertex 1"):
        prplugin.pagerank(write("g.sg", bytes(content)))
    content[-4:] = struct.pack("<i", 5)
    with pytest.raises(InvalidEdgesError, match="no vertex of 0 to 4: 5 in entry 5"):
        prplugin.pagerank(write("g.sg", bytes(content)))
    with pytest.raises(InvalidEdgesError, match="as it announces, takes"):
        prplugin.pagerank(write("g.sg", struct.pack("<?qq", True, 2**40, 2**20)))
    with pytest.raises(InvalidOptionError, match="decompress it first"):
        prplugin.pagerank(write("g.sg.gz", b"\x1f\x8b"))
    path = write("g.sg", serialized(EDGES, N))
    set_available_bytes(100)
    with pytest.raises(OutOfMemoryError, match="announces 6 arcs"):
        prplugin.pagerank(path)
