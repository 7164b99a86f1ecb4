"""Arguments by vertex: personalization, dangling, nstart, seeds, among and exclude."""

from __future__ import annotations

from itertools import product
from queue import Queue

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin import InvalidOptionError, options
from prplugin.frames import exclusion, repeated

EDGES = pd.DataFrame({"src": ["ann", "bob", "cat", "ann", "dan"], "dst": ["bob", "cat", "bob", "cat", "ann"]})
PAIRS = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "x"], "c": [1, 2, 1], "d": ["y", "x", "x"]})


@pytest.fixture
def graph():
    return prplugin.Graph(EDGES)


def test_vertices_have_the_order_of_the_ranks(graph):
    assert graph.vertices.tolist() == ["ann", "bob", "cat", "dan"]
    assert graph.vertices.name == "vertex"
    frame = graph.rank().frame
    assert frame["vertex"].tolist() == graph.vertices.tolist()
    assert frame["pagerank"].tolist() == graph.rank().ranks.tolist()


def test_vertices_of_several_columns_are_a_frame():
    graph = prplugin.Graph(PAIRS, ["a", "b"], ["c", "d"])
    pd.testing.assert_frame_equal(graph.vertices, graph.rank().frame[["a", "b"]])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_vertices_are_a_column_of_the_frame_library(library):
    module = pytest.importorskip(library)
    edges = module.from_pandas(EDGES) if library == "polars" else module.Table.from_pandas(EDGES)
    found = prplugin.Graph(edges).vertices
    assert type(found).__module__.split(".")[0] == library
    ids = found.to_pylist() if library == "pyarrow" else found.to_list()
    assert ids == ["ann", "bob", "cat", "dan"]


def test_changing_vertices_does_not_change_the_graph(graph):
    vertices = graph.vertices
    vertices.iloc[0] = "eve"
    assert graph.vertices.iloc[0] == "ann"


