"""Folders of Common Crawl's web graphs."""

from __future__ import annotations

import gzip

import pandas as pd
import pytest

import prplugin
from prplugin.errors import InvalidEdgesError, InvalidOptionError, OutOfMemoryError

VERTICES = ["0\tcom.a\t7\n1\tcom.b\t1\n", "2\torg.c\t2\n3\torg.é\t1\n"]
EDGES = ["0\t1\n0\t2\n", "1\t0\n3\t2\n"]
NAMES = ["com.a", "com.b", "org.c", "org.é"]


def write(folder, vertices=VERTICES, edges=EDGES):
    for kind, parts in (("vertices", vertices), ("edges", edges)):
        (folder / kind).mkdir(parents=True)
        for number, text in enumerate(parts):
            (folder / kind / f"part-{number:05}.txt.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def expected(**options):
    edges = pd.DataFrame({"src": [NAMES[v] for v in (0, 0, 1, 3)], "dst": [NAMES[v] for v in (1, 2, 0, 2)]})
    ranks = edges.pagerank(tol=1e-12, **options).set_index("vertex")["pagerank"]
    return ranks[NAMES].tolist()


def test_parts(tmp_path):
    folder = write(tmp_path / "host")
    for path in (folder, str(folder)):
        found = prplugin.pagerank(path, tol=1e-12)
        assert found["vertex"].tolist() == NAMES
        assert found["pagerank"].tolist() == pytest.approx(expected(), abs=1e-12)
    graph = prplugin.Graph.from_file(folder)
    assert list(graph.vertices) == NAMES
    assert graph.rank(top=1).frame["vertex"].tolist() == ["org.c"]
    assert graph.rank(seeds=["com.b"], top=1).frame["vertex"].tolist() == ["com.b"]
    found = prplugin.pagerank(folder, directed=False, tol=1e-12)["pagerank"].tolist()
    assert found == pytest.approx(expected(directed=False), abs=1e-12)


def test_single_files_and_other_orders(tmp_path):
    lines = "".join(VERTICES).splitlines(keepends=True)
    (tmp_path / "cc-main-2026-domain-vertices.txt.gz").write_bytes(gzip.compress("".join(lines[::-1]).encode()))
    (tmp_path / "cc-main-2026-domain-edges.txt.gz").write_bytes(gzip.compress("".join(EDGES).encode()))
    found = prplugin.pagerank(tmp_path, tol=1e-12)
    assert found["vertex"].tolist() == NAMES
    assert found["pagerank"].tolist() == pytest.approx(expected(), abs=1e-12)


def test_parts_of_one_line_without_its_end(tmp_path):
    folder = write(tmp_path / "host", [VERTICES[0], "2\torg.c", "3\torg.é"], ["0\t1\n0\t2", "", "1\t0", "\n\n", "3\t2"])
    found = prplugin.pagerank(folder, tol=1e-12)
    assert found["vertex"].tolist() == NAMES
    assert found["pagerank"].tolist() == pytest.approx(expected(), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "count"),
    [("7", 1), ("7\n", 1), ("\0", 1), ("7", 3_000_000), ("\0", 3_000_000), ("\n", 3_000_000)],
    ids=repr,
)
def test_parts_of_something_else(tmp_path, text, count):
    edges = [text * count + "0\t1\n" * (count > 1)]
    with pytest.raises(InvalidEdgesError, match=r"part-00000\.txt\.gz"):
        prplugin.pagerank(write(tmp_path / "host", edges=edges))


def test_vertices_without_edges(tmp_path):
    assert prplugin.pagerank(write(tmp_path / "host", edges=[""]))["pagerank"].tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("vertices", "edges", "message"),
    [
        (["0\tcom.a\n2\tcom.b\n"], [""], "the 2 vertices are not numbered 0 to 1, each once"),
        (["0\tcom.a\n0\tcom.b\n"], [""], "not numbered 0 to 1"),
        (["0\tcom.a\n1\tcom.a\n"], [""], "some of the 2 vertices have the same name"),
        (["0\tcom.a\nx\tcom.b\n"], [""], r"part-00000\.txt\.gz: .*Row #2.*'x'"),
        (["0\n"], [""], r"part-00000\.txt\.gz"),
        (VERTICES, ["0\t1\n", "0\t4\n"], r"part-00001\.txt\.gz has vertex 4, and the vertices are 0 to 3"),
        (VERTICES, ["0\t-1\n"], "has vertex -1"),
        (VERTICES, ["0\t1\n2\n"], r"Row #2: Expected 2 columns, got 1"),
        (VERTICES, ["0\t1.5\n"], "'1.5'"),
    ],
)
def test_files_that_are_wrong(tmp_path, vertices, edges, message):
    with pytest.raises(InvalidEdgesError, match=message):
        prplugin.pagerank(write(tmp_path / "host", vertices, edges))


def test_truncated_parts(tmp_path):
    folder = write(tmp_path / "host")
    for kind in ("edges", "vertices"):
        part = folder / kind / "part-00001.txt.gz"
        content = part.read_bytes()
        for end in range(1, len(content)):
            part.write_bytes(content[:end])
            with pytest.raises(InvalidEdgesError, match=r"part-00001\.txt\.gz|not numbered"):
                prplugin.pagerank(folder)
        part.write_bytes(content)


def test_folders_of_something_else(tmp_path):
    with pytest.raises(InvalidOptionError, match="is no folder of Common Crawl"):
        prplugin.Graph.from_file(tmp_path, format="common-crawl")


def test_memory_is_checked(tmp_path, set_available_bytes):
    folder = write(tmp_path / "host")
    set_available_bytes(10)
    with pytest.raises(OutOfMemoryError, match=r"names have been read|edges have been read"):
        prplugin.pagerank(folder)
