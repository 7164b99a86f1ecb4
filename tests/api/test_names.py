"""Names that people bring from elsewhere: of columns, of arguments, of methods; and values in place of names."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.methods.registry import methods, options_of
from prplugin.options import GRAPH_ARGUMENTS, RANK_ARGUMENTS, MethodOptions
from prplugin.suggestions import MEANT

EDGES = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1], "w": [1.0, 2.0, 3.0]})
RANKS = EDGES.pagerank()


def named(*names):
    return EDGES.set_axis(names, axis="columns")


def message(call):
    with pytest.raises(prplugin.PageRankError) as caught:
        call()
    return str(caught.value)


# --- columns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("Source", "Target", "Weight"),
        ("SRC", "DST", "w"),
        ("From", "TO", "w"),
        ("SOURCE", "destination", "w"),
        ("src", "dst", "SRC"),
        ("source", "TARGET", "Source"),
    ],
)
def test_known_pairs_are_found_in_any_case(names):
    pd.testing.assert_frame_equal(named(*names).pagerank(), RANKS)


def test_spelled_exactly_comes_first():
    both = pd.DataFrame({"Src": [1, 1], "Dst": [2, 2], "from": [1, 2], "to": [2, 1]})
    assert both.pagerank()["pagerank"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "names", [("Source", "SOURCE", "Target"), ("Source", "Target", "Destination"), ("Src", "Dst", "TO", "FROM")]
)
def test_several_columns_in_other_case_are_ambiguous(names):
    frame = pd.DataFrame({name: [1, 2] for name in names})
    text = message(frame.pagerank)
    assert "several columns may be the ends" in text
    assert all(repr(name) in text for name in names)


@pytest.mark.parametrize(
    ("names", "source", "destination"),
    [
        (("from_node", "to_node", "w"), "from_node", "to_node"),
        (("u", "v", "w"), "u", "v"),
        (("FromNodeId", "ToNodeId", "x"), "FromNodeId", "ToNodeId"),
        (("source_id", "target_id", "w"), "source_id", "target_id"),
        (("node1", "node2", "w"), "node1", "node2"),
        (("src", "Target", "w"), "src", "Target"),
    ],
)
def test_other_pairs_are_proposed(names, source, destination):
    frame = named(*names)
    assert f"Did you mean source={source!r}, destination={destination!r}?" in message(frame.pagerank)
    pd.testing.assert_frame_equal(frame.pagerank(source, destination), RANKS)


def test_two_columns_are_proposed_whatever_their_names():
    assert "source='x', destination='y'" in message(pd.DataFrame({"x": [1], "y": [2]}).pagerank)
    assert "mean" not in message(pd.DataFrame({"x": [1], "y": [2], "z": [3]}).pagerank)
    assert "mean" not in message(pd.DataFrame({0: [1], "y": [2], "z": [3]}).pagerank)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ({"source": "Src", "destination": "dst"}, "source='src'"),
        ({"source": "src", "destination": "dest"}, "destination='dst'"),
        ({"weight": "W"}, "weight='w'"),
        ({"source": ("src", "w"), "destination": ("dst", "w")}, "the list source=['src', 'w']"),
    ],
)
def test_a_column_like_the_absent_one_is_proposed(arguments, meant):
    assert f"Did you mean {meant}?" in message(lambda: EDGES.pagerank(**arguments))


def test_no_column_is_proposed_where_none_is_alike():
    assert "mean" not in message(lambda: EDGES.pagerank(weight="clicks"))


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: pytest.importorskip("polars").from_pandas(frame)])
def test_a_column_in_place_of_its_name(make):
    frame = make(EDGES)
    assert "weight must be a column name, not" in message(lambda: frame.pagerank(weight=frame["w"]))
    assert "Did you mean weight='w'?" in message(lambda: frame.pagerank(weight=frame["w"]))
    assert "Did you mean source='src'?" in message(lambda: frame.pagerank(frame["src"], frame["dst"]))
    assert "pass its name" in message(lambda: frame.pagerank(weight=np.ones(3)))


def test_expressions_of_polars_in_place_of_names():
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(EDGES)
    for call in (
        lambda: frame.pagerank(weight=polars.col("w")),
        lambda: frame.lazy().pagerank(weight=polars.col("w") * 2),
        lambda: prplugin.Graph(frame, weight=polars.col("w")),
    ):
        assert "polars.Expr. Did you mean weight='w'?" in message(call)


def test_a_series_of_dask_in_place_of_its_name():
    frame = pytest.importorskip("dask.dataframe").from_pandas(EDGES, npartitions=1)
    assert "Did you mean weight='w'?" in message(lambda: frame.pagerank(weight=frame["w"]))


# --- arguments ----------------------------------------------------------------------------------------------------


ARGUMENTS = [
    ("damping", "alpha"),
    ("damping_factor", "alpha"),
    ("dampingFactor", "alpha"),
    ("aplha", "alpha"),
    ("weights", "weight"),
    ("relationshipWeightProperty", "weight"),
    ("n_jobs", "threads"),
    ("target", "destination"),
    ("niter", "max_iter"),
    ("maxIterations", "max_iter"),
    ("tolerance", "tol"),
    ("reset", "personalization"),
    ("thread", "threads"),
    ("undirected", "directed"),
    ("reset_probability", "alpha"),
]


@pytest.mark.parametrize(("name", "meant"), ARGUMENTS)
@pytest.mark.parametrize("function", ["pagerank", "Graph", "rank"])
def test_the_argument_that_is_meant_is_named(function, name, meant):
    call = {"pagerank": EDGES.pagerank, "Graph": lambda **a: prplugin.Graph(EDGES, **a), "rank": GRAPH.rank}[function]
    text = message(lambda: call(**{name: 1}))
    assert repr(name) in text
    assert f"Did you mean {meant}=" in text
    if function == "Graph" and meant not in GRAPH_ARGUMENTS:
        assert "an argument of Graph.rank and pagerank" in text
    if function == "rank" and meant in GRAPH_ARGUMENTS:
        assert "an argument of Graph and pagerank" in text


GRAPH = prplugin.Graph(EDGES)


def test_arguments_of_the_other_function():
    assert "alpha=, an argument of Graph.rank and pagerank" in message(lambda: prplugin.Graph(EDGES, alpha=0.9))
    assert "weight=, an argument of Graph and pagerank" in message(lambda: GRAPH.rank(weight="w"))
    assert "mean" not in message(lambda: GRAPH.rank(bogus="w"))
    assert "mean" not in message(lambda: prplugin.Graph(EDGES, bogus="w"))


def test_alpha_by_position():
    assert "Did you mean alpha=0.9?" in message(lambda: EDGES.pagerank(0.9))
    assert "by name: alpha=0.9." in message(lambda: EDGES.pagerank("src", "dst", "w", 0.9))
    assert "by name: alpha=0.9." in message(lambda: GRAPH.rank(0.9))
    assert "by name: alpha=0.85." in message(lambda: prplugin.Graph(EDGES, "src", "dst", "w", True))
    floats = pd.DataFrame({0.25: [1, 2], 0.5: [2, 1]})
    assert floats.pagerank(0.25, 0.5)["pagerank"].tolist() == [0.5, 0.5]


def test_an_error_inside_is_not_taken_for_one_of_the_call():
    def fail(state):
        raise TypeError("of the user")

    with pytest.raises(TypeError, match="of the user"):
        EDGES.pagerank(progress=fail)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        prplugin.pagerank()


def test_an_option_of_another_method_is_refused():
    text = message(lambda: EDGES.pagerank(method="numpy", threads=2))
    assert text == "'threads' is an option of other methods: method 'numpy' takes no options of its own."


def test_a_choice_that_is_alike_is_named():
    assert "Did you mean 'numba'?" in message(lambda: EDGES.pagerank(method="nubma"))
    assert "Did you mean 'error'?" in message(lambda: EDGES.pagerank(stop="Error"))


def test_synonyms_lead_to_arguments():
    known = {*GRAPH_ARGUMENTS, *RANK_ARGUMENTS, *MethodOptions.__annotations__}
    assert {argument for argument, _ in MEANT.values()} <= known
    assert not set(MEANT) & (known - {"source"})


def test_arguments_are_those_of_the_signatures():
    def names(function):
        return {name for name in inspect.signature(function).parameters if name not in ("self", "edges")}

    assert names(prplugin.Graph.__init__) == set(GRAPH_ARGUMENTS)
    assert names(prplugin.Graph.rank) == {*RANK_ARGUMENTS}
    assert names(prplugin.pagerank) == {*GRAPH_ARGUMENTS, *RANK_ARGUMENTS}


def test_the_options_for_type_checkers_are_those_of_the_methods():
    options = {option for method in methods().values() for option in options_of(method)}
    assert set(get_type_hints(MethodOptions)) == options
