"""Adjacency lists as text: METIS and Ligra."""

from __future__ import annotations

import gzip
import os
import re
import sys
from itertools import accumulate, chain
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from damaged_files import graphs_of_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import examples

import prplugin
from prplugin.cpu import library
from prplugin.errors import InvalidEdgesError, OutOfMemoryError, PageRankError
from prplugin.io import numbers
from prplugin.machine import this_machine

TINY = "% a comment\n7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n% another\n1 3 6\n5 4 7\n6 4\n"
TINY_WEIGHTED = (
    "7 11 001\n5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n1 1 3 3 6 2\n5 2 4 2 7 6\n6 6 4 5\n"
)
TINY_ALL = "7 11 111 2\n" + "".join(f"9 1 0 {line}\n" for line in TINY_WEIGHTED.splitlines()[1:])
LIGRA = "AdjacencyGraph\n4\n5\n0\n2\n3\n3\n1\n2\n3\n0\n1\n"
LIGRA_WEIGHTED = LIGRA.replace("Adj", "WeightedAdj") + "0.5\n1e0\n2\n0\n3.25\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path / name)

    return write


def arcs(path, **options):
    offsets, indices, weights = prplugin.Graph.from_file(path, **options).csr()
    rows = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return [rows.tolist(), indices.tolist(), None if weights is None else weights.tolist()]


@pytest.mark.parametrize("name", ["tiny.graph", "tiny.metis", "tiny.graph.gz"])
def test_metis(write, name):
    path = write(name, gzip.compress(TINY.encode()) if name.endswith("gz") else TINY)
    lines = [[int(x) - 1 for x in line.split()] for line in TINY.splitlines() if line[0] != "%"][1:]
    assert arcs(path) == [[v for v, line in enumerate(lines) for _ in line], list(chain(*lines)), None]
    undirected = nx.Graph([(v, x) for v, line in enumerate(lines) for x in line])
    assert prplugin.pagerank(path)["vertex"].tolist() == [*range(1, 8)]
    graph = prplugin.Graph.from_file(path)
    assert graph.rank(among=[7], personalization={1: 1.0}).frame["vertex"].tolist() == [7]
    assert graph.vertices.tolist() == [*range(1, 8)]
    assert prplugin.pagerank(path)["pagerank"].tolist() == pytest.approx(
        [nx.pagerank(undirected, tol=1e-12)[v] for v in range(7)], abs=1e-6
    )


def test_weights_of_metis(write):
    rows, targets, weights = arcs(write("w.graph", TINY_WEIGHTED))
    assert weights[:6] == [1, 2, 1, 1, 2, 1]
    assert [rows, targets, weights] == arcs(write("all.graph", TINY_ALL))
    assert sorted(zip(rows, targets, weights, strict=True)) == sorted(zip(targets, rows, weights, strict=True))


def test_isolated_vertices_of_metis(write):
    assert arcs(write("g.graph", "4 1\n\n3\n2\n\n")) == [[1, 2], [2, 1], None]
    assert len(prplugin.pagerank(write("g.graph", "3 0\n\n\n\n\n"))) == 3
    assert len(prplugin.pagerank(write("g.graph", "0 0"))) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("x y\n", "line 1: it is not the header of a METIS file"),
        ("3 2 012\n", "not the header"),
        (TINY.replace("6 4\n", ""), "announces 7 vertices, but 6 lines follow"),
        (TINY + "1 2\n", "announces 7 vertices, but 8 lines follow"),
        (TINY.replace("7 11", "7 12"), "12 edges, so 24 neighbors, but the lines have 22"),
        (TINY.replace("1 3 6", "1 3 8"), r"no vertex of 1 to 7: 8 in entry 16"),
        (TINY.replace("1 3 6", "0 3 6"), "no vertex of 1 to 7: 0 in entry 14"),
        (TINY.replace("1 3 6", "1 3.5 6"), "3.5 in entry 15, which is no integer"),
        (TINY.replace("1 3 6", "1 -3 6"), "line 8: '-3' is no finite number of at least 0"),
        (
            TINY_WEIGHTED.replace("1 1 3 3 6 2", "1 1 3 3 6"),
            "line 6: vertex 5 has 5 numbers, but .* neighbor and weight",
        ),
        (TINY_ALL.replace("9 1 0 6 6 4 5", "9 1"), "line 8: vertex 7 has 2 numbers, but .* 3 numbers of the vertex"),
        (f"{10**17} 1\n1\n", "100,000,000,000,000,000 vertices, but 1 lines follow"),
    ],
)
def test_metis_files_that_are_wrong(write, content, message):
    with pytest.raises(InvalidEdgesError, match=message):
        prplugin.pagerank(write("g.graph", content))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("3 2\n2 3\n1\n2\n", "line 2: vertex 1 lists 3, but vertex 3 does not list 1: each edge is"),
        ("% c\n3 2\n2\n% c\n1 3\n1\n", "line 6: vertex 3 lists 1, but vertex 1 does not list 3"),
        (
            "3 2 1\n2 5 3 1\n1 5\n1 2\n",
            "line 2: vertex 1 lists 3 with weight 1, but vertex 3 does not list 1 with this",
        ),
        ("3 2\n3 3\n\n1 1\n", "line 2: vertex 1 has neighbor 3 twice"),
        ("4 4\n4 2 4\n1 3\n2\n1 1\n", "line 2: vertex 1 has neighbor 4 twice"),
        ("3 2\n2 3\n1 2\n", "announces 3 vertices, but 2 lines"),
        ("3 2\n2\n1 2\n3\n", "line 3: vertex 2 is its own neighbor"),
    ],
)
def test_metis_files_that_contradict_themselves(write, monkeypatch, content, message, compiled):
    monkeypatch.setattr(library, "is_available", lambda: compiled)
    with pytest.raises(InvalidEdgesError, match=message):
        prplugin.pagerank(write("g.graph", content))


