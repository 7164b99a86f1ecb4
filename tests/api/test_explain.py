"""What a ranking tells of how it came about: the record, its text, its figure."""

from __future__ import annotations

import io
import math
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from running import METHODS

import prplugin
from prplugin.graph.adjacency import Adjacency
from prplugin.machine import this_machine
from prplugin.methods.reasons import reasons
from prplugin.methods.registry import methods
from prplugin.types.edges import Edges

RANDOM = np.random.default_rng(1)
EDGES = pd.DataFrame({"src": RANDOM.integers(0, 300, 2000), "dst": RANDOM.integers(0, 300, 2000)})


def explained(ranking):
    file = io.StringIO()
    ranking.explain(file)
    return file.getvalue()


@pytest.fixture(autouse=True)
def no_copying(monkeypatch):
    """A copy of 128 MiB takes longer than all the rest."""
    monkeypatch.setattr("prplugin.result.explain._bandwidth", lambda memory_space: 1e10)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_are_those_of_the_steps(method):
    seen = []
    ranking = prplugin.Graph(EDGES).rank(method=method, tol=1e-8, progress=seen.append)
    history = ranking._history
    told = [(state.iterations, state.error_bound) for state in seen if state.stage == "iterations"]
    assert list(history.bounds) == told
    assert history.bounds[-1] == (ranking.iterations, ranking.error_bound)
    assert (history.n, history.m, history.weighted) == (300, 2000, False)
    assert [one.method for one in history.considered] == [method]
    assert all(seconds >= 0 for _, seconds in history.stages)


def test_the_text_has_all_of_it():
    ranking = prplugin.Graph(EDGES).rank()
    text = explained(ranking)
    assert str(ranking) in text
    assert "300 vertices, 2,000 edges" in text
    assert f"{2000 * 4 + 300 * 48:,}" in text
    assert "% of the 10 GB/s" in text
    assert "frame read" in text
    assert "frame of ranks written" not in text
    _ = ranking.frame
    assert "frame of ranks written" in explained(ranking)
    for name in methods():
        assert name in text
    assert "the least estimate" in text
    assert f"{ranking.error_bound:.2e}" in text


def test_it_goes_to_standard_output(capsys):
    prplugin.Graph(EDGES).rank().explain()
    assert "300 vertices" in capsys.readouterr().out


def test_a_certified_order_is_told():
    text = explained(prplugin.Graph(EDGES).rank(top=5, certified=True))
    assert "order of the 5 highest: proved" in text
    assert "no rank is off by more than" in text


def test_weights_count():
    edges = EDGES.assign(w=1.5)
    assert f"{2000 * 12 + 300 * 48:,}" in explained(prplugin.Graph(edges, weight="w").rank())


def test_measured_seconds_are_told(monkeypatch):
    monkeypatch.setattr("prplugin.methods.measured.SKIP_RATIO", math.inf)
    graph = prplugin.Graph(EDGES)
    for _ in range(2):
        considered = graph.rank(method="measured")._history.considered
        assert considered[0].reason == "measured: the fastest here"
        assert any(one.reason == "measured: slower here" for one in considered[1:])


def test_reasons_against_others():
    adjacency = Adjacency(Edges(np.array([0, 1]), np.array([1, 0]), None, 2))
    told = {
        one.method: one for one in reasons(methods()["numba"], "auto", adjacency, this_machine(), {"threads": 1}, {})
    }
    assert told["numpy"].reason == "takes no option threads"
    assert told["numpy"].seconds is None
    assert "runs on the GPU" in told["warp"].reason


def test_empty_graphs_and_no_steps():
    empty = pd.DataFrame({"src": pd.Series([], dtype="int64"), "dst": pd.Series([], dtype="int64")})
    assert "0 vertices" in explained(prplugin.Graph(empty).rank())
    assert "error bound" not in explained(prplugin.Graph(EDGES).rank(tol=0, max_iter=0))


def test_from_arrays():
    assert "2 vertices" in explained(prplugin.Graph.from_csr([0, 1, 2], [1, 0]).rank())


def test_the_record_is_pickled():
    ranking = prplugin.Graph(EDGES).rank(top=3)
    again = pickle.loads(pickle.dumps(ranking))
    assert again._history == ranking._history
    assert explained(again) == explained(ranking)


