"""Paths: every way to give edges by path reads the same, and every error of a path is a PageRankError."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import pathlib
import re
import zipfile

import pandas as pd
import pytest
from click.testing import CliRunner

import prplugin
from prplugin.cli import main
from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError

EDGES = pd.DataFrame({"src": [1, 2, 3, 4], "dst": [2, 1, 1, 3]})
PARTS = EDGES.iloc[:1], EDGES.iloc[1:]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with the same edges in many forms, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("flat/{}.parquet", "links.parquet/part-{}", "hive/day={}/0.parquet", "{}.csv", "{}.parquet"):
        for number, part in enumerate(PARTS):
            path = tmp_path / name.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            part.to_csv(path, index=False) if path.suffix == ".csv" else part.to_parquet(path)
    text = EDGES.to_csv(index=False).encode()
    (tmp_path / "e.csv").write_bytes(text)
    (tmp_path / "e.csv.bz2").write_bytes(bz2.compress(text[:9]) + bz2.compress(text[9:]))
    (tmp_path / "e.csv.xz").write_bytes(lzma.compress(text))
    for name in ("e.zip", "e.csv.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.write(tmp_path / "e.csv", "folder/e.csv")
    EDGES.to_feather(tmp_path / "e.feather")
    EDGES.to_json(tmp_path / "e.jsonl", orient="records", lines=True)
    EDGES.to_parquet(tmp_path / "unnamed")
    return tmp_path


def run(*arguments, **options):
    return CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False, **options)


SAME = [
    ["flat"], ["flat/"], ["links.parquet"], ["hive"], ["unnamed"], ["e.csv.bz2"], ["e.csv.xz"], ["e.zip"], ["e.csv.zip"],
    ["e.feather"], ["e.jsonl"], ["0.csv", "1.csv"], ["0.parquet", "1.parquet"], ["0.parquet", "1.csv"],
    ["hive/day=0", "hive/day=1"], ["hive/day=0", "1.parquet"],
]  # fmt: skip


@pytest.mark.parametrize("paths", SAME, ids=" ".join)
def test_one_reader_everywhere(folder, paths):
    expected = EDGES.pagerank()
    given = paths if len(paths) > 1 else paths[0]
    for ranks in (
        prplugin.pagerank(given),
        prplugin.Graph(given).rank().frame,
        prplugin.Graph.from_file(given).rank().frame,
    ):
        pd.testing.assert_frame_equal(ranks, expected)
    assert run("rank", *paths, "-q", "-o", "ranks.csv").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv("ranks.csv"), expected)
    assert run("save", *paths, "saved", "-q").exit_code == 0
    pd.testing.assert_frame_equal(prplugin.Graph.load("saved").rank().frame, expected, check_exact=False)
    verified = run("verify", *paths)
    assert (verified.exit_code, "networkx" in verified.stdout) == (0, True), verified.stderr


def test_options_of_several_files(folder):
    EDGES.assign(w=[1.0, 2, 3, 4]).to_parquet("flat/1.parquet")
    EDGES.assign(w=[1.0, 2, 3, 4]).iloc[:0].to_parquet("flat/0.parquet")
    expected = EDGES.assign(w=[1.0, 2, 3, 4]).pagerank(weight="w", vertices=[9], directed=False)
    run("rank", "flat", "-w", "w", "--vertices", "9", "--undirected", "-q", "-o", "ranks.csv")
    pd.testing.assert_frame_equal(pd.read_csv("ranks.csv"), expected)
    times = EDGES.assign(t=[1, 2, 3, 4])
    times.to_parquet("flat/1.parquet")
    times.iloc[:0].to_parquet("flat/0.parquet")
    pd.testing.assert_frame_equal(
        prplugin.pagerank("flat", time="t", half_life=1), times.pagerank(time="t", half_life=1)
    )


def test_several_files_that_do_not_go_together(folder):
    pathlib.Path("g.metis").write_text("2 1\n2\n1\n")
    with pytest.raises(InvalidOptionError, match=r"g\.metis is a whole graph"):
        prplugin.pagerank(["0.csv", "g.metis"])
    pathlib.Path("other.csv").write_text("from,to\n1,2\n")
    with pytest.raises(InvalidEdgesError, match=r"other\.csv has the columns from, to, None, and 0\.csv src, dst"):
        prplugin.pagerank(["0.csv", "other.csv"])
    prplugin.Graph(EDGES).save("saved")
    with pytest.raises(InvalidEdgesError, match=r"saved is a saved graph.*pass it alone"):
        prplugin.pagerank(["0.csv", "saved"])
    with pytest.raises(InvalidEdgesError, match="list of paths is empty"):
        prplugin.Graph.from_file([])


def test_json_lines_that_are_wrong(folder):
    good = '{"src": 1, "dst": 2}\n\n'
    for line, message in (
        ("{", "line 3: it is no JSON"), ("[1, 2]", "line 3: it is no object"), ("7", "line 3: it is no object"),
        ('{"src": 1, "src": 2, "dst": 3}', "line 3: an object has a name twice"),
        ('{"src": 1}', "1 row has a missing endpoint.*Counted from 0: 1"),
        ('{"src": "a", "dst": 2}', "mixes kinds|holds"),
    ):  # fmt: skip
        pathlib.Path("bad.jsonl").write_text(good + line)
        with pytest.raises(PageRankError, match=message):
            prplugin.pagerank("bad.jsonl")
    pathlib.Path("bad.jsonl").write_text(good + '{"src": null, "dst": 2}')
    result = run("rank", "bad.jsonl", "--missing", "drop")
    assert "2 vertices, 1 edge" in result.stdout


class Path:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


def test_paths_in_other_forms(folder):
    expected = EDGES.pagerank()
    for path in (Path(b"e.csv"), Path(b"hive"), f"file://{folder}/e.csv", f"file://{folder}/hive", folder / "e.zip"):
        pd.testing.assert_frame_equal(prplugin.pagerank(path), expected)
        pd.testing.assert_frame_equal(prplugin.Graph.from_file(path).rank().frame, expected)


@pytest.mark.parametrize(
    "suffix", ["", ".csv", ".parquet", ".graph", ".sg", ".v", ".properties", ".adj", ".feather", ".zip"]
)
@pytest.mark.parametrize("kind", ["absent", "zero", "surrogate", "long", "loop", "folder", "below a file", "number"])
def test_errors_of_paths(folder, suffix, kind):
    (folder / f"folder{suffix}").mkdir()
    os.symlink(f"loop{suffix}", f"loop{suffix}")
    stem = {"zero": "a\0b", "surrogate": "\ud800", "long": 300 * "a", "below a file": "e.csv/a"}.get(kind, kind)
    path = Path(7) if kind == "number" else stem + suffix
    for call in (prplugin.pagerank, prplugin.Graph, prplugin.Graph.from_file):
        with pytest.raises(PageRankError) as caught:
            call(path)
        assert isinstance(caught.value, FileNotFoundError) == (kind == "absent"), caught.value
    if kind not in ("number", "zero"):  # the system passes no zero byte
        result = run("rank", path)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "path", ["https://x.org/e.csv", "http://x.org/e.parquet", "ftp://x.org/e", "s3://bucket/e.csv"]
)
def test_addresses(path):
    with pytest.raises(InvalidEdgesError, match=f"{path} is an address.*curl -LO {path}"):
        prplugin.pagerank(path)


def test_files_of_other_libraries(folder):
    """Execute the remedy that the message names on the file that raised it."""
    nx = pytest.importorskip("networkx")
    sparse = pytest.importorskip("scipy.sparse")
    graph = nx.from_pandas_edgelist(EDGES.astype(str), "src", "dst", create_using=nx.DiGraph)
    for name in ("graphml", "gexf", "gml", "pajek"):
        getattr(nx, f"write_{name}")(graph, "g." + name.replace("pajek", "net"))
    matrix = sparse.csr_array(nx.to_numpy_array(graph))
    sparse.save_npz("g.npz", matrix)
    EDGES.to_json("g.json")
    EDGES.to_orc("g.orc")
    EDGES.to_stata("g.dta", write_index=False)
    libraries = {"networkx": nx, "scipy": pytest.importorskip("scipy"), "pandas": pd}
    for path in sorted(folder.glob("g.*")):
        with pytest.raises(InvalidEdgesError, match="is not read by prplugin, but by") as caught:
            prplugin.pagerank(path)
        reader, consumer = (
            str(caught.value).split(" but by ")[1].removesuffix(".").split(": pass what that returns to ")
        )
        function, build = libraries[reader.partition(".")[0]], prplugin
        for name in reader.split(".")[1:]:
            function = getattr(function, name)
        for name in consumer.split(".")[1:]:
            build = getattr(build, name)
        ranks = build(function(path)).rank().ranks
        assert sorted(ranks) == pytest.approx(sorted(EDGES.pagerank()["pagerank"]), abs=1e-6), path
    for name in ("e.tar.bz2", "e.7z"):
        (folder / name).touch()
        with pytest.raises(InvalidEdgesError, match="is an archive: unpack it"):
            prplugin.pagerank(name)
    with zipfile.ZipFile("two.csv.zip", "w") as archive:
        archive.write("0.csv")
        archive.write("1.csv")
    with pytest.raises(InvalidEdgesError, match=r"an archive of 2 files, not of one: unpack it \(0\.csv, 1\.csv\)"):
        prplugin.pagerank("two.csv.zip")


def test_names_of_columns_of_parquet_that_are_not_utf_8(tmp_path):
    path = tmp_path / "e.parquet"
    EDGES.rename(columns={"src": "source", "dst": "target"}).to_parquet(path)
    content = path.read_bytes()
    for at in [found.start() for found in re.finditer(b"source", content)]:
        path.write_bytes(content[:at] + b"\xf3" + content[at + 1 :])
        for call in (prplugin.pagerank, prplugin.Graph.from_file):
            with contextlib.suppress(PageRankError):  # metadata of pandas, too, have the name, and are not read
                call(path)
    path.write_bytes(content.replace(b"source", b"\xf3ource"))
    for call in (prplugin.pagerank, prplugin.Graph.from_file):
        with pytest.raises(InvalidEdgesError, match=r"e\.parquet.*codec can.t decode"):
            call(path)


def test_an_output_that_is_an_input_is_refused(folder):
    EDGES["src"].rename("vertex").to_frame().to_csv("seeds.csv", index=False)
    os.symlink("e.csv", "link.csv")
    prplugin.Graph(EDGES).save("saved")
    (folder / "crawl").mkdir()
    (folder / "crawl" / "a-vertices.txt.gz").write_bytes(gzip.compress(b"0\tcom.a\n1\tcom.b\n"))
    (folder / "crawl" / "a-edges.txt.gz").write_bytes(gzip.compress(b"0\t1\n"))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    update = run("update", "saved", "--add", "e.csv", "-o", "saved/ranks.csv")
    assert (update.exit_code, "would alter the input" in update.stderr) == (2, True), update.output
    for arguments in (
        ["e.csv", "-o", "e.csv"], ["e.csv", "-o", "./link.csv"], ["link.csv", "-o", str(folder / "e.csv")],
        ["flat", "-o", "flat/ranks.parquet"], ["hive", "-o", "hive/day=1/ranks.csv"], ["0.csv", "1.csv", "-o", "1.csv"],
        ["e.csv", "--seeds", "seeds.csv", "-o", "seeds.csv"], ["saved", "-o", "saved/ranks.csv"],
        ["crawl", "-o", "crawl/ranks.csv"],
    ):  # fmt: skip
        result = run("rank", *arguments)
        assert (result.exit_code, "would alter the input" in result.stderr) == (2, True), result.output
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert run("rank", "e.csv", "-q", "-o", "flat.csv").exit_code == 0