def test_a_large_metis_file_with_one_arc_of_another_weight(write):
    n = 3000
    lines = [f"{(v - 1) % n + 1} 2 {(v + 1) % n + 1} 2" for v in range(n)]
    assert prplugin.Graph.from_file(write("g.graph", "\n".join([f"{n} {n} 1", *lines]))).number_of_edges == 2 * n
    lines[1234] = lines[1234].replace(" 2 ", " 3 ")
    with pytest.raises(InvalidEdgesError, match=r"line 1,235: vertex 1,234 lists 1,235 with weight 2, but"):
        prplugin.pagerank(write("g.graph", "\n".join([f"{n} {n} 1", *lines])))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no endless file")
@pytest.mark.parametrize("kind", ["metis", "ligra"])
def test_endless_files_without_a_header_are_not_read(kind):
    with pytest.raises(InvalidEdgesError, match=r"/dev/zero, line 1: (it is not the header|the first line)"):
        prplugin.Graph.from_file("/dev/zero", format=kind)


@pytest.mark.parametrize("name", ["g.adj", "g.adj.gz", "g.txt", "g"])
def test_ligra(write, name):
    path = write(name, gzip.compress(LIGRA.encode()) if name.endswith("gz") else LIGRA)
    assert arcs(path) == [[0, 0, 1, 3, 3], [1, 2, 3, 0, 1], None]
    assert arcs(write("line.adj", LIGRA.replace("\n", " ").replace(" ", "\n", 1))) == arcs(path)


def test_weights_of_ligra(write):
    assert arcs(write("g.adj", LIGRA_WEIGHTED))[2] == [0.5, 1, 2, 0, 3.25]
    assert arcs(write("g.adj", LIGRA_WEIGHTED.replace("0.5\n1e0\n2\n0\n3.25", "1\n1\n1\n1\n1")))[2] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("AdjacencyList\n1\n0\n0\n", "line 1: the first line of a file of Ligra"),
        ("AdjacencyGraph\n4\n", "the file is cut short"),
        (LIGRA[:-2], "4 vertices and 5 arcs take 11 numbers, but the file has 10"),
        (LIGRA + "1\n", "take 11 numbers, but the file has 12"),
        (LIGRA.replace("\n0\n2\n3", "\n1\n2\n3", 1), "list of offsets goes from 1 to 5: it must begin with 0"),
        (LIGRA.replace("\n0\n2\n3", "\n0\n4\n3", 1), "list of offsets falls 1 time, after entry 1"),
        (LIGRA.replace("\n0\n2\n3", "\n0\n2.5\n3", 1), "list of offsets has 2.5 in entry 1, which is no integer"),
        (LIGRA.replace("3\n0\n1\n", "4\n0\n1\n"), "no vertex of 0 to 3: 4 in entry 2"),
        (LIGRA_WEIGHTED.replace("3.25", "nan"), "line 17: 'nan' is no finite number"),
        (LIGRA_WEIGHTED.replace("3.25", "1e999"), "'1e999' is no finite number"),
        (LIGRA_WEIGHTED.replace("3.25", "1e-320"), "'1e-320' is no finite number"),
        ("AdjacencyGraph\n1e15\n1e15\n1\n", "1e.15 vertices and 1e.15 arcs take"),
    ],
)
def test_ligra_files_that_are_wrong(write, content, message):
    with pytest.raises(InvalidEdgesError, match=message):
        prplugin.pagerank(write("g.adj", content))


