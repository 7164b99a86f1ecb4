"""Edges in several frames: lists of frames, and edges that one frame on the GPU does not hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cudf_frames import REQUIRES_CUDF, cudf

import prplugin
from prplugin.frames import pieces
from prplugin.graph.memory import Counts, footprint
from prplugin.methods import packed
from prplugin.types.edges import PackedParts

TOL = 1e-10


def edges(m: int = 30_000, n: int = 5000, *, scattered: bool = False) -> pd.DataFrame:
    generator = np.random.default_rng(1)
    ids = generator.choice(2**62, n, replace=False) - 2**61 if scattered else np.arange(3, n + 3)
    source, target = ids[(n * generator.random(m) ** 3).astype(int)], ids[generator.integers(0, n, m)]
    return pd.DataFrame({"src": source, "dst": target, "weight": generator.random(m)})


def cut(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Cut a frame into three, one of which is empty."""
    return [frame[:10_001], frame[10_001:10_001], frame[10_001:]]


class Repeated:
    """Yields the same frames whenever it is iterated."""

    def __init__(self, frames):
        self._frames = frames

    def __iter__(self):
        return iter(self._frames)


class Exhausted(Repeated):
    """Yields no frames after it has been iterated to the end often enough to be read once."""

    rounds = 0

    def __iter__(self):
        for frame in self._frames:
            if self.rounds < 3:  # the sizes, the types, the ids
                yield frame
        self.rounds += 1


# --- frames in host memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("options", [{}, {"directed": False}, {"vertices": [1, 2]}, {"duplicates": "last"}], ids=str)
def test_a_list_of_frames_is_ranked_as_one_frame(weight, options):
    whole = edges()
    expected = prplugin.pagerank(whole, weight=weight, **options)
    for frames in (cut(whole), iter(cut(whole)), Repeated(cut(whole))):
        pd.testing.assert_frame_equal(prplugin.pagerank(frames, weight=weight, **options), expected)


def test_lists_of_frames_of_other_types_and_columns():
    first, second = edges(100), edges(100)[["dst", "weight", "src"]].astype({"src": "int32"})
    expected = prplugin.pagerank(pd.concat([first, second]))
    pd.testing.assert_frame_equal(prplugin.pagerank((first, second)), expected)
    pl = pytest.importorskip("polars")
    found = prplugin.pagerank([pl.from_pandas(first), pl.from_pandas(edges(100))])
    assert isinstance(found, pl.DataFrame)
    pd.testing.assert_frame_equal(found.to_pandas(), prplugin.pagerank(first))


def test_a_graph_of_a_list_can_be_updated():
    first, second = edges(100), edges(200)
    graph = prplugin.Graph([first])
    graph.update(add=second)
    pd.testing.assert_frame_equal(
        graph.rank(tol=TOL).frame, prplugin.pagerank([first, second], tol=TOL), atol=2 * TOL, rtol=0
    )


def test_lists_that_are_no_frames_are_refused():
    pl, frame = pytest.importorskip("polars"), edges(10)
    for given in ([], [(1, 2)], [frame, 3], iter([3]), range(3)):
        message = "a list of such frames" if given != [] else "It is empty: pass one frame or more"
        with pytest.raises(prplugin.InvalidEdgesError, match=message):
            prplugin.pagerank(given)
    with pytest.raises(prplugin.ColumnNotFoundError, match="'dst' in partition 1"):
        prplugin.pagerank([frame, frame[["src"]]])
    with pytest.raises(prplugin.InvalidEdgesError, match="frame 1 is of polars"):
        prplugin.pagerank([frame, pl.from_pandas(frame)])
    with pytest.raises(prplugin.InvalidEdgesError, match="cannot be joined"):
        prplugin.pagerank([pl.from_pandas(frame), pl.from_pandas(frame[["src"]])])


# --- frames that are read one at a time -----------------------------------------------------------------------------


@pytest.fixture
def in_parts(monkeypatch):
    """Let no frame hold the edges, read 2000 at a time, and pack 9000."""
    monkeypatch.setattr(pieces, "fit_at_once", lambda rows, *, weighted: False)
    monkeypatch.setattr(pieces, "PART", 9000)
    monkeypatch.setattr(pieces, "READ", 2000)
    monkeypatch.setattr("prplugin.gpu.factorize.FIRST_SLOTS", 100)


def sources(folder, whole):
    """Return the edges in all forms that are read in pieces."""
    for number, frame in enumerate(cut(whole)):
        frame.to_parquet(folder / f"{number}.parquet", row_group_size=400)
    frames = [cudf.from_pandas(frame) for frame in cut(whole)]
    yield from (frames, iter(frames), Repeated(frames))
    yield folder
    yield [str(folder / f"{number}.parquet") for number in range(3)]
    dask_cudf = pytest.importorskip("dask_cudf")
    yield dask_cudf.from_cudf(cudf.from_pandas(whole), npartitions=3)


