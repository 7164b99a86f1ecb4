"""What the README says is so: its code runs, its commands are those of CI, its table lists the methods."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import prplugin
from prplugin.methods import methods

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_first_example_runs():
    names = {}
    exec(blocks("python")[0], names)
    assert names["ranks"]["vertex"].tolist() == ["ann", "bob", "cat"]
    assert names["ranks"]["pagerank"].sum() == pytest.approx(1)


def test_the_other_examples_run():
    edges = pd.DataFrame(
        {
            "src": ["ann", "bob"], "dst": ["bob", "cat"], "from": ["ann", "bob"], "to": ["bob", "cat"], "clicks": [1, 2],
            "bank": [1, 1], "account": [2, 3], "to_bank": [1, 2], "to_account": [3, 3],
        }
    )  # fmt: skip
    for block in blocks("python")[1:]:
        exec(block, {"edges": edges, "prplugin": prplugin})


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


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/semantics.md", "docs/cpu-split.md", "docs/tweetrank.md"]
)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)#]+)", text):
        if not link.startswith("http"):
            assert ((ROOT / page).parent / link.replace("\n", "")).exists(), link
