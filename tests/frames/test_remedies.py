"""Code that messages advise: each is executed on the input of its message, and the ranks are compared with a reference."""

from __future__ import annotations

import datetime
import importlib
import re
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from string import Template
from types import SimpleNamespace
from typing import ClassVar
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from shown_text import error_message

import prplugin
from prplugin.frames import remedies
from prplugin.suggestions import suggest_argument

pa, pl, sparse = (pytest.importorskip(name) for name in ("pyarrow", "polars", "scipy.sparse"))


def reference(edges, vertices=(), personalization=None):
    """Return {vertex: rank} of edges (u, v) or (u, v, weight), by a dense solution of the equation."""
    ids = list(dict.fromkeys([*(end for edge in edges for end in edge[:2]), *vertices]))
    place = {vertex: at for at, vertex in enumerate(ids)}
    n, matrix = len(ids), np.zeros((len(ids), len(ids)))
    for u, v, *weight in edges:
        matrix[place[v], place[u]] += weight[0] if weight else 1.0
    teleport = np.full(n, 1 / n)
    if personalization is not None:
        teleport = np.array([personalization.get(vertex, 0.0) for vertex in ids]) / sum(personalization.values())
    sums = matrix.sum(0)
    matrix = np.where(sums > 0, matrix / np.where(sums > 0, sums, 1), teleport[:, None])
    ranks = np.linalg.solve(np.eye(n) - 0.85 * matrix, 0.15 * teleport)
    return dict(zip(ids, ranks.tolist(), strict=True))


def duckdb_relation(frame):
    return importlib.import_module("duckdb").from_arrow(arrow(frame))


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_arrow(arrow(frame)),
    "pyarrow": arrow,
    "duckdb": duckdb_relation,
}


def case(edges, steps, expected, *, update=None, libraries=("pandas",), **arguments):
    return SimpleNamespace(
        edges=edges, steps=[steps] if isinstance(steps, str) else steps, expected=expected, update=update,
        libraries=libraries, arguments=arguments,
    )  # fmt: skip


REPLIES = [(11, 12), (12, 13), (13, 11), (14, 11)]
BY_TEXT = [(str(u), str(v)) for u, v in REPLIES]
INTEGERS = pd.DataFrame(REPLIES, columns=["src", "dst"])
RING = pd.DataFrame({"src": [0, 1, 2, 2], "dst": [1, 2, 0, 1]})
RING_EDGES = list(RING.itertuples(index=False, name=None))
WEIGHTED = [("a", "b", 1.5), ("a", "c", 3.0), ("b", "a", 2.0), ("c", "a", 1.0)]
EDGES = pd.DataFrame(WEIGHTED, columns=["src", "dst", "w"])
CITED = pd.DataFrame({"paper": ["P1", "P2", "P3"], "cites": [["P2", "P3"], ["P1"], ["P1"]]})
CITATIONS = [("P1", "P2"), ("P1", "P3"), ("P2", "P1"), ("P3", "P1")]
MATRIX = pd.DataFrame({"a": [0, 0, 1], "b": [2, 0, 0], "c": [1, 1, 0]}, index=["a", "b", "c"])
CELLS = [("a", "b", 2), ("a", "c", 1), ("b", "c", 1), ("c", "a", 1)]
COLUMN = pd.Series([2, 1, 1], index=[0, 1, 2])
ALL = ("pandas", "polars", "pyarrow", "duckdb")

