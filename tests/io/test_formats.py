"""Recognition of formats by name and content."""

from __future__ import annotations

import os

import pytest

from prplugin.errors import InvalidEdgesError, InvalidOptionError
from prplugin.io.formats import FORMATS, input_format, recognized

FILES = {
    "bv.graph": b"\x80", "bv.properties": b"nodes=1\n", "bv.offsets": b"\xa0", "mesh.graph": b"1 0\n\n",
    "snb.properties": b"graph.snb.vertex-file = snb.v\n", "snb.v": b"1\n", "snb.e": b"1 1\n",
    "adjacency": b"AdjacencyGraph\n1\n0\n0\n", "weighted.txt": b"WeightedAdjacencyGraph\r\n", "edges.txt": b"1 2\n",
    "other": b"AdjacencyGraphs\n",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    for name in ("crawl/vertices/0.gz", "crawl/edges/0.gz", "half/edges/0.gz"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected", "compression"),
    [
        ("bv", "webgraph", None), ("bv.graph", "webgraph", None), ("bv.properties", "webgraph", None),
        ("bv.offsets", "webgraph", None), ("mesh.graph", "metis", None), ("mesh.graph.gz", "metis", "gzip"),
        ("mesh.METIS", "metis", None), ("snb.properties", "ldbc", None), ("snb.v", "ldbc", None),
        ("snb.e.zst", "ldbc", "zstd"), ("adjacency", "ligra", None), ("weighted.txt", "ligra", None),
        ("x.adj.gz", "ligra", "gzip"), ("edges.txt", "snap", None), ("a.sg", "gap", None), ("a.wsg", "gap", None),
        ("roads.gr.gz", "dimacs", "gzip"), ("crawl", "common-crawl", None), ("half", None, None), ("other", None, None),
        ("absent", None, None), ("a.parquet", "parquet", None), ("a.CSV.gz", "csv", "gzip"), ("a.mtx", "mtx", None),
        ("a.tab", "tsv", None),
    ],
)  # fmt: skip
def test_recognized(folder, name, expected, compression):
    found, how = recognized(str(folder / name))
    assert (found and found.name, how) == (expected, compression)


def test_given_formats(folder):
    for known in FORMATS:
        assert input_format(str(folder / "other"), known.name)[0] is known
    with pytest.raises(InvalidOptionError, match=r"format must be one of 'parquet', .*'dimacs', not 'gml'"):
        input_format("a.csv", "gml")
    with pytest.raises(InvalidEdgesError, match=r"does not say what it holds\. Known endings are .*\.sg"):
        input_format(str(folder / "other"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_are_not_read_to_recognize_them(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert recognized(str(tmp_path / "pipe")) == (None, None)
