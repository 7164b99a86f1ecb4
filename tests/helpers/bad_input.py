"""Invalid edges and arguments, and the message of each."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa

EDGES = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1], "w": [1.0, 2.0, 3.0]})


BIG = np.finfo(np.float64).max


def frame(src, dst=None, **more):
    return pd.DataFrame({"src": src, "dst": src if dst is None else dst, **more})


EDGE_CASES = {
    "null in objects": (
        frame(["a", None, "b", None], ["b", "b", "a", "a"]),
        {},
        "column 'src' has 2 nulls, in rows 1, 3 (counted from 0): a vertex needs an id. Drop or fill them.",
    ),
    "null in Int64": (frame([1, 2], pd.array([None, 1], dtype="Int64")), {}, "column 'dst' has 1 null, in row 0 "),
    "null in a categorical": (frame(pd.Categorical(["a", None])), {}, "column 'src' has 1 null, in row 1 "),
    "null in Arrow strings": (
        frame(pd.array(["a", None], dtype=pd.ArrowDtype(pa.string()))), {}, "column 'src' has 1 null, in row 1 ",
    ),
    "NaT": (frame([pd.Timestamp("2026-01-01"), pd.NaT]), {}, "column 'src' has 1 null, in row 1 "),
    "many nulls": (frame([None] * 1200 + ["a"]), {}, "has 1,200 nulls, in rows 0, 1, 2, 3, 4 and 1,195 more"),
    "null in vertices": (EDGES, {"vertices": [7, None]}, "vertices has 1 null, in row 1 "),
    "floats": (frame([1.0, 2.0]), {}, "column 'src' holds float64 ids, which do not compare reliably. Cast it to integers: edges.astype({'src': 'Int64'})."),
    "floats because of a missing value": (
        frame([1, 2, 3], [1.0, np.nan, 2.0]), {}, "column 'dst' holds float64 ids, which do not compare reliably. 1 row has no",
    ),
    "Arrow floats": (frame(pd.array([1.5], dtype=pd.ArrowDtype(pa.float32()))), {}, "column 'src' holds float[pyarrow] ids"),
    "floats in objects": (frame(pd.Series([1.5, 2.0], dtype=object)), {}, "column 'src' holds float ids"),
    "complex": (frame([1j, 2j]), {}, "column 'src' holds complex128 ids"),
    "mixed types in a column": (
        frame(["1", "2", 3], [1, 2, 3]),
        {},
        "column 'src' mixes kinds of ids: str in row 0, int in row 2 (counted from 0). Cast it to strings: edges.astype({'src': 'string'}).",
    ),
    "strings and integers": (
        frame(["1", "2"], [1, 2]),
        {},
        "column 'src' holds ids of kind string, but column 'dst' of kind integer. Cast column 'dst' to strings: edges",
    ),
    "booleans and integers": (frame([True], [1]), {}, "column 'src' holds ids of kind boolean, but column 'dst' of kind integer"),
    "with and without time zone": (
        frame(pd.to_datetime(["2026-01-01"]), pd.to_datetime(["2026-01-01"]).tz_localize("UTC")),
        {},
        "column 'src' holds ids of kind datetime, but column 'dst' of kind datetime with a time zone",
    ),
    "vertices of another type": (
        EDGES, {"vertices": ["a"]}, "column 'src' holds ids of kind integer, but vertices of kind string",
    ),
    "lists as ids": (frame(pd.Series([[1], [2]])), {}, "column 'src' holds ids of type list, which have no hash"),
    "integers past 64 bits": (frame(pd.Series([2**64, 1], dtype=object)), {}, "column 'src' holds integers that no 64-bit type holds"),
    "no common integer type": (
        frame(np.array([-1]), np.array([2**63], dtype="uint64")),
        {},
        "column 'src' and column 'dst' hold negative ids and ids past 2**63",
    ),
    "negative weight": (
        EDGES.assign(w=[1.0, -2.0, -0.5]),
        {"weight": "w"},
        "column 'w' has 2 values below 0: -2.0 in row 1, -0.5 in row 2 (counted from 0). PageRank needs",
    ),
    "NaN weight": (EDGES.assign(w=[1.0, np.nan, 1]), {"weight": "w"}, "column 'w' has 1 value missing or NaN: nan in row 1 "),
    "null weight": (
        EDGES.assign(w=pd.array([1, None, 3], dtype="Int64")), {"weight": "w"}, "column 'w' has 1 value missing or NaN: <NA> in row 1 ",
    ),
    "NaN that is not null": (
        EDGES.assign(w=pd.array([0.0, 1.0, 1.0], dtype="Float64") / pd.array([0.0, 1.0, 1.0], dtype="Float64")),
        {"weight": "w"},
        "column 'w' has 1 value missing or NaN",
    ),
    "infinite weight": (EDGES.assign(w=[1.0, np.inf, 1]), {"weight": "w"}, "column 'w' has 1 value infinite, or past the range"),
    "minus infinite weight": (EDGES.assign(w=[1.0, -np.inf, 1]), {"weight": "w"}, "column 'w' has 1 value below 0: -inf in row 1"),
    "strings as weights": (EDGES.assign(w=pd.array(["1", "2", "3"], dtype="string")), {"weight": "w"}, "column 'w' holds string, not real numbers. Cast it"),
    "string among objects": (
        EDGES.assign(w=pd.Series([1, "x", 2], dtype=object)),
        {"weight": "w"},
        "column 'w' has 1 value that is not a number: 'x' in row 1 (counted from 0). Correct or drop them.",
    ),
    "complex weights": (EDGES.assign(w=[1j, 2, 3]), {"weight": "w"}, "column 'w' holds complex128, not real numbers"),
    "datetimes as weights": (EDGES.assign(w=pd.Timestamp(0)), {"weight": "w"}, "column 'w' holds datetime64["),
    "decimal NaN": (
        EDGES.assign(w=pd.Series([Decimal(1), Decimal("NaN"), Decimal(2)], dtype=object)),
        {"weight": "w"},
        "column 'w' has 1 value missing or NaN",
    ),
    "weights past float64": (
        EDGES.assign(w=np.array([1, 2, np.finfo(np.longdouble).max], np.longdouble)),
        {"weight": "w"},
        "column 'w' has 1 value infinite, or past the range of float64",
    ),
    "overflowing sum of weights": (
        pd.DataFrame({"src": [7, 7, 8], "dst": [8, 9, 7], "w": [BIG, BIG, 1.0]}),
        {"weight": "w"},
        "column 'w': the weights that leave 1 vertex (7) sum to more than float64 holds. Divide column 'w' by its",
    ),
    "repeated pair": (
        pd.DataFrame({"src": [1, 2, 1, 1], "dst": [2, 1, 2, 2]}),
        {"duplicates": "error"},
        "2 rows of the edge frame repeat a pair of vertices that an earlier row has: 2, 3 (counted from 0). Drop them",
    ),
    "pair and its reverse": (
        pd.DataFrame({"src": [1, 2], "dst": [2, 1]}),
        {"duplicates": "error", "directed": False},
        "1 row of the edge frame repeats a pair of vertices that an earlier row has: 1 ",
    ),
    "integers past float64": (
        EDGES.assign(w=pd.Series([1, 10**400, 2], dtype=object)), {"weight": "w"}, "column 'w' has 1 value infinite, or past the range of float64",
    ),
    "negative integer past float64": (EDGES.assign(w=pd.Series([1, -(10**400), 2], dtype=object)), {"weight": "w"}, "column 'w' has 1 value below 0"),
    "signaling NaN as id": (pd.DataFrame({"src": pd.Series([Decimal(1), Decimal("sNaN")]), "dst": pd.Series([Decimal(2)] * 2)}), {}, "column 'src' has 1 null, in row 1 "),
    "signaling NaN as time": (EDGES.assign(w=pd.Series([1, Decimal("sNaN"), 2], dtype=object)), {"time": "w", "half_life": 1}, "column 'w' has 1 null, in row 1 "),
    "signalling NaN": (EDGES.assign(w=pd.Series([1, Decimal("sNaN"), 2], dtype=object)), {"weight": "w"}, "column 'w' has 1 value missing or NaN"),
    "decimals that underflow": (
        EDGES.assign(w=pd.Series([Decimal("1e-400"), Decimal("-1e-400"), Decimal(0)], dtype=object)),
        {"weight": "w"},
        "column 'w' has 2 values too near to 0 for float64: Decimal('1E-400') in row 0, Decimal('-1E-400') in row 1 ",
    ),
    "long doubles that underflow": (
        EDGES.assign(w=np.array([np.longdouble(5e-324) * 1.5, 5e-324, 1], np.longdouble)), {"weight": "w"}, "column 'w' has 1 value too near to 0 for float64",
    ),
    "tuples of lists": (frame(pd.Series([([1],), (2,)], dtype=object)), {}, "column 'src' holds ids that have no hash"),
    "Arrow dictionaries of lists": (frame(pd.array(pa.DictionaryArray.from_arrays([0, 1], pa.array([[1], [2]])), dtype=pd.ArrowDtype(pa.dictionary(pa.int64(), pa.list_(pa.int64()))))), {}, "which have no hash. If they are lists of vertices, make a row of each entry: edges.explode('src')."),
    "Arrow lists": (frame(pd.array([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))), {}, "which have no hash. If they are lists of vertices, make a row of each entry: edges.explode('src')."),
    "datetimes without a common type": (
        frame(pd.Series(["9999-01-01"], dtype="datetime64[s]"), pd.Series(["2026-01-01"], dtype="datetime64[ns]")), {}, "have no common type",
    ),
    "repeated column": (
        pd.DataFrame([[1, 2, 3]], columns=["src", "dst", "src"]), {}, "column 'src' is in the frame 2 times, at positions 0, 2.",
    ),
}  # fmt: skip


OPTION_CASES = {
    "source without destination": ({"source": "src"}, "destination is not given: name both ends of the edges, or neither."),
    "destination without source": ({"destination": "src"}, "source is not given"),
    "same column for both endpoints": (
        {"source": "src", "destination": "src"}, "source and destination are both 'src': an edge needs two ends.",
    ),
    "same list for both endpoints": ({"source": ["src", "dst"], "destination": ["src", "dst"]}, "are both 'src', 'dst'"),
    "lists of unequal length": ({"source": ["src", "w"], "destination": ["dst"]}, "source names 2 columns and destination 1"),
    "empty list": ({"source": [], "destination": []}, "source is an empty list"),
    "repeated column": ({"source": ["src", "src"], "destination": ["dst", "w"]}, "source names a column twice: 'src', 'src'."),
    "unhashable name": ({"source": {"src"}, "destination": "dst"}, "source must be a column name or a list of them"),
    "alpha 1": ({"alpha": 1}, "alpha must be at least 0 and less than 1, not 1.0"),
    "alpha below 0": ({"alpha": -0.1}, "alpha must be at least 0 and less than 1, not -0.1"),
    "alpha NaN": ({"alpha": math.nan}, "alpha must be at least 0 and less than 1, not nan"),
    "alpha string": ({"alpha": "0.85"}, "alpha must be a number, not '0.85'."),
    "alpha bool": ({"alpha": True}, "alpha must be a number, not True."),
    "tol below 0": ({"tol": -1e-6}, "tol must be a finite number of at least 0, not -1e-06."),
    "tol NaN": ({"tol": math.nan}, "tol must be a finite number of at least 0, not nan."),
    "tol infinite": ({"tol": math.inf}, "tol must be a finite number of at least 0, not inf."),
    "tol 0": ({"tol": 0}, "tol=0 never stops by itself: pass max_iter=k as well"),
    "tol below the provable in float64": ({"tol": 1e-18}, "tol=1e-18 cannot be proved for this graph in float64 at alpha=0.85, because of rounding: the smallest provable tol is"),
    "tol below the provable in float32": ({"tol": 1e-9, "dtype": "float32"}, "or for dtype='float64'."),
    "alpha next to 1": ({"alpha": 1 - 2**-53}, "cannot be proved for this graph in float64 at alpha=1, because of rounding: the smallest provable tol is inf"),
    "max_iter -1": ({"max_iter": -1}, "max_iter must be a whole number of at least 0, not -1."),
    "max_iter 2.5": ({"max_iter": 2.5}, "max_iter must be a whole number of at least 0, not 2.5."),
    "alpha past float64": ({"alpha": 10**400}, "alpha must be at least 0 and less than 1, not inf"),
    "tol past float64": ({"tol": 10**400}, "tol must be a finite number of at least 0, not inf."),
    "scale array": ({"scale": np.array([1, 2])}, "scale must be 1 (ranks sum to 1) or 'n'"),
    "vertices of two dimensions": ({"vertices": np.array([[5, 6]])}, "vertices is an array of 2 dimensions"),
    "repeated column values": (
        {"personalization": pd.DataFrame([[1, 2, 3]], columns=["vertex", "values", "values"])}, "personalization has column 'values' more than once",
    ),
    "unknown option": ({"thread": 2}, "'thread' is neither an argument of pagerank nor an option of any method."),
    "unknown stop": ({"stop": "never"}, "stop must be one of 'error', 'delta', 'vertex', 'networkx', not 'never'."),
    "scale 2": ({"scale": 2}, "scale must be 1 (ranks sum to 1) or 'n' (they sum to the number of vertices), not 2."),
    "dtype float16": ({"dtype": "float16"}, "dtype must be 'float64' or 'float32', not 'float16'."),
    "dtype None": ({"dtype": None}, "dtype must be 'float64' or 'float32', not None."),
    "unknown dtype": ({"dtype": "nonsense"}, "dtype must be 'float64' or 'float32', not 'nonsense'."),
    "top 0": ({"top": 0}, "top must be a whole number of at least 1, not 0."),
    "unknown duplicates": ({"duplicates": "drop"}, "duplicates must be one of 'sum', 'first', 'last', 'error', not 'drop'."),
    "directed string": ({"directed": "no"}, "directed must be True or False, not 'no'."),
    "unknown method": ({"method": "magic"}, "method must be one of 'auto', 'binned', 'block', "),
    "method None": ({"method": None}, "method must be a name such as 'auto', not None."),
    "progress number": ({"progress": 1.5}, "progress must be True, False or a function of the state, not 1.5."),
    "unknown argument": (
        {"alhpa": 0.9, "method": "numpy"}, "'alhpa' is neither an argument of pagerank nor an option of any method. Did you mean alpha=?",
    ),
    "unknown option of native": ({"thread": 2, "method": "native"}, "Did you mean threads=?"),
    "threads 0": ({"threads": 0, "method": "native"}, "threads must be a whole number of at least 1, not 0."),
    "unknown vertices": (
        {"personalization": {1: 1, 8: 1, 9: 2}},
        "personalization names 2 vertices not in the graph: 8, 9. Remove them, or pass unknown='ignore'.",
    ),
    "unknown vertex": ({"dangling": {9: 1.0}}, "dangling names 1 vertex not in the graph: 9."),
    "vertices of another type": (
        {"personalization": {"1": 1}}, "personalization names vertices by ids of kind string, but the graph's are of kind integer",
    ),
    "repeated vertex": (
        {"nstart": pd.Series([1, 2], index=pd.Index([3, 3], name="vertex"))}, "nstart names 1 vertex more than once: 3. Drop all but one, or add up",
    ),
    "NaN value": ({"personalization": {1: math.nan}}, "personalization has 1 value missing or NaN: nan in entry 0 "),
    "null value": ({"personalization": {1: None}}, "personalization has 1 value missing or NaN: None in entry 0 "),
    "null vertex": ({"personalization": {None: 1, 2: 1}}, "personalization has 1 null, in row 0 "),
    "negative value": ({"personalization": {1: -1, 2: 3}}, "personalization has 1 value below 0: -1 in entry 0 "),
    "infinite value": ({"personalization": {1: math.inf}}, "personalization has 1 value infinite"),
    "string value": ({"personalization": {1: "x"}}, "personalization has 1 value that is not a number: 'x' in entry 0"),
    "sum 0": ({"personalization": {1: 0, 2: 0.0}}, "personalization sums to 0: at least one vertex needs a positive value."),
    "overflowing sum": ({"dangling": {1: BIG, 2: BIG}}, "dangling sums to more than float64 holds."),
    "empty dict": ({"personalization": {}}, "personalization is empty: it must give a positive value to at least one vertex."),
    "list of dicts": ({"dangling": [{1: 2}]}, "dangling is a list with 1 dict: a list names vertices."),
    "array of wrong size": ({"nstart": np.ones(7)}, "nstart is an array of shape (7,), but the graph has"),
    "frame without values": (
        {"personalization": pd.DataFrame({"vertex": [1], "w": [1.0]})}, "personalization has no column 'values': it needs the columns 'vertex', 'values'.",
    ),
    "MultiIndex for one column": (
        {"personalization": pd.Series([1], index=pd.MultiIndex.from_tuples([(1, 2)]))}, "personalization has an index of 2 levels",
    ),
    "vertices as a string": ({"vertices": "abc"}, "vertices must be a list, an array, a Series or a frame of ids, not 'abc'."),
    "vertices as a set": ({"vertices": {4, 5}}, "vertices is a set, which has no order: pass a list"),
    "vertices of two columns": ({"vertices": EDGES[["src", "dst"]]}, "vertices is a frame of 2 columns, but the vertices of this graph have one."),
    "tuples of wrong length": (
        {"source": ["src", "w"], "destination": ["dst", "w"], "vertices": [(1, 1), 2]},
        "vertices must hold tuples of 2 ids, one for each of 'src', 'w'; 1 entry is not: 2.",
    ),
    "frame without a column of several": (
        {"source": ["src", "w"], "destination": ["dst", "w"], "vertices": pd.DataFrame({"src": [1]})},
        "vertices has no column 'w': it needs the columns 'src', 'w'.",
    ),
}  # fmt: skip
