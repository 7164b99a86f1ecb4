"""Code that messages advise, by remedy and by the library that was given. Imports no dataframe library.

All code in messages about edges and vertices comes from `REMEDIES`; a test runs each on the input of its message.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from string import Template

ANY = "any"  # key of code that is the same for all libraries

_IN_SQL = "$given.select('* REPLACE ({} AS $sql)')"
_IN_POLARS = "$given.with_columns(polars.col($column).{})"
_IN_ARROW = "$given.set_column($given.column_names.index($column), $column, $given[$column].cast('{}'))"
_BY_PANDAS = "pyarrow.Table.from_pandas($given.to_pandas().{}, preserve_index=False)"

REMEDIES: dict[str, dict[str, str]] = {
    "cast to integers": {
        "pandas": "$given.astype({$column: 'Int64'})",  # keeps nulls, and refuses fractions
        "cudf": "$given.nans_to_nulls().astype({$column: 'int64'})",
        "polars": _IN_POLARS.format("fill_nan(None).cast(polars.Int64)"),
        "pyarrow": _BY_PANDAS.format("astype({$column: 'Int64'})"),
        "duckdb": _IN_SQL.format("TRY_CAST($sql AS BIGINT)"),
        "list": "$given=list(map(int, $given))",
        "dict": "$given={int(vertex): value for vertex, value in $given.items()}",
    },
    "cast to strings": {
        "pandas": "$given.astype({$column: 'string'})",  # keeps nulls
        "cudf": "$given.astype({$column: 'str'})",
        "polars": _IN_POLARS.format("cast(polars.String)"),
        "pyarrow": _IN_ARROW.format("string"),
        "duckdb": _IN_SQL.format("CAST($sql AS VARCHAR)"),
        "list": "$given=list(map(str, $given))",
        "dict": "$given={str(vertex): value for vertex, value in $given.items()}",
    },
    "objects to strings": {
        "polars": _IN_POLARS.format(
            "map_batches(lambda ids: polars.Series([str(each) for each in ids]), return_dtype=polars.String)"
        )
    },
    "cast to numbers": {
        "pandas": "$given.astype({$column: 'float64'})",
        "cudf": "$given.astype({$column: 'float64'})",
        "polars": _IN_POLARS.format("cast(polars.Float64)"),
        "pyarrow": _IN_ARROW.format("float64"),
        "duckdb": _IN_SQL.format("CAST($sql AS DOUBLE)"),
    },
    "durations to numbers": {
        "pandas": "$given.assign(**{$column: $given[$column].dt.total_seconds()})",
        "cudf": "$given.assign(**{$column: $given[$column].dt.total_seconds()})",
        "polars": _IN_POLARS.format("cast(polars.Int64)"),
        "pyarrow": _IN_ARROW.format("int64"),
    },
    "times instead of weights": {ANY: "weight=None, time=$column, half_life='7D'"},
    "rows of lists": {
        "pandas": "$given.explode($column)",
        "cudf": "$given.explode($column)",
        "polars": "$given.explode($column)",
        "pyarrow": _BY_PANDAS.format("explode($column)"),
        "duckdb": _IN_SQL.format("unnest($sql)"),
    },
    "rows without ids": {ANY: "missing='drop'"},
    "rename a column": {
        "pandas": "$given.rename(columns={$column: $wanted})",
        "cudf": "$given.rename(columns={$column: $wanted})",
        "polars": "$given.rename({$column: $wanted})",
        "pyarrow": "$given.rename_columns({$column: $wanted})",
    },
    "columns": {ANY: "source=$source, destination=$destination"},
    "column": {ANY: "$role=$column"},
    "columns of the index": {ANY: "frame.reset_index()"},
    "rows of a series": {ANY: "series.reset_index(name='w')"},
    "values as weights": {ANY: "weight='w'"},
    "matrix": {ANY: "prplugin.Graph.from_csr(edges)"},
    "array as matrix": {ANY: "prplugin.Graph.from_csr(scipy.sparse.csr_array(matrix))"},
    "fill cells": {
        "pandas": "prplugin.Graph.from_csr(edges.fillna(0))",
        "cudf": "prplugin.Graph.from_csr(edges.fillna(0))",
        "polars": "prplugin.Graph.from_csr(edges.fill_null(0))",
    },
    "format of a matrix": {ANY: "matrix.tocsr()"},
    "cells as targets": {
        "pandas": "$given.melt(var_name='src', value_name='dst')",
        "cudf": "$given.melt(var_name='src', value_name='dst')",
        "polars": "$given.unpivot(variable_name='src', value_name='dst')",
    },
    "frame of a dict": {ANY: "pandas.DataFrame(edges)"},
    "frame of lists by vertex": {
        ANY: "edges=pandas.DataFrame([(u, v) for u, row in edges.items() for v in row], columns=['src', 'dst']), "
        "vertices=list(edges)"
    },
    "frame of dicts by vertex": {
        ANY: "edges=pandas.DataFrame([(u, v, w) for u, row in edges.items() for v, w in row.items()], "
        "columns=['src', 'dst', 'weight']), weight='weight', vertices=list(edges)"
    },
    "frame of pairs": {ANY: "pandas.DataFrame(edges, columns=['src', 'dst'])"},
    "frame of a set of pairs": {ANY: "pandas.DataFrame(list(edges), columns=['src', 'dst'])"},
    "frame of weighted pairs": {
        ANY: "edges=pandas.DataFrame(list(edges), columns=['src', 'dst', 'weight']), weight='weight'"
    },
    "vertices of a column": {
        "pandas": "$given=$given.tolist()",
        "cudf": "$given=$given.to_arrow().to_pylist()",
        "polars": "$given=$given.to_list()",
        "pyarrow": "$given=$given.to_pylist()",
    },
    "values by the index": {
        "pandas": "$given=$given.rename_axis('vertex')",
        "cudf": "$given=$given.to_pandas().rename_axis('vertex')",
    },
    "values by position": {
        "pandas": "$given=$given.to_numpy()",
        "cudf": "$given=$given.to_cupy()",
        "polars": "$given=$given.to_numpy()",
        "pyarrow": "$given=numpy.asarray($given)",
    },
    "columns of values": {ANY: "$role=($role, $ids, $column)"},
    "index of vertices": {ANY: "exclude=pandas.Index(exclude)"},
    "unknown vertices": {ANY: "unknown='ignore'"},
    "list of a set": {ANY: "$role=sorted($role)"},
    "one ranking": {ANY: "seeds=None, personalization=seeds"},
}
"""Code of each remedy by library, "list" and "dict" for objects of Python; `ANY` for all.

