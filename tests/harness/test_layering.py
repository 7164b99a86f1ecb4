"""The import rule: a package imports only from layers below its own, and not from other packages of its layer."""

from __future__ import annotations

import graphlib
import importlib.util
import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from sources import imported_names, module_name
from subprocesses import run_python

from prplugin.frames import FIRST_ADAPTERS, LAST_ADAPTERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "prplugin"

TABLE = re.findall(r"^\| (`.*?`) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
"""First cells of the only table of CONTRIBUTING.md: the packages of each layer, from the top."""

LAYER = {name: layer for layer, cell in enumerate(TABLE) for name in re.findall("`(.+?)`", cell)}

MAX_LINES = {"api.py": 440, "result/ranking.py": 520}
"""Lines that a module may have, if not 500: the public functions only read, choose, solve and write."""


def package_of(module: str) -> str:
    return module.partition(".")[0] or "__init__"


@cache
def imports_of(root: Path) -> dict[str, list[str]]:
    """Return the dotted names that each module of a package imports."""
    return {module_name(path, root): imported_names(path.read_text()) for path in root.rglob("*.py")}


def inner_imports(root: Path) -> dict[str, set[str]]:
    """Return the modules of a package that each module of it imports."""
    imports = imports_of(root)
    inner = {
        module: [name.partition(".")[2] for name in names if name.split(".")[0] == root.name]
        for module, names in imports.items()
    }
    return {
        module: {name if name in imports else name.rpartition(".")[0] for name in names}
        for module, names in inner.items()
    }


def test_packages_import_only_from_layers_below_their_own():
    imports = inner_imports(PACKAGE)
    assert set(LAYER) == set(map(package_of, imports)), "the table of CONTRIBUTING.md lists all packages, and no others"
    wrong = [
        f"{importing} imports {imported}, which is not in a layer below"
        for importing, modules in imports.items()
        for imported in modules
        if package_of(imported) != package_of(importing) and LAYER[package_of(imported)] <= LAYER[package_of(importing)]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ["prplugin", "conformance", "benchmarks"])
def test_modules_have_no_import_cycles(package):
    graphlib.TopologicalSorter(inner_imports(ROOT / package)).prepare()  # raises CycleError, which names the modules


def test_modules_are_short():
    lines = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > MAX_LINES.get(name, 500)} == {}


def test_adapters_are_short():
    for adapter in (*FIRST_ADAPTERS, *LAST_ADAPTERS):
        path = inspect.getfile(adapter if inspect.ismodule(adapter) else type(adapter))
        assert len(Path(path).read_text().splitlines()) <= 150, path


def test_dataframe_libraries_are_imported_only_in_frames_io_and_cli():
    libraries = {"pandas", "pyarrow", "cudf", "polars", "dask", "narwhals", "duckdb", "scipy", "cugraph"}
    found = {
        (module, name.split(".")[0])
        for module, names in imports_of(PACKAGE).items()
        for name in names
        if package_of(module) not in {"frames", "io", "cli"} and name.split(".")[0] in libraries
    }
    assert found == {("solver.acceleration.direct", "scipy")}  # lazily


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
        "edges = pandas.DataFrame({'src': [1, 2], 'dst': [2, 1]})\n"
        "edges.pagerank()\n"
        "prplugin.Graph(edges).rank(progress=lambda state: None)\n"
        "names = 'scipy', 'rich', 'prplugin.papers', 'prplugin.methods.streamed', 'importlib.metadata'\n"
        "gpu = 'cupy', 'cudf', 'rmm', 'cugraph'\n"
        "print([name for name in (*names, *gpu) if name in sys.modules])"
    )
    assert run_python("-c", code) == "[]"


@pytest.mark.parametrize("first", [True, False], ids=["prplugin first", "libraries first"])
def test_the_order_of_imports_does_not_matter(first):
    types = ["pandas.DataFrame", "polars.DataFrame", "polars.LazyFrame", "dask.dataframe.DataFrame"]
    if importlib.util.find_spec("duckdb"):  # which no extra installs
        types.append("duckdb.DuckDBPyRelation")
    libraries = list(dict.fromkeys(name.rpartition(".")[0] for name in types))
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


def test_tests_import_no_other_test_and_lie_in_the_folder_of_a_package():
    """Check that no test imports another test: shared code is in tests/helpers."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        assert not re.search(r"^\s*(from|import) (tests(?!\.mutate\b)|test_\w+)\b", path.read_text(), re.MULTILINE), (
            path
        )
        assert path.parent.name in {*LAYER, "harness"}, path
