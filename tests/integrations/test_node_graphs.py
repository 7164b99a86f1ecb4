"""Graphs of NetworkX, igraph, rustworkx and NetworKit have the ranks that these libraries compute for them."""

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

    def test_any_attribute_has_the_ids(self, igraph):
        attributes = {"name": list("vwxyz"), "label": list("dacbe"), "number": [7, 5, 9, 1, 3]}
        graph = igraph.Graph(5, EDGES, directed=True, vertex_attrs=attributes)
        plain = expected_ranks(5, EDGES, 1.0, directed=True)
        for attribute in ("label", "number"):
            ids = attributes[attribute]
            ranks = ranks_of(prplugin.Graph.from_igraph(graph, ids=attribute))
            assert list(ranks) == (sorted(ids) if attribute == "number" else ids)
            assert_close(ranks, {vertex: plain[position] for position, vertex in enumerate(ids)})
        assert_close(ranks_of(prplugin.Graph.from_igraph(graph, ids=None)), plain)

    @pytest.mark.parametrize(
        ("label", "message"),
        [
            (["a", "b", "a", "b", "c"], "'label' of the vertices, which has 2 values more than once: 'a', 'b'"),
            (["a", None, "c", math.nan, "e"], "which has no value for 2 vertices: 1, 3 .counted from 0.. Each"),
            ([[1], [2], [3], [4], [5]], "which has values that cannot be ids"),
            ([([1],), ([2],), 3, 4, 5], "which has values that cannot be ids"),
        ],
    )
    def test_bad_ids_are_refused(self, igraph, label, message):
        graph = igraph.Graph(5, EDGES, directed=True, vertex_attrs={"label": label, "name": label})
        with pytest.raises(prplugin.InvalidOptionError, match=message):
            prplugin.Graph.from_igraph(graph, ids="label")
        assert list(ranks_of(prplugin.Graph.from_igraph(graph))) == [0, 1, 2, 3, 4]  # names need not be ids

    def test_missing_attribute_of_ids_is_refused(self, igraph):
        graph = igraph.Graph(3, [(0, 1)], vertex_attrs={"label": list("abc")})
        with pytest.raises(prplugin.ColumnNotFoundError, match=r"vertices .* no attribute 'lable'; they have: 'label'"):
            prplugin.Graph.from_igraph(graph, ids="lable")
        with pytest.raises(prplugin.InvalidOptionError, match="ids must be the name of an attribute of the vertices"):
            prplugin.Graph.from_igraph(graph, ids=["a", "b", "c"])

    def test_other_objects_are_refused(self):
        with pytest.raises(prplugin.InvalidEdgesError, match=r"takes a graph of igraph, not builtins\.list"):
            prplugin.Graph.from_igraph([])


