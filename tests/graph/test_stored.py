"""Graphs as arrays and facts: the same graph comes back, and each fact or array that no graph can have is refused."""

from __future__ import annotations

import numpy as np
import pytest

from prplugin.graph import stored
from prplugin.graph.edges import Edges
from prplugin.methods.engines.packed_rows import packed_graph
from prplugin.types.edges import Coo, Csc, Csr

SOURCE, DESTINATION = np.array([0, 2, 2, 1], np.int32), np.array([1, 0, 3, 1], np.int32)


def graph(kind):
    weights = np.array([0.5, 1.0, 2.0, 3.0]) if kind == "weighted" else None
    adjacency = Edges(Coo(SOURCE, DESTINATION, weights, 5, (0.5, 3.0), roundings=3))
    if kind == "weighted":
        adjacency.set_out_weight(adjacency.out_weight, 7)
    return packed_graph(adjacency) if kind == "packed" else adjacency


@pytest.fixture(params=["unweighted", "weighted", "packed"])
def parts(request):
    return stored.stored(graph(request.param))


def with_fact(parts, **changed):
    return parts[1] | changed


def test_a_graph_comes_back(parts):
    arrays, facts = parts
    assert set(stored.types_of(facts)) == set(arrays)
    for name, (types, size) in stored.types_of(facts).items():
        assert arrays[name].dtype in types
        assert arrays[name].size == size
    stored.check(arrays, facts)
    found = stored.restored(arrays, facts)
    if "packed" not in facts:
        assert found.held(Csc).indices is arrays["in_sources"]  # not made again
    expected = graph("weighted" if facts["weighted"] else "unweighted")
    for one, other in zip((*found.get(Csc), *found.get(Csr)), (*expected.get(Csc), *expected.get(Csr)), strict=True):
        assert one is other is None or one.tolist() == other.tolist()
    assert found.out_weight.tolist() == expected.out_weight.tolist()
    assert found.frame_space is None
    if facts["weighted"]:
        assert (found.out_weight_depth, found.roundings, found.extent) == (7 + 2 * 3, 3, (0.5, 3.0))
    elif "packed" not in facts:
        assert found.extent == (0.5, 3.0)


@pytest.mark.parametrize("kind", ["unweighted", "weighted"])
def test_edges_moved_to_the_host_come_back_as_such(kind):
    arrays, facts = stored.stored(graph(kind))
    assert stored.restored(arrays, facts | {"spilled": True}).frame_space == "device"


@pytest.mark.parametrize("value", [-1, 1 << 62, True, 1.0, "1", None])
def test_counts_are_whole_numbers(parts, value):
    counts = ["n", "m", "roundings", "out_weight_depth", *(["packed", "pieces"] if "packed" in parts[1] else [])]
    for name in counts:
        with pytest.raises(ValueError, match=f"^{name} is "):
            stored.types_of(with_fact(parts, **{name: value}))


def test_the_least_and_the_greatest_count_are_allowed(parts):
    for value in (0, (1 << 62) - 1):
        stored.types_of(with_fact(parts, m=value))


@pytest.mark.parametrize(
    "changed",
    [
        {"weighted": 1}, {"listed": None}, {"spilled": 0}, {"memory_space": "disk"}, {"extent": [0.0, 1.0]},
        {"extent": [-1.0, 1.0]}, {"extent": [1, 2.0]}, {"extent": [1.0, 2]}, {"extent": [1.0, float("inf")]},
        {"extent": [float("nan"), 2.0]}, {"extent": [1.0, float("nan")]},
    ],
)  # fmt: skip
def test_other_facts_are_checked(parts, changed):
    (name,) = changed
    with pytest.raises(ValueError, match=f"^{name} is "):
        stored.types_of(with_fact(parts, **changed))


def test_packed_edges_are_unweighted_few_and_on_the_host():
    parts = stored.stored(graph("packed"))
    stored.types_of(with_fact(parts, n=2**31))
    for changed in ({"weighted": True}, {"listed": True}, {"memory_space": "device"}, {"n": 2**31 + 1}):
        with pytest.raises(ValueError, match="a graph of packed edges has no weights"):
            stored.types_of(with_fact(parts, **changed))


@pytest.mark.parametrize("offsets", [[1, 2, 3, 3, 4, 4], [0, 1, 3, 3, 4, 5], [0, 3, 2, 3, 4, 4], [0, 1, 3, 3, 5, 4]])
def test_offsets_rise_from_0_to_the_number_of_edges(offsets):
    arrays, facts = stored.stored(graph("unweighted"))
    with pytest.raises(ValueError, match="in_offsets does not rise from 0 to 4"):
        stored.check(arrays | {"in_offsets": np.array(offsets)}, facts)


@pytest.mark.parametrize("name", ["in_sources", "source", "destination"])
@pytest.mark.parametrize("position", [-1, 5])
def test_positions_are_those_of_vertices(name, position):
    arrays, facts = stored.stored(graph("weighted"))
    changed = arrays[name].copy()
    for at in (0, -1):
        changed[:] = arrays[name]
        changed[at] = position
        with pytest.raises(ValueError, match=f"{name} holds positions outside of 0 to 4"):
            stored.check(arrays | {name: changed}, facts)


@pytest.mark.parametrize("name", ["in_weights", "weights", "out_weight"])
@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
def test_weights_are_finite_and_not_negative(name, value):
    arrays, facts = stored.stored(graph("weighted"))
    changed = np.append(arrays[name][:-1], value)
    with pytest.raises(ValueError, match=f"{name} holds values that are negative or not finite"):
        stored.check(arrays | {name: changed}, facts)


def test_out_degrees_sum_to_the_number_of_edges():
    arrays, facts = stored.stored(graph("unweighted"))
    with pytest.raises(ValueError, match="out_weight does not sum to 4"):
        stored.check(arrays | {"out_weight": arrays["out_weight"] + np.eye(1, 5, dtype=int)[0]}, facts)
    weighted, facts = stored.stored(graph("weighted"))
    stored.check(weighted, facts)  # sums of weights need not


def test_a_graph_without_edges_or_vertices():
    for n in (0, 3):
        nothing = np.empty(0, np.int32)
        for weights in (None, np.empty(0)):
            arrays, facts = stored.stored(Edges(Coo(nothing, nothing, weights, n)))
            stored.types_of(facts)
            stored.check(arrays, facts)
            assert stored.restored(arrays, facts).n == n