CASES = {
    "float ids": case(INTEGERS.astype({"dst": float}), "cast to integers", reference(REPLIES), libraries=ALL),
    "float objects": case(INTEGERS.astype({"dst": float}).astype(object), "cast to integers", reference(REPLIES)),
    "float ids in a list": case(
        INTEGERS, "cast to integers", reference(REPLIES, personalization={12: 1}), personalization=[12.0]
    ),
    "float ids in a dict": case(
        INTEGERS, "cast to integers", reference(REPLIES, personalization={12: 1}), personalization={12.0: 3}
    ),
    "text and integers": case(INTEGERS.astype({"dst": "string"}), "cast to strings", reference(BY_TEXT), libraries=ALL),
    "text among integers": case(
        pd.DataFrame({"src": [11, "12", 13, 14], "dst": ["12", "13", "11", "11"]}), "cast to strings", reference(BY_TEXT)
    ),
    "wide integers": case(
        pd.DataFrame({"src": [2**64, 1], "dst": ["1", str(2**64)]}), "cast to strings", {str(2**64): 0.5, "1": 0.5}
    ),
    "no common type of integers": case(
        pd.DataFrame({"src": np.array([-1, 5]), "dst": np.array([2**63, 5], "uint64")}),
        ["cast to strings", "cast to strings"],
        reference([("-1", str(2**63)), ("5", "5")]),
    ),
    "integers for text": case(
        INTEGERS.astype("string"), "cast to strings", reference(BY_TEXT, personalization={"12": 1}), personalization=[12]
    ),
    "integers for text, by value": case(
        INTEGERS.astype("string"), "cast to strings", reference(BY_TEXT, personalization={"12": 1}), nstart=None,
        personalization={12: 4},
    ),
    "text for integers": case(
        INTEGERS, "cast to integers", reference(REPLIES, personalization={12: 1}), personalization=["12"]
    ),
    "objects": case(
        pl.DataFrame({name: pl.Series([UUID(int=int(one)) for one in INTEGERS[name]], dtype=pl.Object) for name in INTEGERS}),
        ["objects to strings", "objects to strings"],
        reference([(str(UUID(int=u)), str(UUID(int=v))) for u, v in REPLIES]),
    ),
    "lists": case(
        CITED, "rows of lists", reference(CITATIONS), libraries=ALL, source="paper", destination="cites"
    ),
    "weights in text": case(
        EDGES.astype({"w": "string"}), "cast to numbers", reference(WEIGHTED), libraries=ALL, weight="w"
    ),
    "weights in categories": case(EDGES.astype({"w": "category"}).astype({"w": "string"}).astype({"w": "category"}),
                                  "cast to numbers", reference(WEIGHTED), weight="w"),
    "durations": case(
        EDGES.assign(w=pd.to_timedelta(EDGES["w"], unit="s")), "durations to numbers", reference(WEIGHTED),
        libraries=("pandas", "polars", "pyarrow"), weight="w",
    ),
    "times as weights": case(
        EDGES.assign(w=pd.to_datetime(["2026-01-08", "2026-01-01", "2026-01-08", "2026-01-08"])),
        "times instead of weights",
        reference([("a", "b", 1), ("a", "c", 0.5), ("b", "a", 1), ("c", "a", 1)]),
        libraries=("pandas", "polars"), weight="w",
    ),
    "dates as weights": case(
        EDGES.assign(w=pd.Series([datetime.date(2026, 1, day) for day in (8, 1, 8, 8)], dtype="date32[pyarrow]")),
        "times instead of weights",
        reference([("a", "b", 1), ("a", "c", 0.5), ("b", "a", 1), ("c", "a", 1)]),
        weight="w",
    ),
    "matrix by index": case(MATRIX, "matrix", reference(CELLS)),
    "matrix with shuffled columns": case(MATRIX[["c", "a", "b"]], "matrix", reference(CELLS)),
    "sparse matrix in a frame": case(MATRIX.astype(pd.SparseDtype(float, 0)), "matrix", reference(CELLS)),
    "matrix by column": case(
        MATRIX.reset_index(names="id"), "matrix", reference(CELLS), libraries=("pandas", "polars", "pyarrow", "duckdb")
    ),
    "matrix by a shuffled column": case(
        MATRIX.loc[["c", "a", "b"]].reset_index(names="id"), "matrix", reference(CELLS),
        libraries=("pandas", "polars", "pyarrow", "duckdb"),
    ),
    "matrix of integer ids under text": case(
        MATRIX.set_axis([12, 7, 9]).reset_index(names="id").set_axis(["id", "12", "7", "9"], axis="columns"), "matrix",
        reference([({"a": 12, "b": 7, "c": 9}[u], {"a": 12, "b": 7, "c": 9}[v], w) for u, v, w in CELLS]),
        libraries=("pandas", "polars", "pyarrow", "duckdb"),
    ),
    "matrix of two": case(MATRIX.loc[["a", "b"], ["a", "b"]], "matrix", reference([("a", "b", 2)])),
    "crosstab": case(pd.crosstab(EDGES["src"], EDGES["dst"]), "matrix", reference([edge[:2] for edge in WEIGHTED])),
    "pivot": case(
        EDGES.pivot(index="src", columns="dst", values="w"), ["matrix", "fill cells"], reference(WEIGHTED),
    ),
    "pivot of polars": case(
        EDGES.pivot(index="src", columns="dst", values="w").reset_index(), ["matrix", "fill cells"],
        reference(WEIGHTED), libraries=("polars",),
    ),
    "array": case(MATRIX.to_numpy(), "array as matrix", reference([(0, 1, 2), (0, 2, 1), (1, 2, 1), (2, 0, 1)])),
    "lil matrix": case(
        sparse.lil_array(MATRIX.to_numpy()), "format of a matrix",
        reference([(0, 1, 2), (0, 2, 1), (1, 2, 1), (2, 0, 1)]),
    ),
    "targets below their source": case(
        pd.DataFrame({"a": ["b", "c"], "b": ["a", "a"], "c": ["b", "b"]}), "cells as targets",
        reference([("a", "b"), ("a", "c"), ("b", "a"), ("b", "a"), ("c", "b"), ("c", "b")]),
        libraries=("pandas", "polars"),
    ),
    "two vertices with targets": case(
        pd.DataFrame({"a": ["b"], "b": ["a"]}), "cells as targets", reference([("a", "b"), ("b", "a")])
    ),
    "columns in a dict": case({"src": [1, 2, 3], "dst": [2, 1, 1]}, "frame of a dict", reference([(1, 2), (2, 1), (3, 1)])),
    "dict per edge": case([{"src": 1, "dst": 2}, {"src": 2, "dst": 2}], "frame of a dict", reference([(1, 2), (2, 2)])),
    "lists by vertex": case(
        {"a": ["b", "c"], "b": ["a"], "c": []}, "frame of lists by vertex", reference([("a", "b"), ("a", "c"), ("b", "a")])
    ),
    "lists of one length by vertex": case(
        {"a": ["b"], "b": ["a"]}, "frame of lists by vertex", reference([("a", "b"), ("b", "a")])
    ),
    "isolated vertices in lists": case(
        {"a": ["b"], "b": ["a"], "c": []}, "frame of lists by vertex", reference([("a", "b"), ("b", "a")], ["c"])
    ),
    "dicts by vertex": case(
        {"a": {"b": 2, "c": 1}, "b": {"c": 1}, "c": {"a": 1}}, "frame of dicts by vertex", reference(CELLS)
    ),
    "attributes by vertex": case(
        {"a": {"b": {"w": 2}}, "b": {"a": {}}}, "frame of lists by vertex", reference([("a", "b"), ("b", "a")])
    ),
    "pairs": case(REPLIES, "frame of pairs", reference(REPLIES)),
    "array of pairs": case(np.array(REPLIES), "frame of pairs", reference(REPLIES)),
    "two pairs in an array": case(np.array([(0, 1), (1, 1)]), "frame of pairs", reference([(0, 1), (1, 1)])),
    "set of pairs": case(set(REPLIES), "frame of a set of pairs", reference(REPLIES)),
    "weighted pairs": case(WEIGHTED, "frame of weighted pairs", reference(WEIGHTED)),
    "array of weighted pairs": case(
        np.array([(1, 2, 3), (2, 1, 1), (1, 3, 1), (3, 3, 1)]), "frame of weighted pairs",
        reference([(1, 2, 3), (2, 1, 1), (1, 3, 1), (3, 3, 1)]),
    ),
    "series by pairs": case(EDGES.set_index(["src", "dst"])["w"], ["rows of a series"], reference([e[:2] for e in WEIGHTED])),
    "weighted series by pairs": case(
        EDGES.set_index(["src", "dst"])["w"], [("rows of a series", "values as weights")], reference(WEIGHTED)
    ),
    "series by unnamed pairs": case(
        EDGES.set_index(["src", "dst"])["w"].rename_axis([None, None]),
        [("rows of a series", "values as weights"), "columns"],
        reference(WEIGHTED),
    ),
    "endpoints in the index": case(
        EDGES.set_index(["src", "dst"]), "columns of the index", reference(WEIGHTED), weight="w", source="src",
        destination="dst",
    ),
    "names of columns": case(
        EDGES.rename(columns={"src": "follower", "dst": "followee"}), "columns", reference(WEIGHTED),
        libraries=ALL, weight="w",
    ),
    "two columns": case(INTEGERS.set_axis(["x", "y"], axis=1), "columns", reference(REPLIES), libraries=ALL),
    "loser and winner": case(
        pd.DataFrame({"winner": ["a", "a", "b"], "loser": ["b", "c", "c"]}), "columns",
        reference([("b", "a"), ("c", "a"), ("c", "b")]), libraries=ALL,
    ),
    "misspelt column": case(EDGES, "column", reference(WEIGHTED), libraries=ALL, weight="W"),
    "columns of aggregation": case(
        EDGES.groupby(["src", "dst"]).agg({"w": ["sum"]}).reset_index(), ["column", "column"],
        reference([edge[:2] for edge in WEIGHTED]), source="src", destination="dst",
    ),
    "columns of aggregation by default": case(
        EDGES.groupby(["src", "dst"]).agg({"w": ["sum"]}).reset_index(), "columns",
        reference([edge[:2] for edge in WEIGHTED]),
    ),
    "tuple of columns": case(
        EDGES.assign(kind="x", to="x"), ["column", "column"],
        {("x", vertex): rank for vertex, rank in reference([edge[:2] for edge in WEIGHTED]).items()},
        source=("kind", "src"), destination=("to", "dst"),
    ),
    "a column instead of its name": case(EDGES, "column", reference(WEIGHTED), source="src", destination="dst", weight=EDGES["w"]),
    "column of vertices": case(
        RING, "vertices of a column", reference(RING_EDGES, personalization={0: 1, 1: 1}), libraries=("pandas", "polars"),
        personalization=pd.Series([1, 0], index=[0, 5]),
    ),
    "values by the index": case(
        RING, "values by the index", reference(RING_EDGES, personalization={0: 2, 2: 1}), personalization=COLUMN[[0, 2]]
    ),
    "values by position": case(
        RING, "values by position", reference(RING_EDGES, personalization={0: 2, 1: 1, 2: 1}), personalization=COLUMN
    ),
    "values by position, of names": case(
        EDGES, "values by position", reference(WEIGHTED, personalization={"a": 2, "b": 1, "c": 1}), weight="w",
        personalization=COLUMN,
    ),
    "one ranking": case(
        RING, "one ranking", reference(RING_EDGES, personalization={1: 1, 2: 2}),
        seeds=pd.DataFrame({"vertex": [1, 2], "values": [1.0, 2.0]}),
    ),
    "rows without an endpoint": case(
        pd.concat([INTEGERS.astype("string"), pd.DataFrame({"src": ["11", None], "dst": [None, "99"]}, dtype="string")]),
        "rows without ids", reference(BY_TEXT), libraries=ALL,
    ),
    "floats because of a missing value": case(
        pd.concat([INTEGERS.astype(float), pd.DataFrame({"src": [11.0], "dst": [np.nan]})]),
        ["cast to integers", "cast to integers", "rows without ids"], reference(REPLIES), libraries=ALL,
    ),
    "lists of which one is empty": case(
        CITED.assign(cites=[["P2", "P3"], ["P1"], []]), ["rows of lists", "rows without ids"],
        reference([("P1", "P2"), ("P1", "P3"), ("P2", "P1")]), libraries=("pandas", "pyarrow"), source="paper",
        destination="cites",
    ),
    "list of a user without edges": case(
        INTEGERS, ["vertices of a column", "unknown vertices"], reference(REPLIES, personalization={12: 1, 13: 1}),
        personalization=pd.Series([12, 99, 13]),
    ),
    "values in other columns": case(
        INTEGERS, "columns of values", reference(REPLIES, personalization={12: 1, 13: 3}), libraries=ALL,
        personalization=pd.DataFrame({"id": [12, 13], "score": [1, 3]}),
    ),
    "values in other columns, first": case(
        INTEGERS, "columns of values", reference(REPLIES, personalization={12: 1, 13: 3}), libraries=ALL,
        personalization=pd.DataFrame({"score": [1.0, 3.0], "id": [12, 13]}),
    ),
    "values of several columns": case(
        INTEGERS.assign(k="x"), "columns of values",
        {("x", vertex): rank for vertex, rank in reference(REPLIES, personalization={12: 1, 13: 3}).items()},
        source=["k", "src"], destination=["k", "dst"],
        personalization=pd.DataFrame({"kind": ["x", "x"], "id": [12, 13], "score": [1, 3]}),
    ),
    "values beside an index": case(
        INTEGERS, "columns of the index", reference(REPLIES, personalization={12: 1, 13: 3}),
        personalization=pd.DataFrame({"values": [1, 3]}, index=pd.Index([12, 13], name="vertex")),
    ),
    "set of vertices": case(RING, "list of a set", reference(RING_EDGES, [3, 4]), vertices={4, 3}),
    "update by other names": case(
        INTEGERS[:2].set_axis(["from_url", "to_url"], axis=1), "rename a column", reference(REPLIES),
        update=INTEGERS[2:].set_axis(["fromurl", "to_url"], axis=1), libraries=("pandas", "polars", "pyarrow"),
        source="from_url", destination="to_url",
    ),
}  # fmt: skip

