"""The direction of imports: api -> frames -> graph, api -> methods -> graph, and nothing upward."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "prplugin"

LAYERS = [
    {"errors", "machine", "threads"},
    {"cuda", "options", "graph"},
    {"order", "history"},
    {"explain", "plot"},
    {"problem", "certificate", "frames", "ranking", "progress"},
    {"methods", "io"},
    {"extrapolate"},
    {"iterate"},
    {"measure", "estimates", "batch"},
    {"cluster"},
    {"api", "accessor"},
    {"__init__"},
    {"verify", "demo", "networkx"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# `graph.pairs` takes the names of the choices from `options`; both stand on the ground floor otherwise.
# The place of an array, which `cuda` allocates for, is a name of `graph`, and graphs are built by kernels.
# A method that iterates by itself weighs its iterates as the loop does, by a function of a few numbers.
ALLOWED_SIDEWAYS = {
    ("graph", "options"),
    ("graph", "cuda"),
    ("methods", "extrapolate"),
    ("cuda", "graph"),
    ("frames", "certificate"),
}


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def runtime_imports(tree: ast.Module) -> set[str]:
    """Modules of the package that are imported other than for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "prplugin":
            inner = node.module.split(".")[1:]
            found |= {inner[0]} if inner else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("prplugin.")}
            found |= {"__init__" for alias in node.names if alias.name == "prplugin"}
    return {name if name in LEVEL else "__init__" for name in found}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    here = part(path)
    assert here in LEVEL, f"{here} has no place in the house: give it one"
    for target in runtime_imports(ast.parse(path.read_text())) - {here}:
        down = LEVEL[target] < LEVEL[here]
        assert down or (here, target) in ALLOWED_SIDEWAYS, f"{here} imports {target}"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_dataframe_libraries_stay_in_frames_and_the_command_line(path):
    if part(path) in {"frames", "io", "verify", "demo", "cli"}:
        return
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not imported & {"pandas", "pyarrow", "cudf", "polars", "dask", "narwhals", "duckdb", "scipy", "cugraph"}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_prplugin_imports_no_library_that_the_user_has_not():
    heavy = [
        "pandas",
        "numba",
        "scipy",
        "cupy",
        "cudf",
        "cugraph",
        "pyarrow",
        "rich",
        "click",
        "networkx",
        "narwhals",
        "polars",
        "duckdb",
        "matplotlib",
        "dask",
        "distributed",
    ]
    assert run(f"import prplugin, sys; print([name for name in {heavy} if name in sys.modules])").strip() == "[]"


def test_a_small_frame_needs_no_compiler():
    code = (
        "import pandas, prplugin, sys\n"
        "pandas.DataFrame({'src': [1, 2], 'dst': [2, 1]}).pagerank()\n"
        "print([name for name in ('numba', 'llvmlite', 'scipy', 'rich') if name in sys.modules])"
    )
    assert run(code).strip() == "[]"


@pytest.mark.parametrize("order", ["import pandas, prplugin", "import prplugin, pandas"])
def test_the_order_of_imports_does_not_matter(order):
    assert run(f"{order}\nprint(pandas.DataFrame.pagerank is prplugin.pagerank)").strip() == "True"
