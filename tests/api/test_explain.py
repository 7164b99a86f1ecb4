"""`explain` and `plot`: the history of a ranking as text and as a figure."""

from __future__ import annotations

import io
import itertools
import math
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from method_params import METHODS
from shown_text import explanation

import prplugin
from prplugin.graph.edges import Edges
from prplugin.graph.memory import Counts
from prplugin.machine import this_machine
from prplugin.methods.registry import methods, reasons
from prplugin.types.edges import Coo

RANDOM = np.random.default_rng(1)
EDGES = pd.DataFrame({"src": RANDOM.integers(0, 300, 2000), "dst": RANDOM.integers(0, 300, 2000)})


@pytest.mark.parametrize("method", METHODS)
def test_history_has_the_bounds_that_progress_reported(method):
    seen = []
    ranking = prplugin.Graph(EDGES).rank(method=method, tol=1e-8, progress=seen.append)
    history = ranking._history
    reported = [(state.iterations, state.error_bound) for state in seen if state.stage == "iterations"]
    assert set(reported) <= set(history.bounds)  # iterations of one launch are reported together
    assert history.bounds[-1] == (ranking.iterations, ranking.error_bound)
    assert (history.n, history.m, history.weighted) == (300, 2000, False)
    assert [one.method for one in history.considered] == [method]
    assert all(seconds >= 0 for _, seconds in history.stages)


def test_explanation_has_counts_bytes_stages_methods_and_bound():
    ranking = prplugin.Graph(EDGES).rank()
    text = explanation(ranking)
    assert str(ranking) in text
    assert "300 vertices, 2,000 edges" in text
    assert f"{2000 * 4 + 300 * 48:,}" in text
    assert "bandwidth at that number of bytes: " in text
    assert "frame read" in text
    assert "frame of ranks written" not in text
    _ = ranking.frame
    assert "frame of ranks written" in explanation(ranking)
    for name in methods():
        assert name in text
    assert "the least estimate" in text
    assert f"{ranking.error_bound:.2e}" in text


def test_explanation_goes_to_standard_output_by_default(capsys):
    prplugin.Graph(EDGES).rank().explain()
    assert "300 vertices" in capsys.readouterr().out


def test_explanation_of_a_certified_order():
    text = explanation(prplugin.Graph(EDGES).rank(top=5, certified=True))
    assert "order of the 5 highest: proved" in text
    assert "the error of each rank is at most" in text


def test_bytes_per_iteration_include_weights():
    edges = EDGES.assign(w=1.5)
    assert f"{2000 * 12 + 300 * 48:,}" in explanation(prplugin.Graph(edges, weight="w").rank())


def test_reasons_against_the_other_methods():
    adjacency = Edges(Coo(np.array([0, 1]), np.array([1, 0]), None, 2))
    counts = Counts.of(adjacency)
    considered = {one.method: one for one in reasons("native", "auto", counts, this_machine(), {"threads": 1})}
    assert considered["numpy"].reason == "takes no option threads"
    assert considered["numpy"].seconds is None
    assert "runs on the GPU" in considered["warp"].reason


def test_explanation_of_an_empty_graph_and_of_no_iterations():
    empty = pd.DataFrame({"src": pd.Series([], dtype="int64"), "dst": pd.Series([], dtype="int64")})
    assert "0 vertices" in explanation(prplugin.Graph(empty).rank())
    assert "error bound" not in explanation(prplugin.Graph(EDGES).rank(tol=0, max_iter=0))


def test_explanation_of_a_graph_of_arrays():
    assert "2 vertices" in explanation(prplugin.Graph.from_csr([0, 1, 2], [1, 0]).rank())


def test_history_is_pickled():
    ranking = prplugin.Graph(EDGES).rank(top=3)
    copied = pickle.loads(pickle.dumps(ranking))
    histories = [each._history._replace(choice=each._history.considered) for each in (copied, ranking)]
    assert histories[0] == histories[1]
    assert explanation(copied) == explanation(ranking)