for _library in ("polars", "pyarrow"):
    _convert = pl.Series if _library == "polars" else pa.array
    CASES |= {
        f"column of vertices of {_library}": case(
            RING, "vertices of a column", reference(RING_EDGES, personalization={2: 1}), personalization=_convert([2])
        ),
        f"values by position of {_library}": case(
            RING, "values by position", reference(RING_EDGES, personalization={0: 2, 1: 1, 2: 1}),
            personalization=_convert([2, 1, 1]),
        ),
    }  # fmt: skip


class _Recorded(Template):
    shown: ClassVar[dict[str, str]] = {}

    def substitute(self, *given, **more):
        code = super().substitute(*given, **more)
        self.shown[self.template] = code
        return code


MODULES = ("numpy", "pandas", "polars", "pyarrow", "scipy.sparse", "prplugin")


def follow(name, library, executed):
    """Follow the remedies of a case; return the frame of ranks."""
    it = CASES[name]
    convert = LIBRARIES[library] if library else lambda edges: edges
    edges, arguments, add, graph = convert(it.edges), dict(it.arguments), None, None
    if it.update is not None:
        graph, add = prplugin.Graph(edges, **arguments), convert(it.update)

    def call():
        if add is not None:
            graph.update(add=add)
        return prplugin.pagerank(edges, **arguments) if graph is None else graph.rank().frame

    attempt = call
    for step in it.steps:
        _Recorded.shown.clear()
        message = error_message(attempt)
        attempt, shown = call, dict(_Recorded.shown)
        for one in (step,) if isinstance(step, str) else step:
            template = next((each for each in remedies.REMEDIES[one].values() if each in shown), None)
            assert template, f"{name} of {library}: no {one} in {message}"
            code = shown[template]
            assert code in message, f"{name} of {library}: no {code} in {message}"
            executed.add(template)
            names = {each.partition(".")[0]: importlib.import_module(each.partition(".")[0]) for each in MODULES}
            names |= {**arguments, "add": add} | dict.fromkeys(("edges", "frame", "series", "matrix"), edges)
            if "is a level of its index" in message and "personalization" in arguments:
                names["frame"] = arguments["personalization"]
            if re.match(r"\w+=", code):
                new = eval(f"dict({code})", names)
                edges = new.pop("edges", edges)
                arguments |= new
            elif step != it.steps[-1] and code.startswith("prplugin."):
                attempt = partial(eval, code, names)  # raises the message of the next step
            elif names["frame"] is not edges:
                arguments["personalization"] = eval(code, names)
            elif add is not None:
                add = eval(code, names)
            else:
                found = eval(code, names)
                edges, graph = (edges, found) if isinstance(found, prplugin.Graph) else (found, None)
    return call()