@pytest.mark.parametrize("mark", [pytest.param(None, marks=REQUIRES_CUDF)])
@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("options", [{}, {"directed": False}, {"vertices": [1, 2]}], ids=str)
def test_edges_in_pieces_are_ranked_as_one_frame(tmp_path, in_parts, mark, scattered, weight, options):
    whole = edges(scattered=scattered)
    expected = prplugin.pagerank(whole, weight=weight, tol=TOL, **options)
    for source in sources(tmp_path, whole):
        graph = prplugin.Graph(source, weight=weight, **options)
        ranking = graph.rank(tol=TOL, method="packed")
        found = ranking.frame
        found = found.compute() if hasattr(found, "compute") else found
        found = found.to_pandas() if isinstance(found, cudf.DataFrame) else found
        assert ranking.method == "packed" == graph.rank(among=[int(expected["vertex"][0])]).method
        assert found["vertex"].tolist() == expected["vertex"].tolist()
        assert np.abs(found["pagerank"] - expected["pagerank"]).sum() <= 2 * TOL
        assert "packed" in repr(graph)


@pytest.mark.parametrize("mark", [pytest.param(None, marks=REQUIRES_CUDF)])
def test_what_packed_edges_do_not_have_is_refused(in_parts, mark):
    frames = [cudf.from_pandas(frame) for frame in cut(edges())]
    graph = prplugin.Graph(frames)
    for call in (
        graph.csr,
        lambda: graph.update(add=frames[0]),
        lambda: graph.rank(seeds=[3, 4]),
        lambda: graph.rank(method="persistent"),
        lambda: graph.rank(method="native"),
    ):
        with pytest.raises(prplugin.MethodUnavailableError, match="packed when they were read"):
            call()
    with pytest.raises(prplugin.InvalidOptionError, match="duplicates='first' needs all 30,000 edges in one frame"):
        prplugin.Graph(frames, duplicates="first")
    with pytest.raises(prplugin.InvalidEdgesError, match="30,000 edges when read first, and 0 when read again"):
        prplugin.Graph(Exhausted(frames))
    with pytest.raises(prplugin.InvalidEdgesError, match="kind string"):
        prplugin.Graph([frame.astype({"src": str, "dst": str}) for frame in frames])
    with pytest.raises(prplugin.InvalidEdgesError, match="row"):
        prplugin.Graph([frames[0], frames[0].assign(weight=-1.0)], weight="weight")


@pytest.mark.parametrize("mark", [pytest.param(None, marks=REQUIRES_CUDF)])
def test_wrong_statistics_of_a_file_do_no_harm(tmp_path, in_parts, monkeypatch, mark):
    from prplugin.frames.row_groups import File

    whole = edges()
    whole.to_parquet(tmp_path / "edges.parquet", row_group_size=1000)
    monkeypatch.setattr(File, "extremes", lambda self, position: [(10, 20)])
    found = prplugin.pagerank(tmp_path / "edges.parquet", tol=TOL)
    assert np.abs(found["pagerank"] - prplugin.pagerank(whole, tol=TOL)["pagerank"]).sum() <= 2 * TOL


@pytest.mark.parametrize("mark", [pytest.param(None, marks=REQUIRES_CUDF)])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_device_memory_is_bounded_by_two_pieces(tmp_path, in_parts, monkeypatch, mark, weight):
    import rmm

    part, m, n = 1 << 21, 1 << 23, 1 << 15
    monkeypatch.setattr(pieces, "PART", part)
    monkeypatch.setattr(pieces, "READ", part >> 3)
    edges(m, n).to_parquet(tmp_path / "edges.parquet", row_group_size=part >> 5)
    prplugin.Graph(tmp_path / "edges.parquet", weight=weight)  # compiles the kernels
    upstream = rmm.mr.get_current_device_resource()
    statistics = rmm.mr.StatisticsResourceAdaptor(upstream)
    rmm.mr.set_current_device_resource(statistics)
    try:
        graph = prplugin.Graph(tmp_path / "edges.parquet", weight=weight)
        ranking = graph.rank(method="packed")
        peak = statistics.allocation_counts.peak_bytes
    finally:
        rmm.mr.set_current_device_resource(upstream)
    assert ranking.method == "packed"
    adjacency = graph._graph.adjacency
    vectors = footprint(packed.memory, Counts.of(adjacency), many=True).device.held
    assert peak <= adjacency.get(PackedParts).nbytes + vectors + 2 * part * (16 if weight is None else 24)
