"""The NetworkX backend: NetworkX's test suite, and the same ranks and exceptions as NetworkX for all types of graphs."""

from __future__ import annotations

import math
import os
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from method_params import METHODS, examples
from subprocesses import run_python

import prplugin

networkx = pytest.importorskip("networkx")
pytest.importorskip("scipy")  # NetworkX's own PageRank needs it

KINDS = [networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph]


@pytest.fixture(autouse=True)
def default_configuration():
    if "prplugin" not in networkx.config.backends:
        try:
            version("prplugin")
        except PackageNotFoundError:
            pytest.skip("prplugin is not installed, and NetworkX finds backends by their entry points")
        pytest.fail("NetworkX does not find the backend: reinstall prplugin, which writes its entry points")
    with networkx.config(warnings_to_ignore={"cache"}):
        yield


def sample(kind, *, seed=0, weights=True, n=60, m=200):
    """Return a graph with self-loops, parallel edges, isolated and dangling nodes, and ids of two types."""
    random = np.random.default_rng(seed)
    nodes = [*range(n // 2), *(f"n{i}" for i in range(n // 2, n))]
    graph = kind()
    graph.add_nodes_from(nodes[::-1])
    for u, v, weight in zip(*random.integers(0, n - 5, (2, m)).tolist(), random.random(m).tolist(), strict=True):
        if weights and weight > 0.2:  # the other edges have no attribute and count 1
            graph.add_edge(nodes[u], nodes[v], weight=weight, other=weight * 3)
        else:
            graph.add_edge(nodes[u], nodes[v])
    return graph


def outcome(graph, backend, **options):
    """Return the ranks, or the exception that is raised."""
    try:
        return networkx.pagerank(graph, backend=backend, **options)
    except Exception as error:
        return error


def assert_same_as_networkx(graph, **options):
    expected = outcome(graph, "networkx", **options)
    for _ in range(2):  # the second call uses the graph in NetworkX's cache
        found = outcome(graph, "prplugin", **options)
        if isinstance(expected, Exception):
            assert type(found) is type(expected), (found, expected)
            assert str(found) == str(expected)
            continue
        assert list(found) == list(expected)
        assert {type(rank) for rank in found.values()} <= {float}
        assert math.fsum(abs(found[node] - expected[node]) for node in found) < 1e-12


OPTIONS = {
    "defaults": {},
    "alpha": {"alpha": 0.5},
    "alpha 0": {"alpha": 0},
    "small tolerance": {"tol": 1e-14, "max_iter": 1000},
    "infinite tolerance": {"tol": math.inf},
    "too few iterations": {"max_iter": 2, "tol": 1e-10},
    "no iterations": {"max_iter": 0},
    "negative max_iter": {"max_iter": -3},
    "max_iter that is no integer": {"max_iter": 3.0},
    "tolerance 0": {"tol": 0},
    "negative tolerance": {"tol": -1.0},
    "tolerance NaN": {"tol": math.nan},
    "no weights": {"weight": None},
    "other attribute": {"weight": "other"},
    "missing attribute": {"weight": "absent"},
    "personalization": {"personalization": {1: 2, "n40": 3, 7: 0}},
    "personalization with unknown nodes": {"personalization": {1: 2, "nobody": 3}},
    "personalization of unknown nodes": {"personalization": {"nobody": 3}},
    "empty personalization": {"personalization": {}},
    "personalization of 0": {"personalization": {1: 0.0}},
    "personalization that is not a number": {"personalization": {1: "x"}},
    "nstart": {"nstart": {1: 0.5, "n33": 0.25, "nobody": 1}, "max_iter": 3, "tol": 0.01},
    "nstart of 0": {"nstart": {1: 0}},
    "dangling": {"dangling": {5: 1, 6: 3, "nobody": 2}},
    "dangling of 0": {"dangling": {"nobody": 1}},
    "all options": {
        "alpha": 0.9, "personalization": {1: 2, 2: 1}, "nstart": {4: 1}, "dangling": {"n50": 1}, "weight": None, "tol": 1e-9,
    },
    "dangling of 0 and personalization of 0": {"dangling": {}, "personalization": {1: 0}},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NetworkX divides by zero
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_ranks_and_exceptions_are_those_of_networkx(kind, name):
    assert_same_as_networkx(sample(kind), **OPTIONS[name])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(5))
def test_random_graphs(kind, seed):
    assert_same_as_networkx(sample(kind, seed=seed, n=10 << seed, m=8 << 2 * seed), tol=1e-12, max_iter=200)
    assert_same_as_networkx(sample(kind, seed=seed, weights=False))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_small_graphs(kind):
    assert networkx.pagerank(kind(), backend="prplugin") == {}
    for edges in ([], [(1, 1)], [(0, 1)], [(1, 0), (0, 1)], [(True, 2), (2, 1.0)], [((1, 2), frozenset([3]))]):
        graph = kind(edges)
        graph.add_node(None) if isinstance(graph, dict) else graph.add_node("isolated")
        assert_same_as_networkx(graph)
    assert_same_as_networkx(kind(networkx.path_graph(5)))


@pytest.mark.parametrize("weight", [True, 0, 0.0, 5, np.float32(3), np.int64(2)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_weights_of_many_types(kind, weight):
    graph = kind([(1, 2, {"weight": weight}), (2, 3, {"weight": 1.5}), (2, 1), (3, 3, {"weight": weight})])
    assert_same_as_networkx(graph)


@pytest.mark.parametrize("weight", ["x", [1]])
def test_weights_that_are_not_numbers_are_refused(weight):
    graph = networkx.DiGraph([(1, 2, {"weight": weight}), (2, 1)])
    for _ in range(2):
        found, expected = (outcome(graph, backend) for backend in ("prplugin", "networkx"))
        assert isinstance(found, type(expected))
        assert isinstance(found, (TypeError, ValueError))
    assert len(networkx.pagerank(graph, weight=None, backend="prplugin")) == 2


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf])
def test_weights_that_prplugin_refuses_fall_back_to_networkx(weight):
    graph = networkx.DiGraph([(1, 2, {"weight": weight}), (2, 1), (2, 3)])
    with pytest.raises(NotImplementedError) as raised:
        networkx.pagerank(graph, backend="prplugin")
    assert "attribute 'weight' of the edges" in str(raised.value.__cause__)
    with networkx.config.backend_priority(algos=["prplugin"]), np.errstate(all="ignore"):
        found, expected = outcome(graph, None), outcome(graph, "networkx")
        assert found == expected if isinstance(expected, dict) else type(found) is type(expected)


REFUSED = [
    {"alpha": 1.0}, {"alpha": 1.5, "max_iter": 1}, {"weight": len}, {"personalization": {1: -1, 2: 3}},
    {"nstart": {1: math.inf}}, {"dangling": {1: math.nan}}, {"alpha": "x"},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_arguments_that_prplugin_refuses_fall_back_to_networkx(options):
    graph = sample(networkx.DiGraph)
    with pytest.raises(NotImplementedError) as raised:
        networkx.pagerank(graph, backend="prplugin", **options)
    assert next(iter(options)) in str(raised.value.__cause__)
    with networkx.config.backend_priority(algos=["prplugin"]):
        found, expected = outcome(graph, None, **options), outcome(graph, "networkx", **options)
    assert found == expected if isinstance(expected, dict) else type(found) is type(expected)


def test_views_and_subgraphs():
    graph = sample(networkx.DiGraph)
    for view in (
        graph.reverse(copy=False),
        graph.subgraph(list(graph)[5:40]),
        graph.to_undirected(as_view=True),
        networkx.subgraph_view(graph, filter_edge=lambda u, v: u != v),
        networkx.freeze(graph.copy()),
        sample(networkx.MultiDiGraph).to_undirected(as_view=True),
        sample(networkx.MultiGraph).to_directed(as_view=True),
    ):
        assert_same_as_networkx(view)


def subsets(items):
    """Return a strategy that draws distinct items."""
    items = list(items)
    return st.lists(st.sampled_from(items), unique=True) if items else st.just([])


@st.composite
def views(draw):
    """Draw a graph of any of the four classes, with integer or string nodes, and up to three views over it."""
    graph = draw(st.sampled_from(KINDS))()
    graph.add_nodes_from(
        draw(st.lists(st.integers(0, 6) if draw(st.booleans()) else st.sampled_from("abcdef"), unique=True))
    )
    if len(graph):
        node, weight = st.sampled_from(list(graph)), st.sampled_from([0, 0.5, 1, 2])
        attributes = st.fixed_dictionaries({}, optional={"weight": weight})
        graph.add_edges_from(draw(st.lists(st.tuples(node, node, attributes), max_size=12)))
    for _ in range(draw(st.integers(0, 3))):
        nodes, edges = draw(subsets(graph)), draw(subsets(edges_of(graph)))
        graph = draw(
            st.sampled_from(
                [
                    graph.subgraph(nodes),
                    graph.edge_subgraph(edges),
                    networkx.restricted_view(graph, nodes[:1], edges[:2]),
                    networkx.subgraph_view(graph, filter_node=nodes.__contains__),
                    networkx.subgraph_view(graph, filter_edge=lambda *edge, edges=edges: edge in edges),
                    graph.reverse(copy=False) if graph.is_directed() else graph,
                    graph.to_undirected(as_view=True),
                    graph.to_directed(as_view=True),
                    networkx.freeze(graph),
                ]
            )
        )
    return graph


def edges_of(graph):
    return graph.edges(keys=True) if graph.is_multigraph() else graph.edges()


@settings(deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(views(), st.sampled_from(["weight", None]))
def test_drawn_views(graph, weight):
    assert_same_as_networkx(graph, weight=weight)


def test_views_that_count_filtered_parallel_edges():
    graph = networkx.MultiDiGraph([(0, 1), (0, 1), (0, 2), (1, 0)])
    for kept in ([(0, 2, 0)], [(0, 1, 1)], [(0, 1, 0), (1, 0, 0)], []):
        assert_same_as_networkx(networkx.subgraph_view(graph, filter_edge=lambda *edge, kept=kept: edge in kept))


def test_change_equal_to_n_tol_does_not_stop():
    graph = networkx.DiGraph([(0, 0), (0, 1), (1, 0)])
    assert_same_as_networkx(graph, alpha=0.5, tol=0.125)
    assert_same_as_networkx(graph, alpha=0.5, tol=0.125, max_iter=1)


@pytest.mark.parametrize("method", METHODS)
def test_methods_by_name(method):
    graph = sample(networkx.DiGraph)
    found = networkx.pagerank(graph, backend="prplugin", method=method, tol=1e-10)
    expected = networkx.pagerank(graph, backend="networkx", tol=1e-10)
    assert math.fsum(abs(found[node] - expected[node]) for node in graph) < 2 * len(graph) * 1e-10


def test_options_of_a_method():
    graph = sample(networkx.DiGraph)
    one, other = (networkx.pagerank(graph, backend="prplugin", method="native", threads=k) for k in (1, 2))
    assert one == other


@pytest.mark.parametrize(
    "options", [{"stop": "l1"}, {"top": 2}, {"seeds": [0, 1]}, {"dtype": "float32"}, {"scale": "n"}]
)
def test_arguments_that_networkx_lacks_raise(options):
    (name,) = options
    with pytest.raises(prplugin.InvalidOptionError, match=rf"no argument '{name}'.*from_networkx\(G\)\.rank"):
        networkx.pagerank(networkx.karate_club_graph(), backend="prplugin", **options)


class TestCache:
    def test_graph_is_converted_once_per_attribute_and_after_each_change(self, monkeypatch):
        from prplugin.integrations import networkx as backend

        converted = []
        convert = backend.convert_from_nx

        def record(graph, **options):
            converted.append(options["edge_attrs"])
            return convert(graph, **options)

        monkeypatch.setattr(backend, "convert_from_nx", record)
        graph = sample(networkx.MultiGraph)
        before = networkx.pagerank(graph, backend="prplugin")
        assert networkx.pagerank(graph, backend="prplugin", alpha=0.5) != before
        assert networkx.pagerank(graph, backend="prplugin") == before
        assert converted == [{"weight": 1}]
        assert_same_as_networkx(graph, weight=None)  # needs no attribute that is not cached
        assert converted == [{"weight": 1}]
        assert_same_as_networkx(graph, weight="other")
        assert converted == [{"weight": 1}, {"other": 1}]
        graph.add_edge(1, 2, weight=100.0)
        assert_same_as_networkx(graph)
        assert converted == [{"weight": 1}, {"other": 1}, {"weight": 1}]
        with networkx.config(cache_converted_graphs=False):
            networkx.pagerank(graph, backend="prplugin")
            networkx.pagerank(graph, backend="prplugin")
        assert len(converted) == 5

    @pytest.mark.parametrize(
        "view",
        [
            lambda graph: graph.subgraph(list(graph)[:40]),
            lambda graph: graph.reverse(copy=False),
            lambda graph: graph.to_undirected(as_view=True),
        ],
    )
    def test_views_reflect_changes_of_their_graph(self, view):
        graph = sample(networkx.DiGraph)
        viewed = view(graph)
        before = networkx.pagerank(viewed, backend="prplugin")
        graph.add_edge(*list(viewed)[:2], weight=100.0)
        assert_same_as_networkx(viewed)
        assert networkx.pagerank(viewed, backend="prplugin") != before

    def test_the_graph_is_not_changed(self):
        graph = sample(networkx.MultiDiGraph)
        before = graph.copy()
        networkx.pagerank(graph, backend="prplugin")
        assert networkx.utils.graphs_equal(graph, before)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_converted_graphs_have_the_same_ranks_and_convert_back(kind):
    from prplugin.integrations.networkx import convert_from_nx, convert_to_nx, pagerank

    graph = sample(kind)
    converted = convert_from_nx(graph, edge_attrs={"weight": 1})
    assert networkx.pagerank(converted) == networkx.pagerank(graph, backend="prplugin") == pagerank(graph)
    back = convert_to_nx(converted)
    assert type(back) is kind
    assert list(back) == list(graph)
    assert back.number_of_edges() == graph.number_of_edges()
    assert math.isclose(back.size("weight"), graph.size("weight"))
    assert_same_as_networkx(back)
    assert convert_to_nx({1: 0.5}) == {1: 0.5}
    with pytest.raises(NotImplementedError, match="no other attributes"):
        convert_from_nx(graph, preserve_edge_attrs=True)


def test_large_graphs_use_the_gpu_if_cupy_is_loaded(monkeypatch):
    from prplugin.integrations import networkx as backend

    monkeypatch.setattr("prplugin.gpu.runtime.unavailable_reason", lambda: None)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert not backend._use_gpu(10**7)
    monkeypatch.setitem(sys.modules, "cupy", object())
    assert backend._use_gpu(10**7)
    assert not backend._use_gpu(1000)
    monkeypatch.setattr("prplugin.gpu.runtime.unavailable_reason", lambda: "none")
    assert not backend._use_gpu(10**7)


@pytest.mark.gpu
@pytest.mark.parametrize("weight", ["weight", None])
def test_graphs_on_the_gpu(monkeypatch, weight):
    cuda = pytest.importorskip("prplugin.gpu.runtime")
    if reason := cuda.unavailable_reason():
        pytest.skip(reason)
    import cupy  # noqa: F401

    monkeypatch.setattr("prplugin.integrations.networkx.ON_GPU_FROM", 1)
    for kind in KINDS:
        graph = sample(kind)
        assert_same_as_networkx(graph, weight=weight, personalization={1: 2, 2: 1}, nstart={3: 1}, dangling={4: 1})


@pytest.mark.parametrize(
    "to_id",
    [
        lambda node: node,
        lambda node: 3 * node - 50,
        lambda node: node - 2**63,
        lambda node: 2**63 - 1 - node,
        lambda node: 10**12 * node,
        lambda node: 2**70 + node,
        lambda node: 2**62 * (node % 2 * 2 - 1) + node,
        lambda node: node if node > 1 else bool(node),
        lambda node: node if node % 7 else float(node),
    ],
)
@pytest.mark.parametrize("kind", [networkx.DiGraph, networkx.MultiGraph])
def test_integer_nodes(kind, to_id):
    graph = sample(kind)
    ids = {node: to_id(position) for position, node in enumerate(reversed(list(graph)))}
    assert_same_as_networkx(networkx.relabel_nodes(graph, ids))


NETWORKX_TESTS = """
import logging, sys, pytest
count = 0
class Count(logging.Handler):
    def emit(self, record):
        global count
        count += record.getMessage().startswith("Using backend 'prplugin' for call to 'pagerank'")
logger = logging.getLogger("networkx.utils.backends")
logger.setLevel(logging.DEBUG)
logger.addHandler(Count())
status = pytest.main(["-q", "-p", "no:cacheprovider", "--pyargs", "networkx.algorithms.link_analysis.tests.test_pagerank"])
print("status", int(status), "calls", count)
"""


def run(code, tmp_path, **environment):
    return run_python("-c", code, cwd=tmp_path, env={**os.environ, **environment})


def test_networkx_test_suite_passes_with_the_backend(tmp_path):
    """NetworkX dispatches all calls to the backend; functions that it does not have, on matrices, fall back."""
    output = run(NETWORKX_TESTS, tmp_path, NETWORKX_TEST_BACKEND="prplugin", NETWORKX_FALLBACK_TO_NX="1")
    status, calls = output.splitlines()[-1].split()[1::2]
    assert status == "0", output
    assert "xfailed" not in output
    assert int(calls) >= 20  # one or two calls per test of nx.pagerank


def test_scipy_is_not_needed(tmp_path):
    code = """
import sys
sys.modules["scipy"] = None  # makes any import of SciPy fail
import networkx as nx
for kind in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
    for graph in (kind([(0, 1), ("a", 0)]), kind(nx.gnm_random_graph(1000, 8000, seed=1)).subgraph(range(900))):
        for weight in ("weight", None):
            print(sum(nx.pagerank(graph, weight=weight, backend="prplugin").values()))
"""
    sums = [float(line) for line in run(code, tmp_path).split()]
    assert len(sums) == 16
    assert sums == pytest.approx([1] * 16)


def test_automatic_dispatch(tmp_path):
    code = """
import sys, networkx as nx
assert "prplugin" not in sys.modules and "numpy" not in sys.modules  # importing NetworkX does not import the backend
import logging
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)
graph = nx.path_graph(300)
nx.set_edge_attributes(graph, 2.5, "weight")
nx.pagerank(graph)
nx.pagerank(graph, personalization={7: 1})
assert "prplugin" in sys.modules and "pandas" not in sys.modules and "scipy" not in sys.modules
assert nx.config.backend_priority.algos == ["prplugin"]
assert "prplugin" in nx.pagerank.__doc__
"""
    assert "Using backend 'prplugin' for call to 'pagerank'" in run(
        code, tmp_path, NETWORKX_BACKEND_PRIORITY="prplugin"
    )