def as_dict(ranks):
    """Return the ranks of a frame of any library by vertex."""
    columns = (
        ranks.to_pydict() if isinstance(ranks, pa.Table) else {name: ranks[name].to_list() for name in ranks.columns}
    )
    *ids, values = columns.values()
    return dict(zip(ids[0] if len(ids) == 1 else zip(*ids, strict=True), values, strict=True))


def test_every_remedy_leads_to_the_right_ranks(monkeypatch):
    monkeypatch.setattr(remedies, "Template", _Recorded)
    executed, absent = set(), {"cudf"}
    for name, it in CASES.items():
        for library in it.libraries if isinstance(it.edges, pd.DataFrame) else [None]:
            if library == "duckdb" and find_spec("duckdb") is None:
                absent.add(library)
            else:
                found = as_dict(follow(name, library, executed))
                assert found == pytest.approx(it.expected, abs=2e-6), f"{name} of {library}"
    known = {
        code
        for by_library in remedies.REMEDIES.values()
        for library, code in by_library.items()
        if library not in absent
    }
    assert known - executed - {"exclude=pandas.Index(exclude)"} == set(), "each remedy has a case"


def test_words_of_exclude_that_are_vertices_are_refused_with_what_to_pass():
    graph, exclude = prplugin.Graph(pd.DataFrame({"src": ["seeds", "b"], "dst": ["b", "seeds"]})), ["seeds"]
    assert "pass exclude=pandas.Index(exclude)" in error_message(lambda: graph.rank(seeds=["b"], exclude=exclude))
    assert graph.rank(seeds=["b"], exclude=pd.Index(exclude)).frame["vertex"].tolist() == ["b"]
    assert graph.rank(seeds=["b"], exclude="seeds").frame["vertex"].tolist() == ["seeds"]


