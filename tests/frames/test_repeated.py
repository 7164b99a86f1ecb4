"""Vertices that call after call names in `among=` and `exclude=`: positions are kept, and never those of others."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.frames.vertices import Vertices

NAMES = [f"passage {number}" for number in range(200)]
EDGES = pd.DataFrame({"src": NAMES, "dst": NAMES[1:] + NAMES[:1]})


@pytest.fixture
def resolved(monkeypatch):
    """Return the list of arguments whose vertices were looked up."""
    found, read = [], Vertices.read_positions

    def counted(self, given, what, unknown=None):
        found.append(what)
        return read(self, given, what, unknown)

    monkeypatch.setattr(Vertices, "read_positions", counted)
    return found


@pytest.mark.parametrize("made", [list, tuple, pd.Index, np.array])
@pytest.mark.parametrize("what", ["among", "exclude"])
@pytest.mark.parametrize("ids", ["strings", "integers"])
def test_vertices_that_are_named_again_are_looked_up_once(made, what, ids, resolved):
    edges = EDGES if ids == "strings" else pd.DataFrame({"src": range(200), "dst": [*range(1, 200), 0]})
    graph, named = prplugin.Graph(edges), made(edges.src.tolist()[20:120])
    first = graph.rank(**{what: named}).frame
    keeps = not (ids == "integers" and made is list) and not (ids == "strings" and made is np.array)
    for _ in range(3):
        pd.testing.assert_frame_equal(graph.rank(**{what: named}).frame, first)
    assert resolved == [what] * (1 if keeps else 4)
    pd.testing.assert_frame_equal(graph.rank(**{what: [*edges.src.tolist()[20:120]]}).frame, first)
    assert {"among": [*edges.src[20:120]], "exclude": [*edges.src[:20], *edges.src[120:]]}[what] == [*first.vertex]


def test_what_was_altered_is_looked_up_again(resolved):
    graph, names = prplugin.Graph(EDGES), NAMES[:100]
    graph.rank(among=names)
    names[3] = NAMES[150]
    assert graph.rank(among=names).frame.vertex.tolist() == names
    numbers = prplugin.Graph(pd.DataFrame({"src": range(200), "dst": 0}))
    array = np.arange(100)
    numbers.rank(among=array)
    array[5] = 150
    assert numbers.rank(among=array).frame.vertex.tolist() == array.tolist()
    with pytest.raises(prplugin.InvalidOptionError):
        numbers.rank(among=[True, *range(2, 101)])
    assert len(resolved) == 5


def test_unknown_vertices_are_counted_or_refused_each_time():
    graph, names = prplugin.Graph(EDGES), [*NAMES[:100], "absent"]
    for _ in range(3):
        ranking = graph.rank(among=names, unknown="ignore")
        assert ranking.frame.vertex.tolist() == NAMES[:100]
        assert ranking._history.unknown == (("among", 1),)
        with pytest.raises(prplugin.InvalidOptionError, match="absent"):
            graph.rank(among=names)
        assert graph.rank(exclude=names)._history.unknown == (("exclude", 1),)


def test_an_updated_graph_looks_them_up_again():
    graph = prplugin.Graph(pd.DataFrame({"src": range(100, 300), "dst": 100 + np.arange(200) // 2}))
    named = pd.Index(range(150, 250))
    for changed in (graph, copy.copy(graph), pickle.loads(pickle.dumps(graph))):
        changed.rank(among=named)
        changed.update(add=pd.DataFrame({"src": [7], "dst": [100]}))  # before the others
        ranking = changed.rank(among=named)
        assert ranking.frame.vertex.tolist() == named.tolist()
        ranks = changed.rank().frame.set_index("vertex").pagerank
        assert np.allclose(ranking.frame.pagerank, ranks[named], rtol=0, atol=2e-6)
        assert not np.allclose(ranking.frame.pagerank, ranks[named - 1], rtol=0, atol=2e-6)


def test_words_in_lists_are_no_vertices(resolved):
    graph = prplugin.Graph(EDGES)
    expected = graph.rank(personalization=NAMES[:2], exclude=[*NAMES[50:], "seeds"]).frame
    assert expected.vertex.tolist() == NAMES[2:50]
    assert graph.rank(personalization=NAMES[:2], exclude=NAMES[50:]).frame.vertex.tolist() == NAMES[:50]
    again = graph.rank(personalization=NAMES[:2], exclude=[*NAMES[50:], "seeds"]).frame
    pd.testing.assert_frame_equal(again, expected)
    assert resolved.count("exclude") == 1
