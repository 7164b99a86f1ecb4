"""The import rule: a package imports only from layers below its own, and not from other packages of its layer."""

from __future__ import annotations

import ast
import graphlib
import inspect
import re
from pathlib import Path

import pytest
from subprocesses import run_python

from prplugin.frames import FIRST_ADAPTERS, LAST_ADAPTERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "prplugin"

TABLE = re.findall(r"^\| (`.*?`) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
"""First cells of the only table of CONTRIBUTING.md: the packages of each layer, from the top."""

LAYER = {name: layer for layer, cell in enumerate(TABLE) for name in re.findall("`(.+?)`", cell)}

MAX_LINES = {"api.py": 360}
"""Lines that a module may have, if not 450: the public functions only read, choose, solve and write."""

MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(PACKAGE)) for path in MODULES]


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(root: Path) -> dict[str, set[str]]:
    """Return the modules of a package that each module of it imports, lazy and type-only imports included."""
    trees = {module_of(path, root): ast.parse(path.read_text()) for path in root.rglob("*.py")}
    imports = {}
    for module, tree in trees.items():
        names = []
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{root.name}.{module} has a relative import"
                names += [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
        inner = [name.partition(".")[2] for name in names if name.split(".")[0] == root.name]
        imports[module] = {name if name in trees else name.rpartition(".")[0] for name in inner}
    return imports


IMPORTS = imports_of(PACKAGE)


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_packages_import_only_from_layers_below_their_own(path):
    importing = package_of(path)
    assert importing in LAYER, f"prplugin/{importing} is in no layer: add it to the table of CONTRIBUTING.md"
    for module in IMPORTS[module_of(path, PACKAGE)]:
        imported = module.split(".")[0] or "__init__"
        if imported == importing:
            continue
        which = "a layer above" if LAYER[imported] < LAYER[importing] else "the same layer"
        assert LAYER[imported] > LAYER[importing], f"{NAMES[MODULES.index(path)]} imports {module}, from {which}"


def test_contributing_lists_no_other_packages():
    assert set(LAYER) == {package_of(path) for path in MODULES}


@pytest.mark.parametrize("package", ["prplugin", "conformance", "benchmarks"])
def test_modules_have_no_import_cycles(package):
    graphlib.TopologicalSorter(imports_of(ROOT / package)).prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_modules_are_short(path):
    assert len(path.read_text().splitlines()) <= MAX_LINES.get(str(path.relative_to(PACKAGE)), 450)


def test_adapters_are_short():
    for adapter in (*FIRST_ADAPTERS, *LAST_ADAPTERS):
        path = inspect.getfile(adapter if inspect.ismodule(adapter) else type(adapter))
        assert len(Path(path).read_text().splitlines()) <= 150, path


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


@pytest.mark.parametrize("first", [True, False], ids=["prplugin first", "libraries first"])
def test_the_order_of_imports_does_not_matter(first):
    types = [
        "pandas.DataFrame",
        "polars.DataFrame",
        "polars.LazyFrame",
        "duckdb.DuckDBPyRelation",
        "dask.dataframe.DataFrame",
    ]
    libraries = list(dict.fromkeys(name.rpartition(".")[0] for name in types))
    for library in libraries:
        pytest.importorskip(library)
    order = ["prplugin", *libraries] if first else [*libraries, "prplugin"]
    found = ", ".join(f"{name}.pagerank is prplugin.pagerank" for name in types)
    assert run_python("-c", f"import {', '.join(order)}\nprint(all([{found}]))") == "True"


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


TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_tests_import_no_other_test_and_lie_in_the_folder_of_a_package(path):
    """Check that no test imports another test: shared code is in tests/helpers."""
    assert not re.search(r"^\s*(from|import) (tests|test_\w+)\b", path.read_text(), re.MULTILINE)
    assert path.parent.name in {*LAYER, "harness"}