def test_figure_of_a_ranking():
    ranking = prplugin.Graph(EDGES).rank(tol=1e-9)
    figure = ranking.plot()
    bars, convergence, distribution = figure.axes
    line, tol = convergence.lines
    assert [tuple(point) for point in line.get_xydata()] == list(ranking._history.bounds)
    assert tol.get_ydata()[0] == 1e-9
    ranks, fractions = distribution.lines[0].get_data()
    for rank, fraction in zip(ranks, fractions, strict=True):
        assert math.isclose(fraction, (ranking.ranks >= rank).mean())
    frame = ranking.frame.nlargest(10, "pagerank")
    assert [label.get_text() for label in bars.get_yticklabels()] == frame["vertex"].astype(str).tolist()
    assert [bar.get_width() for bar in bars.patches] == frame["pagerank"].tolist()
    figure.savefig(io.BytesIO(), format="png")
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@pytest.mark.parametrize("tol", [1e-4, 1e-11])
def test_the_history_has_every_iteration(tol):
    graph = prplugin.Graph(EDGES)
    ranking = graph.rank(method="native", tol=tol)
    iterations, bounds = zip(*ranking._history.bounds, strict=True)
    assert iterations == tuple(range(1, ranking.iterations + 1))
    assert bounds[-1] == ranking.error_bound
    exact = graph.rank(method="numpy", tol=1e-12)
    for count, bound in ranking._history.bounds[:-1]:
        with pytest.raises(prplugin.NotConvergedError) as stopped:
            graph.rank(method="native", tol=tol, max_iter=count)
        assert abs(stopped.value.ranking.ranks - exact.ranks).sum() <= bound + exact.error_bound


def test_figures_without_a_convergence_curve():
    for options in ({"tol": 0, "max_iter": 0}, {"stop": "delta"}, {"personalization": {0: 1}, "top": 2}):
        prplugin.Graph(EDGES).rank(**options).plot().draw_without_rendering()
    single_vertex = prplugin.Graph(EDGES.head(0), vertices=[1]).rank()
    single_vertex.plot().draw_without_rendering()


def test_plot_without_matplotlib_is_an_error(monkeypatch):
    monkeypatch.delitem(sys.modules, "prplugin.result.plot", raising=False)
    monkeypatch.delattr("prplugin.result.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(prplugin.MissingLibraryError, match=r"prplugin\[plot\]"):
        prplugin.Graph(EDGES).rank().plot()


def visible_tick_labels(figure):
    """Yield the tick labels within the limits of each axis, as pairs of text and bounding box."""
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
        (EDGES.assign(dst=EDGES.dst // 60), {}),  # ranks over several orders of magnitude
        (EDGES.astype(str).map("a vertex with a very long name, number {}".format), {}),
        (pd.DataFrame({"src": ["$a", "b", "c$"], "dst": ["b", "c$", "$a"]}), {}),  # all ranks equal
        (EDGES, {"seeds": list(range(40))}),
        (EDGES, {"seeds": [1, 2], "top": 3}),
    ],
)
def test_tick_labels_do_not_overlap_and_counts_are_integers(edges, options):
    figure = prplugin.Graph(edges).rank(**options).plot()
    for labels in visible_tick_labels(figure):
        for nth, (text, box) in enumerate(labels):
            for other, other_box in labels[nth + 1 :]:
                assert not box.overlaps(other_box), (text, other)
    for axes in figure.axes:
        if axes.get_xlabel() == "passes over the edges":
            assert all(tick == int(tick) for tick in axes.get_xticks())


def test_figure_of_seeds():
    ranking = prplugin.Graph(EDGES).rank(seeds=[1, 2, 3])
    bars, passes, errors = ranking.plot().axes
    assert sum(bar.get_height() for bar in passes.patches) == 3
    assert errors.lines[0].get_ydata().tolist() == sorted(ranking.each_error_bound)
    means = ranking.frame.groupby("vertex")["pagerank"].mean().nlargest(10)
    assert [label.get_text() for label in bars.get_yticklabels()] == means.index.astype(str).tolist()
    assert [bar.get_width() for bar in bars.patches] == pytest.approx(means.tolist(), rel=1e-12)


def test_highest_vertices_of_seeds_with_top():
    graph = prplugin.Graph(EDGES)
    ranking = graph.rank(seeds=[1, 2], top=4)
    means = ranking.frame.groupby("vertex")["pagerank"].sum().div(2).nlargest(10)
    assert ranking._highest() == [(str(vertex), pytest.approx(mean)) for vertex, mean in means.items()]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["https://example.org/pages/first", "https://example.org/pages/second"], ["…first", "…second"]),
        (["a row with a long name, number 1", "a row with a long name, number 12"], ["…1", "…12"]),
        (["https://example.org", "https://example.org/a/long/path"], ["…org", "…org/a/long/path"]),
        (["a" * 20 + "0123456789", "short"], ["aaaaaaaa…aaaaa0123456789", "short"]),
        (["https://example.org/pages/first"], ["https://…org/pages/first"]),
        (
            ["a" * 8 + "-one-" + "b" * 15, "a" * 8 + "-two-" + "b" * 15, "c" * 28],
            ["a" * 8 + "-one-" + "b" * 15, "a" * 8 + "-two-" + "b" * 15, "c" * 8 + "…" + "c" * 15],
        ),
        (["two words", "two  words", "one"], ["'two words'", "'two  words'", "one"]),
        (["line\nbreak", "one"], ["line break", "one"]),
    ],
)
def test_long_labels_keep_what_distinguishes_them(names, labels):
    ranking = prplugin.Graph(pd.DataFrame({"src": names, "dst": names})).rank()
    bars = ranking.plot().axes[0]
    assert [label.get_text() for label in bars.get_yticklabels()] == labels