class TestRustworkx:
    @pytest.fixture
    def rustworkx(self):
        return pytest.importorskip("rustworkx")

    def graph_of(self, rustworkx, *, directed):
        graph = (rustworkx.PyDiGraph if directed else rustworkx.PyGraph)()
        graph.add_nodes_from([{"name": name} for name in "dacbe"])
        graph.add_edges_from([(*edge, {"cost": weight}) for edge, weight in zip(EDGES, WEIGHTS, strict=True)])
        return graph

    @pytest.mark.parametrize("directed", [True, False])
    def test_ranks_are_those_of_the_edge_frame(self, rustworkx, directed):
        graph = self.graph_of(rustworkx, directed=directed)
        plain = expected_ranks(5, EDGES, 1.0, directed=directed)
        weighted = expected_ranks(5, EDGES, WEIGHTS, directed=directed)
        assert_close(ranks_of(prplugin.Graph.from_rustworkx(graph)), plain)
        assert_close(ranks_of(prplugin.Graph(graph)), plain)
        by_cost = prplugin.Graph.from_rustworkx(graph, lambda edge: edge["cost"], ids=lambda node: node["name"])
        ranks = ranks_of(by_cost)
        assert list(ranks) == list("dacbe")
        assert_close(ranks, dict(zip("dacbe", weighted.values(), strict=True)))
        by_cost.update(add=pd.DataFrame({"src": ["e"], "dst": ["d"], "weight": [1.0]}))
        assert by_cost.number_of_vertices == 5

    def test_ranks_are_those_of_rustworkx(self, rustworkx):
        graph = self.graph_of(rustworkx, directed=True)

        def weight_of(edge):
            return edge["cost"] + 1  # rustworkx divides by a sum of weights that is 0

        expected = rustworkx.pagerank(graph, weight_fn=weight_of, tol=1e-12, max_iter=1000)
        assert_close(ranks_of(prplugin.Graph(graph, weight=weight_of)), dict(expected))

    def test_indices_of_removed_nodes_stay_unused(self, rustworkx):
        graph = rustworkx.PyDiGraph()
        graph.add_nodes_from(list("xdacb"))
        graph.add_edges_from_no_data([(1, 2), (2, 4), (4, 1), (0, 3), (4, 2)])
        graph.remove_node(0)
        ranks = ranks_of(prplugin.Graph.from_rustworkx(graph))
        assert list(ranks) == [1, 2, 3, 4]
        assert_close(ranks, dict(rustworkx.pagerank(graph, tol=1e-12, max_iter=1000)))
        assert list(ranks_of(prplugin.Graph.from_rustworkx(graph, ids=str))) == list("dacb")

    def test_empty_graphs(self, rustworkx):
        assert len(prplugin.Graph.from_rustworkx(rustworkx.PyGraph()).rank().frame) == 0

    def test_bad_input_is_refused(self, rustworkx):
        graph = rustworkx.PyDiGraph()
        graph.add_nodes_from(["a", "a", "b", None])
        graph.add_edges_from([(0, 1, 2.0), (1, 2, -1.0)])
        with pytest.raises(prplugin.InvalidEdgesError, match=r"weight_fn has 1 value below 0: -1.0 in edge 1"):
            prplugin.Graph.from_rustworkx(graph, float)
        with pytest.raises(prplugin.InvalidOptionError, match="weight_fn must be a function of the data of an edge"):
            prplugin.Graph.from_rustworkx(graph, "cost")
        with pytest.raises(prplugin.InvalidOptionError, match="ids has no value for 1 vertex: 3"):
            prplugin.Graph.from_rustworkx(graph, ids=lambda node: node)
        with pytest.raises(prplugin.InvalidOptionError, match=r"ids has 1 value more than once: 'a'. Each node needs"):
            prplugin.Graph.from_rustworkx(graph, ids=str)


class TestNetworKit:
    @pytest.fixture
    def networkit(self):
        return pytest.importorskip("networkit")

    @pytest.mark.parametrize("directed", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_ranks_are_those_of_the_edge_frame(self, networkit, directed, weighted):
        graph = networkit.Graph(6, weighted=weighted, directed=directed)
        for edge, weight in zip(EDGES, WEIGHTS, strict=True):
            graph.addEdge(*edge, *([weight] if weighted else []))
        expected = expected_ranks(6, EDGES, WEIGHTS if weighted else 1.0, directed=directed)
        for found in (prplugin.Graph.from_networkit(graph), prplugin.Graph(graph)):
            assert_close(ranks_of(found), expected)
        with pytest.raises(prplugin.InvalidOptionError, match="weight= applies to frames only"):
            prplugin.Graph(graph, weight="w")

    def test_ranks_are_those_of_networkit(self, networkit):
        graph = networkit.Graph(6, weighted=True, directed=True)
        for edge in [(0, 1, 2.0), (1, 3, 1.0), (1, 4, 3.0), (3, 0, 1.0), (4, 1, 1.0), (4, 0, 0.5)]:
            graph.addEdge(*edge)
        graph.removeNode(2)
        graph.removeNode(5)
        theirs = networkit.centrality.PageRank(graph, damp=0.85, tol=1e-14)
        scores = theirs.run().scores()
        assert_close(
            ranks_of(prplugin.Graph.from_networkit(graph)), {vertex: scores[vertex] for vertex in (0, 1, 3, 4)}
        )

    def test_empty_graphs_and_other_objects(self, networkit):
        assert len(prplugin.Graph.from_networkit(networkit.Graph()).rank().frame) == 0
        assert ranks_of(prplugin.Graph.from_networkit(networkit.Graph(2))) == {0: 0.5, 1: 0.5}


@pytest.mark.parametrize("library", ["rustworkx", "networkit"])
def test_other_objects_are_refused_without_the_library(library):
    with pytest.raises(prplugin.InvalidEdgesError, match=rf"takes a graph of {library}, not builtins\.list"):
        getattr(prplugin.Graph, f"from_{library}")([])


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