It evaluates to an object instead of the given one, which is also called frame, series and matrix; to arguments of
`prplugin.pagerank` or `Graph.rank`; or to a `Graph`.
"""

_given: ContextVar[tuple[str, str]] = ContextVar("given", default=("", "edges"))


@contextmanager
def advising(library: str, name: str = "edges") -> Iterator[None]:
    """Return a context manager in which messages advise about an object of a library, of this name in their code."""
    token = _given.set((library, name))
    try:
        yield
    finally:
        _given.reset(token)


def remedy(which: str, **facts: object) -> str:
    """Return the code of a remedy for the object that is read, "" if it has none for its library.

    `facts`: Values of the placeholders, shown by `repr`, but for `role`, which is a name; `column` also as `sql`.
    """
    library, name = _given.get()
    by_library = REMEDIES[which]
    code = by_library.get(ANY, by_library.get(library))
    if code is None:
        return ""
    shown = {key: value if key == "role" else repr(value) for key, value in facts.items()}
    quoted = '"' + str(facts.get("column", "")).replace('"', '""') + '"'
    return Template(code).substitute(shown, given=name, sql=quoted)


LIBRARIES = {"dask": "pandas", "dask_expr": "pandas", "modin": "pandas", "dask_cudf": "cudf", "_duckdb": "duckdb"}
"""Libraries that have the code of another one, or a module of another name."""


def library_of(given: object) -> str:
    """Return the key in `REMEDIES` of an object, "" or an unknown one for objects without code of their own."""
    if isinstance(given, dict):
        return "dict"
    library = type(given).__module__.partition(".")[0]
    if library in ("builtins", "numpy"):
        return "list" if hasattr(given, "__len__") and not isinstance(given, (str, bytes)) else ""
    return LIBRARIES.get(library, library)


def cast_advice(words: str, which: str, label: str) -> str:
    """Return a sentence of advice about ids or numbers that `label` names: a column of edges, or an argument."""
    library, name = _given.get()
    if label == name and library in ("list", "dict"):
        return advice(words, which)
    with suppress(ValueError, SyntaxError):  # a name that is no literal, or a column of a part
        if label.startswith("column "):
            return advice(words, which, column=ast.literal_eval(label.removeprefix("column ")))
    return f"{words}."


def drop_advice(label: str) -> str:
    """Return a sentence, after a blank, on rows without an id; "" unless a column of edges has them."""
    known = _given.get()[1] == "edges" and label.startswith("column ")
    return f" To drop such rows pass {remedy('rows without ids')}." if known else ""


def advice(words: str, which: str, **facts: object) -> str:
    """Return a sentence of advice, with the code of a remedy after a colon if there is one."""
    code = remedy(which, **facts)
    return f"{words}: {code}." if code else f"{words}."
