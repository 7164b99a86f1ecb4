"""Extras in pyproject.toml include the distributions that their users import."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
from code_blocks import ROOT, tutorial_cells
from sources import imported_names

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HELPERS = {path.stem for path in (ROOT / "tests" / "helpers").glob("*.py")}
OWN = {"prplugin", "benchmarks", "conformance", "tests", "_prplugin_networkx", *HELPERS}
DISTRIBUTIONS = {
    "mkdocs": "mkdocs-material",
    "graphblas": "python-graphblas",
    "sknetwork": "scikit-network",
    "IPython": "ipykernel",
}
RAPIDS = {"cupy", "cupyx", "cudf", "pylibcudf", "rmm", "cugraph", "dask_cuda", "dask_cudf", "cuda", "pynvml", "nccl"}


def requirements(extra):
    """Return the names of the distributions that an extra requires, including those of nested extras."""
    found = set()
    listed = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    for requirement in listed:
        name, inner = re.match(r"([\w-]+)(?:\[([\w,-]+)\])?", requirement).groups()
        if name == "prplugin":
            found = found.union(*(requirements(one) for one in inner.split(",")))
        else:
            found.add(name.lower())
    return found


def imported(sources):
    """Return the distributions of the modules that sources import, except RAPIDS and this repository."""
    names = {name.partition(".")[0] for source in sources for name in imported_names(source)}
    return {DISTRIBUTIONS.get(name, name).lower() for name in names - sys.stdlib_module_names - OWN - RAPIDS}


@pytest.mark.parametrize(
    ("extra", "patterns"),
    [
        ("benchmarks", ["benchmarks/**/*.py"]),
        ("conformance", ["conformance/**/*.py"]),
        ("docs", ["docs/*.py", "docs/pictures/*.py"]),
        ("networkx", ["prplugin/integrations/networkx.py", "prplugin/solver/acceleration/direct.py"]),
        ("plot", ["prplugin/result/plot.py"]),
        ("dask", ["prplugin/distributed/*.py"]),
    ],
)
def test_extras_include_what_is_imported(extra, patterns):
    sources = [path.read_text() for pattern in patterns for path in ROOT.glob(pattern)]
    needed = imported([*sources, *(tutorial_cells() if extra == "docs" else [])])
    assert needed
    assert needed <= requirements(extra) | requirements(None)


def test_documented_extras_exist():
    named = re.findall(
        r"'\.\[([\w,]+)\]'", (ROOT / "README.md").read_text() + (ROOT / "docs/guide/install.md").read_text()
    )
    assert len(named) > 6
    for extra in {extra for names in named for extra in names.split(",")}:
        assert extra in PROJECT["optional-dependencies"]


@pytest.mark.parametrize("command", ["benchmarks", "conformance"])
def test_missing_extra_is_reported_in_one_line(command):
    hidden = (
        "import runpy, sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('networkx', 'matplotlib', 'scipy'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        f"sys.argv = ['{command}', '--help']\n"
        f"runpy.run_module('{command}', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"pip install -e '.[{command}]'" in done.stderr