@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart"])
@pytest.mark.parametrize(
    "given",
    [
        ["dan", "bob"],
        ("dan", "bob"),
        {"dan", "bob"},
        frozenset({"dan", "bob"}),
        pd.Index(["dan", "bob"]),
        pd.array(["dan", "bob"]),
        np.array([0, 2.5, 0, 2.5]),
        np.array([False, True, False, True]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_list_of_vertices_or_array_is_one_distribution(graph, argument, given):
    by_dict = graph.rank(**{argument: {"bob": 1, "dan": 1}}, tol=0, max_iter=3)
    assert graph.rank(**{argument: given}, tol=0, max_iter=3).ranks.tolist() == by_dict.ranks.tolist()


@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart"])
def test_list_has_the_bits_of_equal_values(graph, argument):
    ids = graph.vertices.tolist()
    for some in (ids[:1], ids[1:4], ids):
        listed, valued = (graph.rank(**{argument: given}) for given in (some, dict.fromkeys(some, 1.0)))
        np.testing.assert_array_equal(listed.ranks, valued.ranks)
    absent = ["nobody", "none"]
    mixed = graph.rank(**{argument: [*absent, *ids[:2]]}, unknown="ignore")
    np.testing.assert_array_equal(mixed.ranks, graph.rank(**{argument: ids[:2]}).ranks)
    assert mixed.unknown == {argument: 2}
    with pytest.raises(InvalidOptionError, match="has none of them"):
        graph.rank(**{argument: absent}, unknown="ignore")


def test_personalization_by_tuples_of_several_columns():
    graph = prplugin.Graph(PAIRS, ["a", "b"], ["c", "d"])
    ranks = graph.rank(alpha=0, personalization=[(1, "x"), (2, "x")]).ranks
    assert ranks.tolist() == [0.5, 0, 0.5] or sorted(ranks.tolist()) == [0, 0.5, 0.5]


STRINGS = pd.Series(["a"]).dtype != object  # since pandas 3; before, columns of strings hold objects

BAD_DISTRIBUTIONS = {
    "array too short": (np.ones(3), "is an array of shape (3,), but the graph has 4 vertices"),
    "matrix": (np.ones((2, 4)), "is an array of shape (2, 4), but the graph has 4 vertices"),
    "array of ids": (np.array(["ann", "bob", "cat", "dan"]), "not real numbers" if STRINGS else "are not numbers"),
    "negative value": (np.array([1, -1, 0, 0]), "1 value below 0"),
    "NaN": (np.array([1, np.nan, 0, 0]), "missing or NaN"),
    "sum of zero": (np.zeros(4), "sums to 0"),
    "unknown vertex": (["ann", "eve"], "names 1 vertex not in the graph: 'eve'"),
    "repeated vertex": (["ann", "ann"], "names 1 vertex more than once: 'ann'"),
    "empty": ([], "is empty"),
    "list of dicts": ([{"ann": 1}, {"bob": 1}], "For many rankings pass it as seeds=."),
    "frame with a column seed": (
        pd.DataFrame({"seed": [0, 1], "vertex": ["ann", "bob"], "values": [1, 1]}),
        "For many rankings pass it as seeds=.",
    ),
    "number": (3, "must be a dict of vertex: value"),
}


@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart"])
@pytest.mark.parametrize("name", BAD_DISTRIBUTIONS)
def test_bad_distributions_are_refused(graph, argument, name):
    given, message = BAD_DISTRIBUTIONS[name]
    with pytest.raises(InvalidOptionError) as caught:
        graph.rank(**{argument: given})
    assert message in str(caught.value)
    assert argument in str(caught.value)


@pytest.mark.parametrize("argument", ["personalization", "among", "exclude", "seeds"])
def test_ids_without_a_hash_are_refused(argument):
    """Regression test: a TypeError of pandas was raised."""
    graph = prplugin.Graph(pd.DataFrame({"src": [("a", 1), ("b", 2)], "dst": [("b", 2), ("a", 1)]}))
    with pytest.raises(InvalidOptionError, match=f"{argument} holds ids that have no hash"):
        graph.rank(**{argument: [("a", [1])]})


@pytest.mark.parametrize("argument", ["among", "exclude"])
@pytest.mark.parametrize("ends", [("src", "dst"), (["src", "a"], ["dst", "b"])], ids=["one column", "two columns"])
def test_arrays_without_a_dimension_are_refused(argument, ends):
    """Regression test: a TypeError was raised."""
    frame = pd.DataFrame({"src": [1, 2], "dst": [2, 1], "a": ["x", "y"], "b": ["y", "x"]})
    with pytest.raises(InvalidOptionError, match=f"{argument} must be a list, an array, a Series or a frame of ids"):
        prplugin.Graph(frame, *ends).rank(**{argument: np.array(1)})


def test_seeds_as_a_matrix(graph):
    matrix = np.array([[1, 0, 0, 0], [0, 3, 0, 1.0]])
    many = graph.rank(seeds=matrix)
    listed = graph.rank(seeds=[{"ann": 1}, {"bob": 3, "dan": 1}])
    assert many.ranks.tolist() == listed.ranks.tolist()
    assert many.frame["seed"].tolist() == [0] * 4 + [1] * 4
    for given in (np.ones((2, 3)), np.ones((0, 4)), np.ones((1, 1, 4))):
        with pytest.raises(InvalidOptionError, match=r"4 vertices, in the order of graph\.vertices"):
            graph.rank(seeds=given)


@pytest.mark.parametrize("given", [pd.Index(["dan", "bob"]), np.array(["dan", "bob"]), pd.array(["dan", "bob"])])
def test_seeds_as_an_index_or_an_array_of_vertices(graph, given):
    assert graph.rank(seeds=given).frame.equals(graph.rank(seeds=["dan", "bob"]).frame)


@pytest.mark.parametrize(
    ("of_edges", "library"),
    [
        *product(["pandas", "polars"], ["pandas", "pandas with another index"]),
        *product(["polars"], ["polars", "pyarrow", "several chunks"]),
    ],
)
def test_seeds_as_a_column_of_vertices(of_edges, library):
    edges = EDGES if of_edges == "pandas" else pytest.importorskip("polars").from_pandas(EDGES)
    given = column_of(["dan", "bob"], library)
    many = prplugin.Graph(edges).rank(seeds=given)
    assert many.ranks.tolist() == prplugin.Graph(edges).rank(seeds=["dan", "bob"]).ranks.tolist()
    assert list(many.frame["seed"]) == ["dan"] * 4 + ["bob"] * 4


def column_of(values, library):
    """Return a column of a library."""
    if library == "polars":
        return pytest.importorskip("polars").Series(values)
    if library in ("pyarrow", "several chunks"):
        pa = pytest.importorskip("pyarrow")
        return pa.array(values) if library == "pyarrow" else pa.chunked_array([values[:1], values[1:]])
    return pd.Series(values, index=[5, 3] if library == "pandas with another index" else None)


READINGS = {
    "pandas": ("personalization.tolist()", "personalization.rename_axis('vertex')"),
    "polars": ("personalization.to_list()", "personalization.to_numpy()"),
    "pyarrow": ("personalization.to_pylist()", "numpy.asarray(personalization)"),
}


@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart"])
@pytest.mark.parametrize(
    ("of_edges", "library"),
    [(edges, library) for edges in ("pandas", "polars") for library in READINGS],
)
def test_column_without_an_index_of_vertices_is_refused(argument, of_edges, library):
    frame = pd.DataFrame({"src": [0, 1, 2, 2], "dst": [1, 2, 0, 1]})
    edges = frame if of_edges == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    with pytest.raises(InvalidOptionError) as caught:
        edges.pagerank(**{argument: column_of([2, 1, 0], library)})
    message = str(caught.value)
    assert message.startswith(f"{argument} is a column without an index of vertices: a Series of 3 entries")
    assert "the first 2, 1, 0. " in message
    for code in READINGS[library]:
        assert f"{argument}={code.replace('personalization', argument)}" in message


USERS = pd.DataFrame({"id": [3, 0, 2, 1, 7], "active": [False, True, True, False, True]})
INTEGERS = pd.DataFrame({"src": [0, 1, 2, 3], "dst": [1, 2, 3, 0]})


@pytest.mark.parametrize(
    "part",
    [
        USERS.id[USERS.active],
        USERS.id[1:3],
        USERS.id[::2],
        USERS.id.tail(1),
        USERS.id[USERS.id > 2],
        USERS.id.sort_values(),
        USERS.id.sample(3, random_state=1),
        USERS.active,
        (USERS.id / 7)[USERS.active],
        USERS.id.astype("Int64")[USERS.active].convert_dtypes(dtype_backend="pyarrow"),
        pd.Series([1, 2], index=pd.array([3, 0], dtype="UInt8")),
        pd.Series({3: 1.0, 2: 2.0}),
    ],
)
@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart", "seeds"])
def test_part_of_a_column_is_refused_whatever_its_values(part, argument):
    graph = prplugin.Graph(INTEGERS)
    with pytest.raises(InvalidOptionError, match="is a column without an index of vertices"):
        graph.rank(**{argument: [part, {0: 1}] if argument == "seeds" else part})


def test_filtered_column_of_users_of_whom_one_has_no_edges_is_refused():
    users = pd.DataFrame({"user_id": [3, 5, 1, 8, 2, 9, 0, 4, 7, 6], "bot": [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]})
    edges = pd.DataFrame({"src": [0, 1, 2, 3, 4, 5, 6, 8, 9, 0, 1], "dst": [1, 2, 3, 4, 5, 6, 8, 9, 0, 3, 5]})
    with pytest.raises(InvalidOptionError, match=r"pass a list of them: personalization=personalization.tolist\(\)"):
        prplugin.Graph(edges).rank(personalization=users.user_id[users.bot == 0])


@pytest.mark.parametrize(
    "index",
    [pd.Index([0, 2], name="id"), pd.Index([-1, 2]), pd.Index(["0", "2"])],
    ids=["named", "negative", "strings"],
)
def test_values_by_vertex_are_accepted(index):
    values = pd.Series([3, 7], index=index)
    edges = pd.DataFrame({"src": index, "dst": index[::-1]})
    found = prplugin.Graph(edges).rank(personalization=values, alpha=0).to_dict()
    assert found == {index[0]: 0.3, index[1]: 0.7}


@pytest.mark.parametrize("edges", ["pandas", "polars"])
@pytest.mark.parametrize("library", ["polars", "pyarrow", "narwhals"])
def test_frames_and_columns_of_other_libraries_by_vertex(edges, library):
    pl, nw = pytest.importorskip("polars"), pytest.importorskip("narwhals")
    graph = prplugin.Graph(INTEGERS if edges == "pandas" else pl.from_pandas(INTEGERS))

    def converted(frame):
        frame = pl.from_pandas(frame)
        return {"polars": frame, "pyarrow": frame.to_arrow(), "narwhals": nw.from_native(frame)}[library]

    values = converted(pd.DataFrame({"vertex": [2, 0], "values": [1.0, 3.0]}))
    by_dict = {2: 1.0, 0: 3.0}
    for argument in ("personalization", "dangling", "nstart"):
        expected = graph.rank(**{argument: by_dict}, tol=0, max_iter=2, stop="delta").ranks.tolist()
        assert graph.rank(**{argument: values}, tol=0, max_iter=2, stop="delta").ranks.tolist() == expected
    seeds = converted(pd.DataFrame({"seed": ["x", "x", "y"], "vertex": [1, 2, 3]}))
    expected = graph.rank(seeds=[[1, 2], [3]]).ranks.tolist()
    assert graph.rank(seeds=seeds).ranks.tolist() == expected
    column = values["vertex"]
    assert list(graph.rank(among=column).frame["vertex"]) == [2, 0]
    assert graph.rank(seeds=column).ranks.tolist() == graph.rank(seeds=[2, 0]).ranks.tolist()
    more = converted(pd.DataFrame({"vertex": [9]}))
    frame = INTEGERS if edges == "pandas" else pl.from_pandas(INTEGERS)
    assert prplugin.Graph(frame, vertices=more["vertex"]).number_of_vertices == 5


def test_column_without_an_index_as_one_of_many_seeds_is_refused(graph):
    with pytest.raises(InvalidOptionError, match=r"seeds\[1\] is a column without an index of vertices"):
        graph.rank(seeds=[{"ann": 1}, pd.Series(["bob"])])


def test_empty_series_is_empty(graph):
    with pytest.raises(InvalidOptionError, match="personalization is empty"):
        graph.rank(personalization=pd.Series([], dtype=object))


def test_seeds_as_lists_of_vertices(graph):
    many = graph.rank(seeds=[["ann", "bob"], ["dan"]])
    assert many.ranks.tolist() == graph.rank(seeds=[{"ann": 1, "bob": 1}, {"dan": 1}]).ranks.tolist()


def test_seeds_exclude_personalization(graph):
    with pytest.raises(InvalidOptionError, match="pass one of the two"):
        graph.rank(seeds=["ann"], personalization=["ann"])


@pytest.mark.parametrize("given", ["ann", 3, {"ann": 1}, {"ann", "bob"}])
def test_seeds_that_are_not_a_list_are_refused(graph, given):
    with pytest.raises(InvalidOptionError, match="seeds must be a list of vertices or of distributions"):
        graph.rank(seeds=given)


@pytest.mark.parametrize(
    "wrap",
    [list, tuple, pd.Series, pd.Index, np.array, lambda ids: pd.DataFrame({"any": ids})],
    ids=["list", "tuple", "Series", "Index", "array", "frame"],
)
def test_among_returns_the_requested_vertices_in_their_order(graph, wrap):
    full = graph.rank().frame.set_index("vertex")["pagerank"]
    requested = ["dan", "ann", "cat"]
    ranking = graph.rank(among=wrap(requested))
    assert ranking.frame["vertex"].tolist() == requested
    assert ranking.frame["pagerank"].tolist() == full[requested].tolist()
    assert ranking.ranks.size == 4
    top = graph.rank(among=wrap(requested), top=2).frame
    assert top["vertex"].tolist() == full[requested].sort_values(ascending=False).index[:2].tolist()
    assert EDGES.pagerank(among=wrap(requested)).equals(ranking.frame)


def test_among_with_many_seeds(graph):
    full = graph.rank(seeds=["ann", "dan"]).frame
    among = graph.rank(seeds=["ann", "dan"], among=["cat", "ann"]).frame
    assert among[["seed", "vertex"]].values.tolist() == [
        ["ann", "cat"], ["ann", "ann"], ["dan", "cat"], ["dan", "ann"],
    ]  # fmt: skip
    expected = full.set_index(["seed", "vertex"])["pagerank"]
    assert among.set_index(["seed", "vertex"])["pagerank"].equals(
        expected.loc[pd.MultiIndex.from_frame(among.iloc[:, :2])]
    )
    top = graph.rank(seeds=["ann", "dan"], among=["cat", "ann"], top=1).frame
    assert top["pagerank"].tolist() == among.groupby("seed", sort=False)["pagerank"].max().tolist()


def test_among_with_positions_and_with_tuples():
    graph = prplugin.Graph.from_csr([0, 1, 2, 2], [1, 0])
    assert graph.rank(among=[2, 0]).frame["vertex"].tolist() == [2, 0]
    pairs = prplugin.Graph(PAIRS, ["a", "b"], ["c", "d"])
    assert pairs.rank(among=[(2, "x"), (1, "y")]).frame[["a", "b"]].values.tolist() == [[2, "x"], [1, "y"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["eve"], "among names 1 vertex not in the graph: 'eve'"),
        (["ann", "ann"], "among names 1 vertex more than once: 'ann'"),
        ([], "among is empty"),
        ({"ann": 1}, "among must be a list"),
        ("ann", "among must be a list"),
        ([1], "among names vertices by ids of kind integer, but the graph's are of kind string"),
    ],
)
def test_bad_among_is_refused(graph, given, message):
    with pytest.raises(InvalidOptionError) as caught:
        graph.rank(among=given)
    assert message in str(caught.value)


def test_exclude_leaves_vertices_out(graph):
    full = graph.rank().frame.set_index("vertex")["pagerank"]
    ranking = graph.rank(exclude=["cat", "ann"])
    assert ranking.frame["vertex"].tolist() == ["bob", "dan"]
    assert ranking.frame["pagerank"].tolist() == full[["bob", "dan"]].tolist()
    assert ranking.ranks.size == 4
    top = graph.rank(exclude=["cat"], top=2).frame
    assert top["vertex"].tolist() == full.drop("cat").sort_values(ascending=False).index[:2].tolist()
    among = graph.rank(among=["dan", "cat", "ann"], exclude=["cat"]).frame
    assert among["vertex"].tolist() == ["dan", "ann"]
    assert graph.rank(exclude=[]).frame.equals(graph.rank().frame)
    assert graph.rank(exclude=list(full.index), top=3).frame.empty
    assert EDGES.pagerank(exclude=["cat"], top=2).equals(top)


def test_repeated_exclude_is_read_once(monkeypatch):
    """A list of many names is compared with the one before, and read no more: it took 0.2 ms per question."""
    read = []
    for module in (options, repeated, exclusion):
        monkeypatch.setattr(module, "excluded_by_seed", lambda given: (read.append(given), frozenset())[1])
    names = [f"page {number}" for number in range(200)]
    graph = prplugin.Graph(pd.DataFrame({"src": names, "dst": names[1:] + names[:1]}))
    given = {"personalization": np.ones(200), "exclude": names[:150]}
    first, calls = graph.rank(**given), len(read)
    assert calls > 0
    again = graph.rank(**given)
    assert len(read) == calls
    assert first.frame.equals(again.frame)
    assert again.frame.vertex.tolist() == names[150:]


@pytest.mark.parametrize(
    "nothing", [[], (), set(), frozenset(), pd.DataFrame(), pd.DataFrame({"any": []}), np.empty(0)]
)
def test_exclude_may_be_empty(graph, nothing):
    assert graph.rank(exclude=nothing).frame.equals(graph.rank().frame)


@pytest.mark.parametrize("given", [pd.DataFrame(index=["ann", "bob"]), Queue()], ids=["no column", "queue"])
def test_exclude_of_no_vertices_is_refused(graph, given):
    with pytest.raises(InvalidOptionError, match="exclude"):
        graph.rank(exclude=given)


@pytest.mark.parametrize(
    "wrap",
    [list, tuple, set, frozenset, pd.Series, pd.Index, np.array, lambda ids: pd.DataFrame({"any": ids})],
    ids=["list", "tuple", "set", "frozenset", "Series", "Index", "array", "frame"],
)
def test_exclude_takes_what_among_takes(graph, wrap):
    assert graph.rank(exclude=wrap(["dan", "ann"])).frame["vertex"].tolist() == ["bob", "cat"]


def test_exclude_the_seeds_of_one_ranking(graph):
    frame = graph.rank(personalization={"ann": 1, "dan": 0, "bob": 2}, exclude="seeds").frame
    assert frame["vertex"].tolist() == ["cat", "dan"]


@pytest.mark.parametrize(
    "options", [{}, {"top": 2}, {"top": 9}, {"among": ["dan", "cat", "bob"]}, {"dtype": "float32"}]
)
def test_exclude_the_own_seeds_of_each_ranking(graph, options):
    seeds = [["ann", "cat"], ["dan"], {"bob": 2, "ann": 0}]
    own = [{"ann", "cat"}, {"dan"}, {"bob"}]
    found = graph.rank(seeds=seeds, exclude="seeds", **options)
    every = graph.rank(seeds=seeds, **{**options, "top": None}).frame
    parts = []
    for seed, of_seed in every.groupby("seed", sort=False):
        part = of_seed[~of_seed["vertex"].isin(own[seed])]
        highest = part.sort_values("pagerank", ascending=False, kind="stable")[: options.get("top")]
        parts.append(highest if "top" in options else part)
    pd.testing.assert_frame_equal(found.frame, pd.concat(parts, ignore_index=True), check_exact=True)
    assert all(text in repr(found) for text in ("seed", "bob"))
    assert (found.ranks >= 0).all()


def test_exclude_for_many_seeds_leaves_out_the_same_vertices(graph):
    found = graph.rank(seeds=["ann", "dan"], exclude=["ann"], top=2).frame
    assert len(found) == 4
    assert "ann" not in found["vertex"].tolist()
    every = graph.rank(seeds=["ann", "dan"]).frame
    expected = every[every["vertex"] != "ann"].sort_values("pagerank", ascending=False).groupby("seed").head(2)
    assert sorted(found["pagerank"]) == sorted(expected["pagerank"])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_exclude_in_other_libraries(library):
    module = pytest.importorskip(library)
    edges = module.from_pandas(EDGES) if library == "polars" else module.Table.from_pandas(EDGES)
    found = prplugin.pagerank(edges, seeds=["ann", "dan"], exclude="seeds", top=1)
    ids = found["vertex"].to_pylist() if library == "pyarrow" else found["vertex"].to_list()
    assert ids == prplugin.pagerank(EDGES, seeds=["ann", "dan"], exclude="seeds", top=1)["vertex"].tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["ann", "ann"], "exclude names 1 vertex more than once: 'ann'"),
        ({"ann": 1}, "exclude must be a list"),
        ("ann", "exclude must be a list, Series, index or array of vertices, or 'seeds' or 'neighbors', not 'ann'"),
        (3, "exclude must be a list"),
        ("seeds", "exclude='seeds' leaves out the vertices to which a ranking teleports"),
    ],
)
def test_bad_exclude_is_refused(graph, given, message):
    with pytest.raises(InvalidOptionError) as caught:
        graph.rank(exclude=given)
    assert message in str(caught.value)