def test_labels_of_a_plot_are_names_by_vertex():
    names = {0: "Ann", 1: "Bob", 2: "Bob", 3: "a\nb", 5: "6"}
    missing = names | {4: np.nan, 6: None}
    edges = pd.DataFrame({"src": range(7), "dst": 0})
    for options in ({}, {"seeds": [1, 2]}):
        ranking = prplugin.Graph(edges).rank(**options)
        for labels in (names, pd.Series(names), missing, pd.Series(missing), pd.Series(missing, dtype="str")):
            shown = [label.get_text() for label in ranking.plot(labels=labels).axes[0].get_yticklabels()]
            assert sorted(shown) == sorted(["Ann", "Bob (1)", "Bob (2)", "a b", "4", "6 (5)", "6"])
        with pytest.raises(prplugin.InvalidOptionError, match=r"indexed by vertex, not .*list"):
            ranking.plot(labels=["Ann"])
        with pytest.raises(prplugin.InvalidOptionError, match=r"indexed by vertex, not .*DataFrame"):
            ranking.plot(labels=pd.Series(names).to_frame())
    pairs = pd.DataFrame({"a": ["x", "x"], "b": [1, 2], "c": ["x", "x"], "d": [2, 2]})
    bars = prplugin.Graph(pairs, ["a", "b"], ["c", "d"]).rank().plot(labels={("x", 2): "second"}).axes[0]
    assert [label.get_text() for label in bars.get_yticklabels()] == ["second", "x, 1"]


def test_bars_are_first_and_largest_and_nothing_is_cut_off():
    from matplotlib.figure import Figure

    names = EDGES.astype(str).map("a very long name of a vertex, number {}".format)
    ranking = prplugin.Graph(names).rank()
    for top in (10, 20, 40):
        own, given = ranking.plot(top=top), Figure(figsize=(6, 3))
        ranking.plot(top=top, ax=given.subplots(1, 2)[0])
        for figure in (own, given):
            labels = [labels for labels in visible_tick_labels(figure) if len(labels) == top]
            assert len(labels) == 1
            for (_, box), (_, below) in itertools.pairwise(labels[0]):
                assert not box.overlaps(below)
            assert all(box.x0 >= 0 and box.y0 >= 0 and box.y1 <= figure.bbox.y1 for _, box in labels[0])
        boxes = [axes.get_position() for axes in own.axes]
        assert boxes[0].y0 > boxes[1].y1 > boxes[2].y1
        assert boxes[0].height > max(box.height for box in boxes[1:])
        assert own.get_figwidth() <= 5


def test_axes_and_number_of_vertices_of_a_plot():
    from matplotlib.figure import Figure

    for options in ({}, {"seeds": [1, 2]}):
        ranking = prplugin.Graph(EDGES).rank(**options)
        assert len(ranking.plot(top=15).axes[0].patches) == 15
        figure = Figure()
        left, right = figure.subplots(1, 2)
        assert ranking.plot(top=3, ax=right) is figure
        assert len(right.patches) == 3
        assert not left.has_data()
        panels = Figure().subplots(3)
        assert ranking.plot(ax=panels) is panels[0].figure
        assert all(axes.has_data() for axes in panels)
        with pytest.raises(prplugin.InvalidOptionError, match="one Axes"):
            ranking.plot(ax=panels[:2])
        with pytest.raises(prplugin.InvalidOptionError, match="top must be"):
            ranking.plot(top=0)


def test_counts_of_one_are_singular():
    ranking = prplugin.Graph(EDGES.head(0), vertices=[1]).rank()
    assert ranking.plot().axes[2].get_title() == "1 vertex"
    assert str(ranking).startswith("PageRank of 1 vertex:")
    assert "graph: 1 vertex, 0 edges" in explanation(ranking)
    assert prplugin.Graph(EDGES).rank(seeds=[1]).plot().axes[2].get_title() == "1 seed"


def test_explanation_of_seeds():
    ranking = prplugin.Graph(EDGES).rank(seeds=[1, 2, 3])
    text = explanation(ranking)
    assert str(ranking) in text
    counts = ranking.each_iterations
    assert f"passes over the edges: {counts.min()} to {counts.max()} per seed" in text
    assert "the least estimate for 3 seeds" in text
    assert "requested by name" in explanation(prplugin.Graph(EDGES).rank(seeds=[1], method="numpy"))
