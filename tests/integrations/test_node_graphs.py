"""`Graph.from_networkx` and `Graph.from_igraph` have the ranks that these libraries compute for their graphs."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import examples
from subprocesses import run_python

import prplugin

EDGES = [(3, 1), (1, 2), (1, 2), (2, 2), (0, 3), (2, 0), (1, 0)]
WEIGHTS = [1.0, 2.0, 0.5, 3.0, 0.0, 1.0, 4.0]


def ranks_of(graph, **options):
    frame = graph.rank(tol=1e-12, **options).frame
    return dict(zip(frame["vertex"].tolist(), frame["pagerank"].tolist(), strict=True))


def assert_close(found, expected):
    assert set(found) == set(expected)
    assert math.fsum(abs(found[vertex] - expected[vertex]) for vertex in found) < 1e-10


class TestNetworkX:
    @pytest.fixture
    def networkx(self):
        pytest.importorskip("scipy")  # NetworkX's own PageRank needs it
        return pytest.importorskip("networkx")

    @pytest.fixture(params=["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
    def sample(self, request, networkx):
        """Return a graph with self-loops, parallel edges, an isolated node, and edges without weights."""
        graph = getattr(networkx, request.param)()
        graph.add_edges_from((*edge, {"weight": w}) for edge, w in zip(EDGES, WEIGHTS, strict=True))
        graph.add_edge(0, 2)
        graph.add_node(-5)
        return graph

    @pytest.mark.parametrize("weight", ["weight", None, "absent"])
    def test_ranks_are_those_of_networkx(self, networkx, sample, weight):
        expected = networkx.pagerank(sample, weight=weight, tol=1e-14, max_iter=1000, backend="networkx")
        assert_close(ranks_of(prplugin.Graph.from_networkx(sample, weight=weight)), expected)

    def test_graph_is_that_of_the_edge_frame(self, networkx, sample):
        graph = prplugin.Graph.from_networkx(sample)
        frame = networkx.to_pandas_edgelist(sample).fillna({"weight": 1.0})
        expected = prplugin.Graph(frame, weight="weight", directed=sample.is_directed(), vertices=list(sample))
        assert graph.number_of_vertices == expected.number_of_vertices
        assert graph.number_of_edges == expected.number_of_edges
        pd.testing.assert_frame_equal(graph.rank().frame, expected.rank().frame)

    def test_integer_nodes_ascend_and_others_keep_their_order(self, networkx, sample):
        vertices = prplugin.Graph.from_networkx(sample).rank().frame["vertex"]
        assert vertices.tolist() == [-5, 0, 1, 2, 3]
        assert vertices.dtype == "int64"
        strings = networkx.relabel_nodes(sample, "n{}".format)
        assert prplugin.Graph.from_networkx(strings).rank().frame["vertex"].tolist() == list(strings)

    @pytest.mark.parametrize("nodes", [["b", "a"], ["\ud800", "a"], [True, False]])
    def test_nodes_are_the_objects_of_the_graph(self, networkx, nodes):
        vertices = prplugin.Graph.from_networkx(networkx.DiGraph([nodes])).rank().frame["vertex"]
        assert vertices.dtype == object
        assert vertices.tolist() == nodes

    def test_tuples_and_large_integers_as_nodes(self, networkx):
        grid = networkx.grid_2d_graph(3, 3)
        assert_close(ranks_of(prplugin.Graph.from_networkx(grid)), networkx.pagerank(grid, tol=1e-14, max_iter=1000))
        large = networkx.DiGraph([(2**64 - 1, 5)])
        assert prplugin.Graph.from_networkx(large).rank().frame["vertex"].tolist() == [5, 2**64 - 1]

    def test_personalization_by_node(self, networkx, sample):
        strings = networkx.relabel_nodes(sample, "n{}".format)
        personalization = {"n2": 1.0, "n3": 2.0}
        expected = networkx.pagerank(
            strings, personalization=personalization, tol=1e-14, max_iter=1000, backend="networkx"
        )
        assert_close(ranks_of(prplugin.Graph.from_networkx(strings), personalization=personalization), expected)

    def test_empty_graph(self, networkx):
        assert len(prplugin.Graph.from_networkx(networkx.MultiGraph()).rank().frame) == 0

    def test_graph_is_not_changed_and_changing_it_does_not_change_the_ranks(self, networkx, sample):
        before = sample.copy()
        graph = prplugin.Graph.from_networkx(sample)
        ranks = ranks_of(graph)
        assert networkx.utils.graphs_equal(sample, before)
        sample.clear()
        assert ranks_of(graph) == ranks

    def test_views(self, networkx, sample):
        for view in (
            sample.subgraph([0, 1, 2]),
            networkx.subgraph_view(sample, filter_edge=lambda *edge: edge[:2] != (1, 2)),
            sample.to_undirected(as_view=True),
        ):
            expected = networkx.pagerank(view, tol=1e-14, max_iter=1000, backend="networkx")
            assert_close(ranks_of(prplugin.Graph.from_networkx(view)), expected)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (-1, r"attribute 'weight' of the edges has 1 value below 0: -1 in edge 2 \(counted from 0\)"),
            (None, "1 value missing or NaN: None in edge 2"),
            (math.nan, "1 value missing or NaN: nan in edge 2"),
            (math.inf, "1 value infinite"),
            ("1.5", "1 value that is not a number: '1.5' in edge 2"),
        ],
    )
    @pytest.mark.parametrize("kind", ["Graph", "MultiDiGraph"])
    def test_bad_weights_are_refused(self, networkx, kind, weight, message):
        graph = getattr(networkx, kind)([(0, 1, {"weight": 2}), (1, 2, {"weight": weight}), (0, 3)])
        with pytest.raises(prplugin.InvalidEdgesError, match=message):
            prplugin.Graph.from_networkx(graph)

    @pytest.mark.parametrize("nodes", [(1, "a"), (1.5, 2.5), (2**70, 1), (True, 2)])
    def test_nodes_without_a_common_id_type_are_refused(self, networkx, nodes):
        with pytest.raises(prplugin.InvalidEdgesError, match="the nodes of the graph cannot be the ids of one column"):
            prplugin.Graph.from_networkx(networkx.Graph([nodes]))

    @pytest.mark.parametrize("weight", [len, [1]])
    def test_weight_that_is_not_a_name_is_refused(self, networkx, sample, weight):
        with pytest.raises(prplugin.InvalidOptionError, match="weight must be the name of an attribute"):
            prplugin.Graph.from_networkx(sample, weight=weight)

    def test_other_objects_are_refused(self):
        with pytest.raises(prplugin.InvalidEdgesError, match=r"takes a graph of networkx, not builtins\.dict"):
            prplugin.Graph.from_networkx({})


def expected_ranks(n, edges, weights, *, directed):
    """Return the ranks of the graph that `prplugin.Graph` reads from an edge frame."""
    frame = pd.DataFrame(edges, columns=["src", "dst"], dtype="int64").assign(weight=weights)
    graph = prplugin.Graph(frame, weight="weight", directed=directed, vertices=pd.Series(range(n), dtype="int64"))
    return ranks_of(graph)


class TestIgraph:
    @pytest.fixture
    def igraph(self):
        return pytest.importorskip("igraph")

    @pytest.mark.parametrize("directed", [True, False])
    @pytest.mark.parametrize("weights", ["weight", None])
    def test_ranks_are_those_of_the_edge_frame(self, igraph, directed, weights):
        graph = igraph.Graph(6, EDGES, directed=directed, edge_attrs={"weight": WEIGHTS})
        found = prplugin.Graph.from_igraph(graph, weights=weights)
        expected = expected_ranks(6, EDGES, 1.0 if weights is None else WEIGHTS, directed=directed)
        assert_close(ranks_of(found), expected)
        assert found.number_of_vertices == 6

    def test_ranks_are_those_of_igraph(self, igraph):
        zachary = igraph.Graph.Famous("Zachary")
        ranks = ranks_of(prplugin.Graph.from_igraph(zachary))
        assert_close(ranks, dict(enumerate(zachary.pagerank())))
        directed = igraph.Graph(6, EDGES, directed=True, edge_attrs={"cost": WEIGHTS})
        ranks = ranks_of(prplugin.Graph.from_igraph(directed, weights="cost"))
        assert_close(ranks, dict(enumerate(directed.pagerank(weights="cost"))))

    def test_graph_without_weight_attribute_is_unweighted_by_default(self, igraph):
        graph = igraph.Graph(4, EDGES, directed=True)
        assert_close(ranks_of(prplugin.Graph.from_igraph(graph)), expected_ranks(4, EDGES, 1.0, directed=True))

    @pytest.mark.parametrize(
        ("names", "vertices"),
        [
            (["d", "a", "c", "b", "e"], ["d", "a", "c", "b", "e"]),
            ([7, 5, 9, 1, 3], [1, 3, 5, 7, 9]),
            (["a", "a", "c", "b", "e"], [0, 1, 2, 3, 4]),
            ([None, "a", "c", "b", "e"], [0, 1, 2, 3, 4]),
            ([[1], [2], [3], [4], [5]], [0, 1, 2, 3, 4]),
        ],
    )
    def test_names_are_the_ids_if_they_are_distinct(self, igraph, names, vertices):
        graph = igraph.Graph(5, EDGES, directed=True, vertex_attrs={"name": names})
        ranks = ranks_of(prplugin.Graph.from_igraph(graph))
        assert list(ranks) == vertices
        plain = expected_ranks(5, EDGES, 1.0, directed=True)
        ids = names if vertices != [0, 1, 2, 3, 4] else range(5)
        assert_close(ranks, {vertex: plain[position] for position, vertex in enumerate(ids)})

    def test_empty_graphs(self, igraph):
        assert len(prplugin.Graph.from_igraph(igraph.Graph()).rank().frame) == 0
        assert ranks_of(prplugin.Graph.from_igraph(igraph.Graph(2))) == {0: 0.5, 1: 0.5}

    @pytest.mark.parametrize("weight", [-1.0, None, math.nan, "1"])
    def test_bad_weights_are_refused(self, igraph, weight):
        graph = igraph.Graph(3, [(0, 1), (1, 2)], edge_attrs={"weight": [1.0, weight]})
        with pytest.raises(
            prplugin.InvalidEdgesError, match=r"attribute 'weight' of the edges has 1 value .* in edge 1"
        ):
            prplugin.Graph.from_igraph(graph)

    def test_missing_attribute_is_refused(self, igraph):
        graph = igraph.Graph(3, [(0, 1)], edge_attrs={"cost": [1.0]})
        with pytest.raises(prplugin.ColumnNotFoundError, match="no attribute 'price'; they have: 'cost'"):
            prplugin.Graph.from_igraph(graph, weights="price")
        with pytest.raises(prplugin.InvalidOptionError, match="weights must be the name of an attribute"):
            prplugin.Graph.from_igraph(graph, weights=[1.0])

    def test_other_objects_are_refused(self):
        with pytest.raises(prplugin.InvalidEdgesError, match=r"takes a graph of igraph, not builtins\.list"):
            prplugin.Graph.from_igraph([])


@settings(deadline=None, max_examples=examples(100))
@given(
    st.integers(1, 7).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.sampled_from([0.0, 0.5, 1.0, 2.0])))
        )
    ),
    st.booleans(),
)  # fmt: skip
def test_drawn_multigraphs_are_those_of_their_edge_frames(drawn, directed):
    n, rows = drawn
    expected = expected_ranks(n, [row[:2] for row in rows], [row[2] for row in rows], directed=directed)
    networkx = pytest.importorskip("networkx")
    graph = (networkx.MultiDiGraph if directed else networkx.MultiGraph)()
    graph.add_nodes_from(reversed(range(n)))
    graph.add_weighted_edges_from(rows)
    assert_close(ranks_of(prplugin.Graph.from_networkx(graph)), expected)
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph(n, [row[:2] for row in rows], directed=directed)
    graph.es["weight"] = [row[2] for row in rows]
    assert_close(ranks_of(prplugin.Graph.from_igraph(graph)), expected)


def test_igraph_graphs_do_not_import_networkx():
    pytest.importorskip("igraph")
    code = (
        "import igraph, prplugin, sys\n"
        "prplugin.Graph.from_igraph(igraph.Graph.Ring(5)).rank()\n"
        "print([name for name in ('networkx', 'scipy') if name in sys.modules])"
    )
    assert run_python("-c", code) == "[]"
