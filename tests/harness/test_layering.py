"""The import rule: a package imports only from lines below its own; packages on one line do not import one another."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "prplugin"

LINES = [
    {"__main__"},
    {"cli", "integrations"},
    {"__init__"},
    {"accessor"},
    {"api"},
    {"constructors", "sizing"},
    {"prepared", "calls"},
    {"local", "distributed", "io"},
    {"changing"},
    {"frames", "solver", "result"},
    {"methods"},
    {"graph"},
    {"cpu", "gpu"},
    {"numerics"},
    {"types"},
    {"options", "progress", "machine", "tables"},
    {"errors", "suggestions"},
]
LINE = {name: line for line, names in enumerate(LINES) for name in names}

MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(PACKAGE)) for path in MODULES]


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported_modules(path: Path) -> set[str]:
    """Return the modules of the package that a module imports at run time, lazy imports included."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    known = {module_of(module) for module in MODULES}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "prplugin":
            inner = node.module.partition(".")[2]
            for alias in node.names:
                full = f"{inner}.{alias.name}".lstrip(".")
                found.add(full if full in known else inner)
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == "prplugin"}
    return found


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_a_package_imports_only_from_lines_below_its_own(path):
    here = package_of(path)
    assert here in LINE, f"prplugin/{here} is on no line of the import rule: give it one"
    for module in imported_modules(path):
        there = module.split(".")[0] or "__init__"
        if there == here:
            continue
        where = "above its own" if LINE[there] < LINE[here] else "beside its own"
        assert LINE[there] > LINE[here], f"{NAMES[MODULES.index(path)]} imports {module}, from a line {where}"


def test_no_module_imports_itself_through_others():
    imports = {module_of(path): imported_modules(path) for path in MODULES}
    done: set[str] = set()

    def visit(module: str, trail: list[str]) -> None:
        assert module not in trail, "modules import each other in a cycle: " + " -> ".join([*trail, module])
        if module not in done:
            for other in sorted(imports[module]):
                visit(other, [*trail, module])
            done.add(module)

    for module in imports:
        visit(module, [])


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_dataframe_libraries_stay_in_frames_and_the_command_line(path):
    """SciPy may be imported lazily in solver/slow.py, too."""
    if package_of(path) in {"frames", "io", "cli"}:
        return
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    if NAMES[MODULES.index(path)] == "solver/slow.py":
        imported.discard("scipy")
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
        "igraph",
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
