"""The import rule: a package imports only from layers below its own, and not from other packages of its layer."""

from __future__ import annotations

import ast
import graphlib
import re
from pathlib import Path

import pytest
from subprocesses import run_python

PACKAGE = Path(__file__).parents[2] / "prplugin"

LAYERS = [
    {"__main__"},
    {"cli", "integrations"},
    {"__init__"},
    {"accessor"},
    {"api"},
    {"constructors", "sizing"},
    {"saving"},
    {"local", "distributed", "io"},
    {"streams"},
    {"frames", "solver", "result"},
    {"calls", "papers"},
    {"methods"},
    {"graph"},
    {"cpu", "gpu"},
    {"numerics"},
    {"types"},
    {"folders", "progress"},
    {"access", "options", "machine", "tables"},
    {"errors", "suggestions"},
]
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}

MAX_LINES = {"api.py": 350}
"""Lines that a module may have, if not 450: the public functions only read, choose, solve and write."""

MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(PACKAGE)) for path in MODULES]


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported_modules(path: Path) -> set[str]:
    """Return the modules of the package that a module imports, lazy and type-only imports included."""
    tree = ast.parse(path.read_text())
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
def test_packages_import_only_from_layers_below_their_own(path):
    importing = package_of(path)
    assert importing in LAYER, f"prplugin/{importing} is in no layer: add it to LAYERS"
    for module in imported_modules(path):
        imported = module.split(".")[0] or "__init__"
        if imported == importing:
            continue
        which = "a layer above" if LAYER[imported] < LAYER[importing] else "the same layer"
        assert LAYER[imported] > LAYER[importing], f"{NAMES[MODULES.index(path)]} imports {module}, from {which}"


def test_contributing_lists_the_layers():
    lines = re.findall(r"^\| (`.*?`) \|", (PACKAGE.parent / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert [set(re.findall("`(.+?)`", line)) for line in lines[: len(LAYERS)]] == LAYERS


def test_conformance_has_no_import_cycles():
    paths = {path.stem: path.read_text() for path in (PACKAGE.parent / "conformance").glob("*.py")}
    imports = {
        name: {
            imported
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "conformance"
            for imported in ([node.module.split(".")[1]] if "." in node.module else [each.name for each in node.names])
        }
        for name, text in paths.items()
    }
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError


def test_modules_have_no_import_cycles():
    imports = {module_of(path): imported_modules(path) for path in MODULES}
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        assert module not in path, "modules import each other in a cycle: " + " -> ".join([*path, module])
        if module not in done:
            for other in sorted(imports[module]):
                visit(other, [*path, module])
            done.add(module)

    for module in imports:
        visit(module, [])


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_modules_are_short(path):
    assert len(path.read_text().splitlines()) <= MAX_LINES.get(str(path.relative_to(PACKAGE)), 450)


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_dataframe_libraries_are_imported_only_in_frames_io_and_cli(path):
    """solver/acceleration/direct.py may import SciPy, lazily."""
    if package_of(path) in {"frames", "io", "cli"}:
        return
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    if NAMES[MODULES.index(path)] == "solver/acceleration/direct.py":
        imported.discard("scipy")
    assert not imported & {"pandas", "pyarrow", "cudf", "polars", "dask", "narwhals", "duckdb", "scipy", "cugraph"}


def test_importing_prplugin_imports_no_optional_library():
    optional = [
        "pandas",
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
    code = f"import prplugin, sys; print([name for name in {optional} if name in sys.modules])"
    assert run_python("-c", code) == "[]"


def test_small_frames_import_no_libraries_they_do_not_use():
    code = (
        "import pandas, prplugin, sys\n"
        "pandas.DataFrame({'src': [1, 2], 'dst': [2, 1]}).pagerank()\n"
        "names = 'scipy', 'rich', 'prplugin.papers', 'prplugin.methods.streamed', 'importlib.metadata'\n"
        "print([name for name in names if name in sys.modules])"
    )
    assert run_python("-c", code) == "[]"


@pytest.mark.parametrize(
    ("library", "types"),
    [
        ("pandas", ["DataFrame"]),
        ("polars", ["DataFrame", "LazyFrame"]),
        ("duckdb", ["DuckDBPyRelation"]),
        ("dask.dataframe", ["DataFrame"]),
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["prplugin first", "library first"])
def test_the_order_of_imports_does_not_matter(library, types, first):
    pytest.importorskip(library)
    order = ["prplugin", library] if first else [library, "prplugin"]
    found = " and ".join(f"{library}.{name}.pagerank is prplugin.pagerank" for name in types)
    assert run_python("-c", f"import {', '.join(order)}\nprint({found})") == "True"


def test_a_loader_shared_by_modules_binds_to_the_named_one():
    code = """if True:
        import sys
        from importlib.machinery import ModuleSpec
        import prplugin

        class Loader:
            def find_spec(self, name, path=None, target=None):
                return ModuleSpec(name, self) if name in ("polars", "other") else None
            def create_module(self, spec):
                return None
            def exec_module(self, module):
                module.DataFrame = type("DataFrame", (), {})

        sys.meta_path.insert(1, Loader())
        import polars, other
        print(polars.DataFrame.pagerank is prplugin.pagerank, hasattr(other.DataFrame, "pagerank"))
    """
    assert run_python("-c", code) == "True False"
