"""Output of notebook cells, executed by a Jupyter kernel."""

from __future__ import annotations

import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.slow

SETUP = """
import numpy as np, pandas as pd, prplugin
import prplugin.progress, prplugin.result.explain
prplugin.progress.QUIET_SECONDS = prplugin.progress.REDRAWN_SECONDS = 0.01
random = np.random.default_rng(1)
edges = pd.DataFrame({"src": random.integers(0, 300, 2000), "dst": random.integers(0, 300, 2000)})
graph = prplugin.Graph(edges)
ranking = graph.rank()
rankings = graph.rank(seeds=[1, 2])
estimate = graph.estimate()
"""

CELLS = {
    "setup": SETUP,
    "graph": "graph",
    "ranking": "ranking",
    "rankings": "rankings",
    "estimate": "estimate",
    "plot": "ranking.plot()",
    "plot of seeds": "rankings.plot()",
    "explain": "ranking.explain()",
    "explain seeds": "rankings.explain()",
    "explain to a file": "import io; file = io.StringIO(); ranking.explain(file); assert 'vertices' in file.getvalue()",
    "progress": "graph.rank(alpha=0.9999, tol=0, max_iter=20000, method='numpy', progress=True).iterations",
    "no progress": "prplugin.progress.QUIET_SECONDS = 60; _ = graph.rank(progress=True)",
    "inline": "%matplotlib inline\nranking.plot()",
}


@pytest.fixture(scope="module")
def outputs():
    """Execute the cells in order and return the outputs of each."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return {name: cell["outputs"] for name, cell in zip(CELLS, notebook.cells, strict=True)}


@pytest.mark.parametrize("name", ["graph", "ranking", "rankings", "estimate"])
def test_repr_is_a_table(outputs, name):
    (shown,) = outputs[name]
    assert "<table>" in shown["data"]["text/html"]
    assert "object at 0x" not in shown["data"]["text/plain"]
    assert len(shown["data"]["text/plain"].splitlines()) < 20


@pytest.mark.parametrize("name", ["plot", "plot of seeds", "inline"])
def test_plot_is_displayed_once(outputs, name):
    images = [shown for shown in outputs[name] if "image/png" in shown.get("data", {})]
    assert len(images) == 1
    assert images[0]["data"]["image/png"].startswith("iVBOR")  # the first bytes of every PNG


@pytest.mark.parametrize("name", ["explain", "explain seeds"])
def test_explanation_is_one_output(outputs, name):
    (output,) = outputs[name]
    assert "300 vertices" in output["data"]["text/html"]
    assert "iterations" in output["data"]["text/plain"]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output["data"]["text/plain"])
    assert max(len(line) for line in plain.splitlines()) <= 100


def test_explanation_to_a_file_has_no_output(outputs):
    assert outputs["explain to a file"] == []


def test_progress_is_a_bar(outputs):
    bar, result = outputs["progress"]
    assert result["data"]["text/plain"] == "20000"
    assert "iteration 20000, error at most" in bar["data"]["text/plain"]
    assert "iteration 20000" in bar["data"]["text/html"]


def test_fast_rankings_show_no_bar(outputs):
    assert outputs["no progress"] == []