def test_memory_is_checked(write, set_available_bytes):
    path = write("g.adj", LIGRA)
    set_available_bytes(100)
    with pytest.raises(OutOfMemoryError, match="has 11 numbers"):
        prplugin.pagerank(path)


@pytest.mark.parametrize(("name", "content"), [("g.graph", TINY_ALL), ("g.adj", LIGRA_WEIGHTED)])
def test_damaged_files(write, name, content):
    path = Path(write(name, content))
    outcomes = list(graphs_of_damaged(path, path, bits=2))
    errors = [error for error in outcomes if isinstance(error, PageRankError)]
    assert all(str(error).startswith(str(path)) for error in errors)
    assert len(errors) > len(outcomes) / 2


DECIMALS = st.one_of(
    st.floats(0, allow_nan=False, allow_infinity=False, allow_subnormal=False).map(repr),
    st.integers(0, 10**30).map(str),
    st.from_regex(r"\A[0-9]{1,25}\.?[0-9]{0,25}([eE][-+]?[0-9]{1,2})?\Z"),
    st.sampled_from(["1.", ".5", "00012", "9007199254740993", "0e999", "1e22", "1e23", "123456789012345678e-20"]),
)


def read(text, *, by_line=False):
    """Read numbers after a line end, and the place of the first one of each line."""
    content = np.frombuffer(b"\n" + text.encode("latin-1"), np.uint8)
    return numbers.NumberText("text", content, by_line=by_line).numbers(1)


@settings(max_examples=examples(100), deadline=None)
@given(words=st.lists(DECIMALS, min_size=1, max_size=30))
def test_numbers_are_those_of_python(words):
    expected = [float(word) for word in words]
    zeros = [not word.lower().partition("e")[0].strip("0.") for word in words]
    fits = [zero or sys.float_info.min <= x < np.inf for x, zero in zip(expected, zeros, strict=True)]
    if all(fits):
        assert read(" ".join(words))[0].tolist() == expected
    else:
        with pytest.raises(InvalidEdgesError, match=f"line {fits.index(False) + 2}: "):
            read("\n".join(words))


@pytest.mark.parametrize(
    "word",
    [
        "-1", "+1", "-0", "-0.0", "+0", "1e", "1e+", "x", "1x", "0x10", ".", "e5", "1..2", "1,5", "inf", "-inf", "nan",
        "infinity", "1_0", "\x00", "1e5.5", "1e309", "1e-310", "-1e-400", "1e-99999999999999999999", "00.001e-999",
        "0..0", "0e", "0e5x", "0x0", "0-0", "\xe9", "\xb2", "\xa0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("after", ["3", "x"])
def test_fields_that_are_no_numbers(word, after):
    with pytest.raises(InvalidEdgesError, match=re.escape(f"text, line 3: {word!r:s} is no finite number")):
        read(f"7 8\n9 {word} {after}")


@pytest.mark.parametrize("word", ["0", "0.", ".0", "0.000", "0e999", "0.0E-999", "00"])
def test_zeros(word):
    assert read(f"1 {word}\t2")[0].tolist() == [1, 0, 2]


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n% ends"])
def test_blocks_of_text(monkeypatch, size, threads, end):
    monkeypatch.setattr(numbers, "BLOCK_BYTES", size)
    monkeypatch.setattr(numbers, "this_machine", lambda: this_machine()._replace(threads=threads))
    lines = ["% x", "", *(" \t".join(map(str, range(i))) for i in range(14)), "% 1 2", "%", "%" + 50 * " 3", " 4 "]
    values, starts = read("\n".join(lines) + end, by_line=True)
    fields = [line.split() for line in lines if line[:1] != "%"] + [[]] * (end == "\n\n")  # an empty line at the end
    assert values.tolist() == [float(field) for line in fields for field in line]
    assert starts.tolist() == [0, *accumulate(map(len, fields))]
    with pytest.raises(InvalidEdgesError, match=f"line {len(lines) + 3}: 'x' is no finite"):
        read("\n".join(lines) + "\n\nx", by_line=True)


def test_comments_begin_lines():
    with pytest.raises(InvalidEdgesError, match="line 2: '%' is no finite"):
        read("1 % 2", by_line=True)
    with pytest.raises(InvalidEdgesError, match="line 2: '%' is no finite"):
        read("% 2")


def test_text_without_numbers():
    for text in ("", "\n", "%"):
        values, starts = read(text, by_line=True)
        assert (values.size, starts.tolist()) == (0, [0] * (2 if text == "\n" else 1))
