"""What the README and the pages of docs/ say is so: code runs, commands are those of CI, the table lists the methods."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import subprocess

import networkx
import pandas as pd
import pytest
import scipy.sparse
from documents import PAGES, ROOT, SHELL, blocks_of, why_not

import prplugin
from prplugin.methods.registry import methods

README = (ROOT / "README.md").read_text()

SELF_CONTAINED = [page for page in PAGES if page == "README.md" or page.startswith("docs/guide/")]
"""Pages whose examples need nothing but the blocks before; a block of text is what the block above it shows."""

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
MARKED = [block for block in BLOCKS if block.mark and not (block.page in SELF_CONTAINED and block.language == "python")]
COMMANDS = [block for block in BLOCKS if block.language == "sh" and not block.mark]


def named(blocks):
    return [pytest.param(block, id=f"{block.page}:{block.line}") for block in blocks]


def names(folder):
    """What the examples take for granted, each in its library."""
    edges = pd.DataFrame(
        {
            "src": ["ann", "bob"], "dst": ["bob", "cat"], "from": ["ann", "bob"], "to": ["bob", "cat"], "clicks": [1, 2],
            "bank": [1, 1], "account": [2, 3], "to_bank": [1, 2], "to_account": [3, 3], "w": [1.0, 2.0], "weight": [1, 2],
        }
    )  # fmt: skip
    matrix = scipy.sparse.eye_array(3, format="csr")
    edges.to_parquet(folder / "edges.parquet")
    return {
        "alpha": 0.85,
        "tol": 1e-6,
        "edges": edges,
        "prplugin": prplugin,
        "matrix": matrix,
        "offsets": matrix.indptr,
        "indices": matrix.indices,
        "weights": matrix.data,
        "G": networkx.DiGraph([("ann", "bob")]),
        "seeds": pd.DataFrame({"vertex": ["ann"], "values": [1.0]}),
        "guess": pd.DataFrame({"vertex": ["bob", "ann"], "values": [1.0, 2.0]}),
    }


def run_python(blocks, folder):
    """Run blocks one after the other; each knows what those before it made, and what examples take for granted."""
    known = {}
    for block in blocks:
        exec(compile(block.code, f"{block.page}:{block.line}", "exec"), known := {**known, **names(folder)})


@pytest.fixture
def shell(tmp_path):
    """Give a function that runs commands in a folder with the files that examples read."""
    edges = names(tmp_path)["edges"]
    edges.to_csv(tmp_path / "edges.csv.gz", index=False)

    def run(commands):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=tmp_path, env=SHELL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def run_as_pasted(block, known):
    """Run a block as an interpreter does, and return what it shows."""
    shown = io.StringIO()
    tree = ast.parse(block.code)
    with contextlib.redirect_stdout(shown):
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{block.page}:{block.line}", "exec"), known)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"{block.page}:{block.line}", "eval"), known)
            print(value if value is not None else "")
    return shown.getvalue()


@pytest.mark.parametrize("page", SELF_CONTAINED)
def test_the_examples_of_a_page_can_be_pasted(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known, shown = {}, ""
    for block in (block for block in BLOCKS if block.page == page and block.language in ("python", "text")):
        if block.language == "text":
            assert block.code.strip() == shown.strip(), f"{page}:{block.line}: this is not what the block above shows"
        elif not block.mark or why_not(block) is None:
            shown = run_as_pasted(block, known)


@pytest.mark.parametrize("page", sorted({*PAGES} - {*SELF_CONTAINED}))
def test_the_examples_of_a_page_run(page, tmp_path):
    run_python(
        [block for block in BLOCKS if block.page == page and block.language == "python" and not block.mark], tmp_path
    )


@pytest.mark.parametrize("block", named(COMMANDS))
def test_commands_run(block, shell):
    shell(block.code)


@pytest.mark.parametrize("block", named(MARKED))
def test_marked_blocks_run_where_they_can(block, shell, tmp_path):
    if reason := why_not(block):
        pytest.skip(reason)
    if block.language == "sh":
        shell(block.code)
    else:
        run_python([block], tmp_path)


def test_tweetrank_runs(capsys):
    names = {}
    for block in blocks_of("docs/tweetrank.md"):
        exec(block.code, names)
    assert names["ranking"].converged
    assert "cat" in capsys.readouterr().out


def test_ci_runs_the_commands_that_the_readme_leaves_to_it():
    scripts = "".join((ROOT / ".ci" / name).read_text() for name in ("run", "package"))
    left = [block for block in MARKED if block.mark == "run in CI"]
    assert any("pytest" in block.code for block in left)
    for block in left:
        assert block.code in scripts, block


def test_the_table_lists_every_method():
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs/methods.md").read_text(), re.MULTILINE)) == sorted(
        methods()
    )


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *PAGES])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)#]+)", text):
        if not link.startswith("http"):
            assert ((ROOT / page).parent / link.replace("\n", "")).exists(), link