def test_among_and_certified_prove_the_order_of_these_vertices(graph):
    ranking = graph.rank(among=["dan", "cat", "ann"], top=2, certified=True)
    assert ranking.certified
    assert ranking.frame["vertex"].tolist() == ["cat", "ann"]
    assert graph.rank(among=["dan", "cat", "ann"], certified=True).frame["vertex"].tolist() == ["cat", "ann", "dan"]
    assert graph.rank(exclude=["bob"], top=2, certified=True).frame["vertex"].tolist() == ["cat", "ann"]
    assert graph.rank(exclude=graph.vertices, top=2, certified=True).certified
    with pytest.raises(InvalidOptionError, match="pass their number as top=k, or the vertices"):
        graph.rank(exclude=["bob"], certified=True)


@pytest.mark.parametrize("library", ["pandas", "index", "polars", "pyarrow", "chunks"])
def test_seeds_may_be_a_column_of_any_library(library):
    graph = prplugin.Graph(pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "a", "a"]}))
    if library == "polars":
        seeds = pytest.importorskip("polars").Series("id", ["a", "c"])
    elif library in ("pyarrow", "chunks"):
        pa = pytest.importorskip("pyarrow")
        seeds = pa.array(["a", "c"]) if library == "pyarrow" else pa.chunked_array([["a"], ["c"]])
    else:
        seeds = {"pandas": pd.Series, "index": pd.Index}[library](["a", "c"])
    expected = graph.rank(seeds=["a", "c"])
    assert graph.rank(seeds=seeds).frame.equals(expected.frame)
