"""Suggestions for names of columns, arguments and methods that other libraries use, and for values in place of names."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest
from shown_text import error_message

import prplugin
from prplugin.methods.registry import methods, options_of
from prplugin.options import GRAPH_ARGUMENTS, RANK_ARGUMENTS, MethodOptions, RankArguments
from prplugin.suggestions import MEANT

EDGES = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1], "w": [1.0, 2.0, 3.0]})
RANKS = EDGES.pagerank()


def edges_with_columns(*names):
    return EDGES.set_axis(names, axis="columns")


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
    pd.testing.assert_frame_equal(edges_with_columns(*names).pagerank(), RANKS)


def test_exact_spelling_is_preferred():
    both = pd.DataFrame({"Src": [1, 1], "Dst": [2, 2], "from": [1, 2], "to": [2, 1]})
    assert both.pagerank()["pagerank"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "names", [("Source", "SOURCE", "Target"), ("Source", "Target", "Destination"), ("Src", "Dst", "TO", "FROM")]
)
def test_several_columns_that_match_in_another_case_are_ambiguous(names):
    frame = pd.DataFrame({name: [1, 2] for name in names})
    text = error_message(frame.pagerank)
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
    frame = edges_with_columns(*names)
    assert f"Did you mean source={source!r}, destination={destination!r}?" in error_message(frame.pagerank)
    pd.testing.assert_frame_equal(frame.pagerank(source, destination), RANKS)


def test_the_only_two_columns_are_proposed_whatever_their_names():
    assert "source='x', destination='y'" in error_message(pd.DataFrame({"x": [1], "y": [2]}).pagerank)
    assert "mean" not in error_message(pd.DataFrame({"x": [1], "y": [2], "z": [3]}).pagerank)
    assert "mean" not in error_message(pd.DataFrame({0: [1], "y": [2], "z": [3]}).pagerank)


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        ({"source": "Src", "destination": "dst"}, "source='src'"),
        ({"source": "src", "destination": "dest"}, "destination='dst'"),
        ({"weight": "W"}, "weight='w'"),
        ({"source": ("src", "w"), "destination": ("dst", "w")}, "the list source=['src', 'w']"),
    ],
)
def test_a_similar_column_is_proposed(arguments, suggestion):
    assert f"Did you mean {suggestion}?" in error_message(lambda: EDGES.pagerank(**arguments))


def test_no_column_is_proposed_if_none_is_similar():
    assert "mean" not in error_message(lambda: EDGES.pagerank(weight="clicks"))


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: pytest.importorskip("polars").from_pandas(frame)])
def test_a_column_in_place_of_its_name_is_refused(make):
    frame = make(EDGES)
    assert "weight must be a column name, not" in error_message(lambda: frame.pagerank(weight=frame["w"]))
    assert "Did you mean weight='w'?" in error_message(lambda: frame.pagerank(weight=frame["w"]))
    assert "Did you mean source='src'?" in error_message(lambda: frame.pagerank(frame["src"], frame["dst"]))
    assert "pass its name" in error_message(lambda: frame.pagerank(weight=np.ones(3)))


def test_polars_expressions_in_place_of_names_are_refused():
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(EDGES)
    for call in (
        lambda: frame.pagerank(weight=polars.col("w")),
        lambda: frame.lazy().pagerank(weight=polars.col("w") * 2),
        lambda: prplugin.Graph(frame, weight=polars.col("w")),
    ):
        assert "polars.Expr. Did you mean weight='w'?" in error_message(call)


def test_a_dask_series_in_place_of_its_name_is_refused():
    frame = pytest.importorskip("dask.dataframe").from_pandas(EDGES, npartitions=1)
    assert "Did you mean weight='w'?" in error_message(lambda: frame.pagerank(weight=frame["w"]))


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


@pytest.mark.parametrize(("name", "suggestion"), ARGUMENTS)
@pytest.mark.parametrize("function", ["pagerank", "Graph", "rank"])
def test_an_argument_is_suggested_for_a_synonym_or_misspelling(function, name, suggestion):
    call = {"pagerank": EDGES.pagerank, "Graph": lambda **a: prplugin.Graph(EDGES, **a), "rank": GRAPH.rank}[function]
    text = error_message(lambda: call(**{name: 1}))
    assert repr(name) in text
    assert f"Did you mean {suggestion}=" in text
    if function == "Graph" and suggestion not in GRAPH_ARGUMENTS:
        assert "an argument of Graph.rank and pagerank" in text
    if function == "rank" and suggestion in GRAPH_ARGUMENTS:
        assert "an argument of Graph and pagerank" in text


GRAPH = prplugin.Graph(EDGES)


def test_an_argument_of_the_other_function_is_named():
    assert "alpha=, an argument of Graph.rank and pagerank" in error_message(lambda: prplugin.Graph(EDGES, alpha=0.9))
    assert "argument of Graph(...) and pagerank(...), not of rank" in error_message(lambda: GRAPH.rank(weight="w"))
    assert "alpha=, an argument of Graph.rank and pagerank" in error_message(lambda: GRAPH.update(EDGES, alpha=0.9))
    assert "mean" not in error_message(lambda: GRAPH.rank(bogus="w"))
    assert "mean" not in error_message(lambda: prplugin.Graph(EDGES, bogus="w"))


def test_a_suggestion_in_another_spelling_keeps_its_remark():
    assert "Did you mean alpha=? It is 1 - alpha." in error_message(lambda: EDGES.pagerank(resetProb=0.15))


@pytest.mark.parametrize(
    ("constructor", "given", "wrong", "suggestion"),
    [
        ("from_csr", ([0, 1], [0]), "weight", "weights"),
        ("from_igraph", (None,), "weight", "weights"),
        ("from_networkx", (None,), "weights", "weight"),
        ("from_file", ("edges.csv",), "weights", "weight"),
        ("from_cugraph", (None,), "directed", "directed=, an argument of Graph and pagerank"),
    ],
)
def test_constructors_suggest_arguments(constructor, given, wrong, suggestion):
    text = error_message(lambda: getattr(prplugin.Graph, constructor)(*given, **{wrong: "w"}))
    assert text.startswith(f"Graph.{constructor} has no argument {wrong!r}. Did you mean {suggestion}")


def test_endpoints_in_the_index_are_found():
    grouped = EDGES.assign(w=1.0).groupby(["src", "dst"])
    message = "its index has the levels 'src', 'dst': call .reset_index("
    assert message in error_message(lambda: prplugin.pagerank(grouped.size()))
    for frame in (grouped.sum(), grouped.agg({"w": "sum"})):
        assert message in error_message(frame.pagerank)
        assert message in error_message(lambda frame=frame: frame.pagerank("src", "dst", "w"))


def test_alpha_by_position_is_refused():
    assert "Did you mean alpha=0.9?" in error_message(lambda: EDGES.pagerank(0.9))
    assert "by name: alpha=0.9." in error_message(lambda: EDGES.pagerank("src", "dst", "w", 0.9))
    assert "by name: alpha=0.9." in error_message(lambda: GRAPH.rank(0.9))
    assert "by name: alpha=0.85." in error_message(lambda: prplugin.Graph(EDGES, "src", "dst", "w", True))
    floats = pd.DataFrame({0.25: [1, 2], 0.5: [2, 1]})
    assert floats.pagerank(0.25, 0.5)["pagerank"].tolist() == [0.5, 0.5]


def test_type_errors_of_a_callback_are_passed_on():
    def fail(state):
        raise TypeError("from the callback")

    with pytest.raises(TypeError, match="from the callback"):
        EDGES.pagerank(progress=fail)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        prplugin.pagerank()


def test_an_option_of_another_method_is_refused():
    text = error_message(lambda: EDGES.pagerank(method="numpy", threads=2))
    assert text == "'threads' is an option of other methods: method 'numpy' takes no options of its own."


def test_a_similar_choice_is_suggested():
    assert "Did you mean 'native'?" in error_message(lambda: EDGES.pagerank(method="natvie"))
    assert "Did you mean 'error'?" in error_message(lambda: EDGES.pagerank(stop="Error"))


def test_synonyms_map_to_existing_arguments():
    known = {*GRAPH_ARGUMENTS, *RANK_ARGUMENTS, *MethodOptions.__annotations__}
    assert {argument for argument, _ in MEANT.values()} <= known
    assert not set(MEANT) & (known - {"source"})


def test_argument_lists_match_the_signatures():
    def names(function):
        return {name for name in inspect.signature(function).parameters if name not in ("self", "edges")}

    assert names(prplugin.Graph.__init__) == set(GRAPH_ARGUMENTS)
    assert names(prplugin.Graph.rank) == {*RANK_ARGUMENTS}
    assert names(prplugin.pagerank) == {*GRAPH_ARGUMENTS, *RANK_ARGUMENTS}
    typed = set(get_type_hints(RankArguments)) - set(get_type_hints(MethodOptions))
    assert typed == {*RANK_ARGUMENTS} - {"seeds", "method_options"}


def test_method_options_for_type_checkers_match_the_methods():
    options = {option for method in methods().values() for option in options_of(method)}
    assert set(get_type_hints(MethodOptions)) == options
