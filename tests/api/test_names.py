"""Suggestions for names of columns, arguments and methods that other libraries use, and for values in place of names."""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import partial

import numpy as np
import pandas as pd
import pytest
from shown_text import error_message

import prplugin
from prplugin.methods.registry import all_options
from prplugin.options import GRAPH_ARGUMENTS, RANK_ARGUMENTS, EdgeOptions, Options
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
    def message(function, **arguments):
        return error_message(lambda: function(**arguments))

    of_rank, of_graph = "It is an argument of Graph.rank and pagerank.", "It is an argument of Graph and pagerank."
    assert message(partial(prplugin.Graph, EDGES), alpha=0.9) == f"Graph has no argument 'alpha'. {of_rank}"
    fault = "'weight' is neither an argument of Graph.rank nor an option of any method."
    assert message(GRAPH.rank, weight="w") == f"{fault} {of_graph}"
    assert (
        "Graph.rank nor an option of any method. Did you mean weight=, an argument of Graph and pagerank?"
        in message(GRAPH.rank, weights="w")
    )
    assert of_rank in message(GRAPH.update, alpha=0.9)
    assert of_rank in message(GRAPH.estimate, alpha=0.9)
    assert "Ranking.plot has no argument 'tops'. Did you mean top=?" in message(GRAPH.rank().plot, tops=3)
    assert "It is an argument of Graph.update." in message(EDGES.pagerank, remove=EDGES)
    assert "It is an argument of estimate." in message(EDGES.pagerank, place="host")
    assert "It is an argument of Graph.from_csr." in message(partial(prplugin.Graph, EDGES), offsets=[0])
    assert "It is an argument of Graph.save." in message(partial(prplugin.Graph, EDGES), packed=True)
    for function in (GRAPH.rank, partial(prplugin.Graph, EDGES)):
        assert not {"mean", "It is"} & set(message(function, bogus="w").split())


def test_a_suggestion_in_another_spelling_keeps_its_remark():
    assert "Did you mean alpha=? It is 1 - alpha." in error_message(lambda: EDGES.pagerank(resetProb=0.15))


@pytest.mark.parametrize(
    ("constructor", "given", "wrong", "suggestion"),
    [
        ("from_csr", ([0, 1], [0]), "weight", "weights"),
        ("from_igraph", (None,), "weight", "weights"),
        ("from_networkx", (None,), "weights", "weight"),
        ("from_file", ("edges.csv",), "weights", "weight"),
        ("from_cugraph", (None,), "directed", None),
    ],
)
def test_constructors_suggest_arguments(constructor, given, wrong, suggestion):
    text = error_message(lambda: getattr(prplugin.Graph, constructor)(*given, **{wrong: "w"}))
    meant = f"Did you mean {suggestion}=?" if suggestion else "It is an argument of Graph and pagerank."
    assert text == f"Graph.{constructor} has no argument {wrong!r}. {meant}"


@pytest.mark.parametrize("names", [["source", "target"], ["u", "v"]])
def test_levels_of_the_index_are_named_with_their_remedy(names):
    grouped = EDGES.set_axis([*names, "w"], axis="columns").groupby(names)
    levels = f"{names[0]!r}, {names[1]!r} are levels of its index"
    sums, sizes = grouped.sum(), grouped.size()
    for call in (
        sums.pagerank,
        lambda: sums.pagerank(*names),
        lambda: prplugin.Graph(sums),
        lambda: prplugin.estimate(sums),
        lambda: prplugin.Graph(sums.reset_index(), *names).update(sums),
    ):
        assert f"{levels}: frame.reset_index() makes columns of them." in error_message(call)
    assert f"Did you mean source={names[0]!r}, destination={names[1]!r}?" in error_message(sums.pagerank)
    assert f"{levels}: pass series.reset_index(name='w')" in error_message(lambda: prplugin.pagerank(sizes))
    unnamed = sizes.rename_axis([None, None])
    assert "'level_0', 'level_1' are levels" in error_message(lambda: prplugin.pagerank(unnamed))
    ranks = sizes.reset_index(name="w").pagerank(*names, weight="w")
    pd.testing.assert_frame_equal(ranks, EDGES.pagerank())


def test_levels_of_the_index_of_other_frames_are_named():
    values = pd.DataFrame({"values": [1.0]}, index=pd.Index([1], name="vertex"))
    text = error_message(lambda: GRAPH.rank(personalization=values))
    assert "'vertex' is a level of its index: frame.reset_index()" in text
    frame = pytest.importorskip("dask.dataframe").from_pandas(EDGES, npartitions=1)
    text = "'src', 'dst' are levels of its index: frame.reset_index()"
    assert text in error_message(frame.groupby(["src", "dst"]).sum().pagerank)
    assert "'src' is a level of its index" in error_message(frame.set_index("src").pagerank)


def test_an_unnamed_index_is_not_mentioned():
    assert "index" not in error_message(lambda: EDGES.pagerank(weight="clicks"))


def test_alpha_by_position_is_refused():
    assert "Did you mean alpha=0.9?" in error_message(lambda: EDGES.pagerank(0.9))
    assert "by name: alpha=0.9." in error_message(lambda: EDGES.pagerank("src", "dst", "w", 0.9))
    assert "by name: alpha=0.9." in error_message(lambda: GRAPH.rank(0.9))
    assert "by name: by, time, half_life, " in error_message(lambda: prplugin.Graph(EDGES, "src", "dst", "w", True))
    assert (
        error_message(lambda: GRAPH.update(EDGES, EDGES, EDGES))
        == "Graph.update takes add, remove by position and the others by name: wait."
    )
    assert error_message(lambda: GRAPH.estimate(1)) == "Graph.estimate takes no arguments."
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
    known = {*GRAPH_ARGUMENTS, *RANK_ARGUMENTS, *all_options()}
    assert {argument for argument, _ in MEANT.values()} <= known
    assert not set(MEANT) & (known - {"source"})


def test_argument_lists_match_the_signatures():
    def names(function):
        return {name for name in inspect.signature(function).parameters if name not in ("self", "edges")}

    assert names(prplugin.Graph.__init__) == set(GRAPH_ARGUMENTS)
    assert names(prplugin.Graph.rank) == {*RANK_ARGUMENTS}
    assert names(prplugin.pagerank) == {*GRAPH_ARGUMENTS, *RANK_ARGUMENTS}


def test_records_have_the_defaults_of_the_signature():
    declared = inspect.signature(prplugin.pagerank).parameters
    for field in (*fields(EdgeOptions), *fields(Options)):
        if field.name != "method_options":
            assert declared[field.name].default == field.default, field.name
