"""README and docs/: examples and commands run, CI runs the commands that tests do not, links and tables are complete."""

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
from click.testing import CliRunner
from code_blocks import PAGES, ROOT, SHELL, blocks_of, skip_reason

import prplugin
from prplugin import cli

README = (ROOT / "README.md").read_text()

SELF_CONTAINED = [page for page in PAGES if page == "README.md" or page.startswith("docs/guide/")]
"""Pages whose examples need only the blocks above them; a text block is the output of the block above it."""

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
MARKED = [block for block in BLOCKS if block.mark and not (block.page in SELF_CONTAINED and block.language == "python")]
COMMANDS = [block for block in BLOCKS if block.language == "sh" and not block.mark]


def block_params(blocks):
    return [pytest.param(block, id=f"{block.page}:{block.line}") for block in blocks]


def example_namespace(folder):
    """Return the names that examples use without defining them; files that they read are written to the folder."""
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


def run_python_blocks(blocks, folder):
    """Run blocks in order, in one namespace to which `example_namespace` is added again before each block."""
    namespace = {}
    for block in blocks:
        namespace |= example_namespace(folder)
        if block.mark == "needs cugraph":
            import cudf
            import cugraph

            namespace["G"] = cugraph.MultiGraph(directed=True)
            namespace["G"].from_cudf_edgelist(cudf.from_pandas(namespace["edges"]), "src", "dst")
        exec(compile(block.code, f"{block.page}:{block.line}", "exec"), namespace)


RECORD = r"""prplugin() { printf '%s\0' "$@" $'\n' >> "$CALLS"; }"""
"""A shell function in place of the command, which appends its arguments to a file."""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Return a function that runs shell commands in a folder with the files that examples read.

    What the shell makes of calls of `prplugin` is run in this process afterwards: each process of its own would take a
    second to import pandas. Blocks with a pipe run as they are.
    """
    edges = example_namespace(tmp_path)["edges"]
    edges.to_csv(tmp_path / "edges.csv.gz", index=False)
    edges.to_parquet(tmp_path / "new.parquet")

    def run(commands):
        calls = tmp_path / "calls"
        recorded = RECORD if "|" not in commands else ""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{recorded}\n{commands}"],
            cwd=tmp_path, env=SHELL | {"CALLS": str(calls)}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        monkeypatch.chdir(tmp_path)
        for call in calls.read_text().split("\n\0")[:-1] if calls.exists() else []:
            called = CliRunner().invoke(cli.main, call.split("\0")[:-1])
            assert called.exit_code == 0, (call, called.output)

    return run


def run_as_pasted(block, namespace):
    """Run a block as an interactive interpreter does, and return its output."""
    output = io.StringIO()
    tree = ast.parse(block.code)
    with contextlib.redirect_stdout(output):
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{block.page}:{block.line}", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"{block.page}:{block.line}", "eval"), namespace)
            print(value if value is not None else "")
    return output.getvalue()


@pytest.mark.parametrize("page", SELF_CONTAINED)
def test_examples_of_self_contained_pages_run_as_pasted(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, output = {}, ""
    for block in (block for block in BLOCKS if block.page == page and block.language in ("python", "text")):
        if block.language == "text":
            assert block.code.strip() == output.strip(), f"{page}:{block.line}: not the output of the block above"
        elif not block.mark or skip_reason(block) is None:
            output = run_as_pasted(block, namespace)


@pytest.mark.parametrize("page", sorted({*PAGES} - {*SELF_CONTAINED}))
def test_examples_of_other_pages_run(page, tmp_path):
    run_python_blocks(
        [block for block in BLOCKS if block.page == page and block.language == "python" and not block.mark], tmp_path
    )


@pytest.mark.parametrize("block", block_params(COMMANDS))
def test_commands_run(block, shell):
    shell(block.code)


@pytest.mark.parametrize("block", block_params(MARKED))
def test_marked_blocks_run_if_their_requirements_are_met(block, shell, tmp_path):
    if reason := skip_reason(block):
        pytest.skip(reason)
    if block.language == "sh":
        shell(block.code)
    else:
        run_python_blocks([block], tmp_path)


def test_tweetrank_example_runs(capsys):
    namespace = {}
    for block in blocks_of("docs/tweetrank.md"):
        exec(block.code, namespace)
    assert namespace["ranking"].converged
    assert "cat" in capsys.readouterr().out


def test_ci_runs_the_commands_marked_for_it():
    scripts = "".join((ROOT / ".ci" / name).read_text() for name in ("run", "package"))
    blocks = [block for block in MARKED if block.mark == "run in CI"]
    assert any("pytest" in block.code for block in blocks)
    for block in blocks:
        assert block.code in scripts, block


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *PAGES])
def test_links_to_files_exist(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)#]+)", text):
        if not link.startswith("http"):
            assert ((ROOT / page).parent / link.replace("\n", "")).exists(), link