@pytest.mark.gpu
def test_every_remedy_for_cudf_leads_to_the_right_ranks(monkeypatch):
    cudf = pytest.importorskip("cudf")
    monkeypatch.setattr(remedies, "Template", _Recorded)
    monkeypatch.setitem(LIBRARIES, "cudf", cudf.from_pandas)
    monkeypatch.setitem(CASES, "column of vertices of cuDF", case(
        RING, "vertices of a column", reference(RING_EDGES, personalization={1: 1}), personalization=cudf.Series([1])
    ))  # fmt: skip
    monkeypatch.setitem(CASES, "values by the index of cuDF", case(
        RING, "values by the index", reference(RING_EDGES, personalization={1: 3}), personalization=cudf.Series([3], [1])
    ))  # fmt: skip
    monkeypatch.setitem(CASES, "values by position of cuDF", case(
        RING, "values by position", reference(RING_EDGES, personalization={2: 3}), personalization=cudf.Series([0, 0, 3])
    ))  # fmt: skip
    executed = set()
    for name in (
        "float ids", "text and integers", "lists", "weights in text", "durations", "matrix by index", "pivot",
        "targets below their source", "names of columns", "loser and winner", "column of vertices of cuDF",
        "values by the index of cuDF", "values by position of cuDF", "update by other names",
    ):  # fmt: skip
        found = follow(name, "cudf", executed)
        found = as_dict(
            found.to_pandas() if isinstance(found, cudf.DataFrame) else found
        )  # some remedies lead to pandas
        assert found == pytest.approx(CASES[name].expected, abs=2e-6), name
    known = {by_library["cudf"] for by_library in remedies.REMEDIES.values() if "cudf" in by_library}
    assert known - executed == set(), "each remedy has a case"


def test_arguments_of_other_libraries_are_suggested_as_the_guide_translates_them():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (Path(__file__).parents[2] / "docs" / "guide" / "coming-from.md").read_text().splitlines()
        if line.startswith("| ") and "`" in line
    ]
    pairs = {
        name: re.findall(r"`(\w+)=", row[1])
        for row in rows
        for cell in row[2:]
        for name in re.findall(r"`(\w+)[=:]", cell)
        if re.findall(r"`(\w+)=", row[1])
    }
    own = {"alpha", "tol", "max_iter", "weight", "personalization", "nstart", "stop", "scale", "dangling", "seeds"}
    assert {"sourceNodes", "dampingFactor", "reset_vertices"} <= set(pairs)
    for name, meant in pairs.items():
        if name not in own and name != "weights":  # scikit-network's weights are a personalization
            assert f"Did you mean {meant[0]}=?" in suggest_argument(name, sorted(own), {}), name