def test_the_figure():
    ranking = prplugin.Graph(EDGES).rank(tol=1e-9)
    figure = ranking.plot()
    convergence, distribution, bars = figure.axes
    line, tol = convergence.lines
    assert [tuple(point) for point in line.get_xydata()] == list(ranking._history.bounds)
    assert tol.get_ydata()[0] == 1e-9
    ranks, shares = distribution.lines[0].get_data()
    assert all(math.isclose(share, (ranking.ranks >= rank).mean()) for rank, share in zip(ranks, shares, strict=True))
    frame = ranking.frame.nlargest(10, "pagerank")
    assert [label.get_text() for label in bars.get_yticklabels()] == frame["vertex"].astype(str).tolist()
    assert [bar.get_width() for bar in bars.patches] == frame["pagerank"].tolist()
    figure.savefig(io.BytesIO(), format="png")
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_figures_of_what_has_no_curve():
    for options in ({"tol": 0, "max_iter": 0}, {"stop": "delta"}, {"personalization": {0: 1}, "top": 2}):
        prplugin.Graph(EDGES).rank(**options).plot().savefig(io.BytesIO(), format="png")
    alone = prplugin.Graph(EDGES.head(0), vertices=[1]).rank()
    alone.plot().savefig(io.BytesIO(), format="png")


def test_without_matplotlib(monkeypatch):
    monkeypatch.delitem(sys.modules, "prplugin.result.plot", raising=False)
    monkeypatch.delattr("prplugin.result.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(prplugin.MissingLibraryError, match=r"prplugin\[plot\]"):
        prplugin.Graph(EDGES).rank().plot()


def drawn_labels(figure):
    """The tick labels of each axis of each panel that are inside it, as (text, box on the canvas)."""
    figure.canvas.draw()
    for axes in figure.axes:
        for axis, (low, high) in ((axes.xaxis, sorted(axes.get_xlim())), (axes.yaxis, sorted(axes.get_ylim()))):
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            labels = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]
            yield [(label.get_text(), label.get_window_extent()) for label in labels]


@pytest.mark.parametrize(
    ("edges", "options"),
    [
        (EDGES, {}),
        (EDGES, {"tol": 1e-12}),
        (EDGES, {"tol": 1.5, "alpha": 0.1}),
        (EDGES, {"scale": "n"}),
        (EDGES.assign(dst=EDGES.dst // 60), {}),  # ranks of several decades
        (EDGES.astype(str).map("a vertex with a very long name, number {}".format), {}),
        (pd.DataFrame({"src": ["$a", "b", "c$"], "dst": ["b", "c$", "$a"]}), {}),  # all ranks equal
        (EDGES, {"seeds": list(range(40))}),
        (EDGES, {"seeds": [1, 2], "top": 3}),
    ],
)
def test_labels_of_figures_do_not_collide_and_counts_are_whole(edges, options):
    figure = prplugin.Graph(edges).rank(**options).plot()
    for labels in drawn_labels(figure):
        for nth, (text, box) in enumerate(labels):
            for other, other_box in labels[nth + 1 :]:
                assert not box.overlaps(other_box), (text, other)
    for axes in figure.axes:
        if axes.get_xlabel() == "passes over the edges":
            assert all(tick == int(tick) for tick in axes.get_xticks())


def test_a_figure_of_seeds():
    ranking = prplugin.Graph(EDGES).rank(seeds=[1, 2, 3])
    passes, errors, bars = ranking.plot().axes
    assert sum(bar.get_height() for bar in passes.patches) == 3
    assert errors.lines[0].get_ydata().tolist() == sorted(ranking.each_error_bound)
    means = ranking.frame.groupby("vertex")["pagerank"].mean().nlargest(10)
    assert [label.get_text() for label in bars.get_yticklabels()] == means.index.astype(str).tolist()
    assert [bar.get_width() for bar in bars.patches] == pytest.approx(means.tolist(), rel=1e-12)


def test_the_highest_of_the_highest_of_seeds():
    graph = prplugin.Graph(EDGES)
    few = graph.rank(seeds=[1, 2], top=4)
    known = few.frame.groupby("vertex")["pagerank"].sum().div(2).nlargest(10)
    assert few._highest() == [(str(vertex), pytest.approx(mean)) for vertex, mean in known.items()]


def test_seeds_are_explained():
    ranking = prplugin.Graph(EDGES).rank(seeds=[1, 2, 3])
    text = explained(ranking)
    assert str(ranking) in text
    counts = ranking.each_iterations
    assert f"passes over the edges: {counts.min()} to {counts.max()} per seed" in text
    assert "the least estimate for 3 seeds" in text
    assert "asked for by name" in explained(prplugin.Graph(EDGES).rank(seeds=[1], method="numpy"))
