"""Serialized graphs of the GAP benchmark suite."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from damaged_files import graphs_of_damaged

import prplugin
from prplugin.cpu import library
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
    outcomes = list(graphs_of_damaged(path, path, bits=3))
    errors = [error for error in outcomes if isinstance(error, PageRankError)]
    assert all(str(error).startswith(str(path)) for error in errors)
    assert len(errors) > 0.8 * len(outcomes)
    assert all(each.number_of_edges == len(EDGES) for each in outcomes if isinstance(each, prplugin.Graph))


def entry(content, place, change):
    """Return a serialized graph with another entry in its first list of targets, or of pairs with weights."""
    at = 17 + 8 * (N + 1) + 4 * place
    return content[:at] + struct.pack("<i", change) + content[at + 4 :]


@pytest.mark.parametrize("compiled", [True, False])
def test_lists_that_contradict_each_other(write, monkeypatch, compiled):
    monkeypatch.setattr(library, "is_available", lambda: compiled)
    plain, weighted = serialized(EDGES, N), serialized(EDGES, N, weighted=True)
    # Edges 0 to 1 and 1 to 2 become 0 to 2 and 1 to 1 among the in-edges: all degrees remain.
    swapped = EDGES.assign(dst=[2, 2, 1, 0, 0, 2])
    middle = 17 + 8 * (N + 1) + 4 * len(EDGES)
    other = plain[:middle] + serialized(swapped, N)[middle:]
    for content in (other, entry(plain, 0, 3)):
        path = write("g.sg", content)
        for columns in ([], ["destination", "source"]):
            with pytest.raises(InvalidEdgesError, match=r"from vertex 0 to \d is among the (in|out)-edges alone"):
                prplugin.pagerank(path, *columns)
    with pytest.raises(InvalidEdgesError, match="from vertex 0 to 1 of weight 3 is among the in-edges alone"):
        prplugin.pagerank(write("g.wsg", entry(weighted, 1, 4)))
    with pytest.raises(
        InvalidEdgesError, match=r"not those of an undirected graph: the arc from vertex 0 to 1 is there"
    ):
        prplugin.pagerank(write("g.sg", serialized(EDGES, N, directed=False)))
    both = pd.concat([EDGES, EDGES.rename(columns={"src": "dst", "dst": "src"})]).drop_duplicates(["src", "dst"])
    with pytest.raises(
        InvalidEdgesError, match=r"the arc from vertex \d to \d of weight \d is there, but not its reverse"
    ):
        prplugin.pagerank(
            write("g.wsg", serialized(both.assign(weight=range(len(both))), N, directed=False, weighted=True))
        )
    same(
        prplugin.pagerank(write("g.wsg", serialized(both, N, directed=False, weighted=True))),
        both.pagerank(weight="weight", vertices=range(N)),
    )
    again = pd.concat([EDGES, EDGES.assign(weight=7), EDGES[::-1]])  # parallel edges, whose weights are in any order
    content = serialized(again, N, weighted=True)
    same(prplugin.pagerank(write("g.wsg", content)), again.pagerank(weight="weight", vertices=range(N)))


def test_messages(write, set_available_bytes):
    negative = EDGES.assign(weight=[-2, 1, 4, 1, 5, 9])
    with pytest.raises(InvalidEdgesError, match="list of weights has 1 value below 0: -2 in entry 0"):
        prplugin.pagerank(write("g.wsg", serialized(negative, N, weighted=True)))
    content = bytearray(serialized(EDGES, N))
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
