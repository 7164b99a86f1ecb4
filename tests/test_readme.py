"""What the README and the pages of docs/ say is so: code runs, commands are those of CI, the table lists the methods."""

from __future__ import annotations

import re
from pathlib import Path

import dask.dataframe
import networkx
import pandas as pd
import polars
import pyarrow as pa
import pytest
import scipy.sparse

import prplugin
from prplugin.methods import methods

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md")))]


def blocks(language, page="README.md"):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def names():
    """What the examples take for granted, each in its library."""
    edges = pd.DataFrame(
        {
            "src": ["ann", "bob"], "dst": ["bob", "cat"], "from": ["ann", "bob"], "to": ["bob", "cat"], "clicks": [1, 2],
            "bank": [1, 1], "account": [2, 3], "to_bank": [1, 2], "to_account": [3, 3], "w": [1.0, 2.0], "weight": [1, 2],
        }
    )  # fmt: skip
    matrix = scipy.sparse.eye_array(3, format="csr")
    return {
        "alpha": 0.85,
        "tol": 1e-6,
        "edges": edges,
        "prplugin": prplugin,
        "polars_edges": polars.DataFrame({"src": ["ann"], "dst": ["bob"]}),
        "dask_edges": dask.dataframe.from_pandas(edges[["src", "dst"]], npartitions=2),
        "arrow_table": pa.table({"src": ["ann"], "dst": ["bob"]}),
        "matrix": matrix,
        "offsets": matrix.indptr,
        "indices": matrix.indices,
        "weights": matrix.data,
        "G": networkx.DiGraph([("ann", "bob")]),
        "seeds": pd.DataFrame({"vertex": ["ann"], "values": [1.0]}),
        "guess": pd.DataFrame({"vertex": ["bob", "ann"], "values": [1.0, 2.0]}),
    }


def test_the_first_example_runs():
    found = {}
    exec(blocks("python")[0], found)
    assert found["ranks"]["vertex"].tolist() == ["ann", "bob", "cat"]
    assert found["ranks"]["pagerank"].sum() == pytest.approx(1)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page):
    known = {}
    for block in blocks("python", page)[page == "README.md" :]:  # its first makes edges of its own
        try:
            exec(block, known := {**known, **names()})
        except prplugin.MethodUnavailableError as error:
            pytest.skip(str(error))


def test_tweetrank_runs(capsys):
    names = {}
    for block in re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs/tweetrank.md").read_text(), re.DOTALL | re.MULTILINE
    ):
        exec(block, names)
    assert names["ranking"].converged
    assert "cat" in capsys.readouterr().out


def test_ci_runs_the_command_that_the_readme_gives():
    command = next(block for block in blocks("sh") if "pytest" in block)
    assert command in (ROOT / ".ci" / "run").read_text()


def test_the_table_lists_every_method():
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", README, re.MULTILINE)) == sorted(methods())


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *PAGES])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)#]+)", text):
        if not link.startswith("http"):
            assert ((ROOT / page).parent / link.replace("\n", "")).exists(), link
