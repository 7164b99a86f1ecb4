"""A method is one module: in a copy of the package, with a line of the table, or of another distribution."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from subprocesses import run_python

import prplugin
from prplugin.methods import registry

ROOT = Path(__file__).parents[2]

TOY = '''"""Pull in NumPy, by another name."""

import os

from prplugin.methods import numpy

name = "{name}"
runs_on = "cpu"
memory = numpy.memory


def unavailable_reason(adjacency, machine):
    return os.environ.get("REASON")


def cost(adjacency, machine):
    return float(os.environ.get("COST", "1e-12"))


def prepare(problem, machine, *, loops: int = 1):
    """Do as numpy does.

    Parameters
    ----------
    loops : int, default 1
        Number of loops.
    """
    return numpy.prepare(problem, machine)
'''

WRONG = '''"""Rank with a smaller alpha than it is told."""

from prplugin.methods import numpy

name = "wrong"
runs_on = "cpu"
memory = numpy.memory
unavailable_reason = numpy.unavailable_reason


def prepare(problem, machine):
    return numpy.prepare(problem._replace(alpha=0.999 * problem.alpha), machine)
'''

OF_GUIDE = re.search(
    r'^```python title="my_package/my_method.py"\n(.*?)^```$',
    (ROOT / "CONTRIBUTING.md").read_text(),
    re.DOTALL | re.MULTILINE,
).group(1)
"""The method that CONTRIBUTING.md shows."""

ENTRY_POINTS = """[prplugin.methods]
of-another = another_distribution
native = another_distribution
broken = no_such_module
empty = no_method

[prplugin.methods.named]
wrong = wrong_method
my-method = my_method
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a copy of the package, a method added to it, and the methods of another distribution."""
    folder = tmp_path_factory.mktemp("methods")
    shutil.copytree(Path(prplugin.__file__).parent, folder / "prplugin", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "prplugin" / "methods" / "in_the_package.py").write_text(
        TOY.format(name="in-the-package"), newline="\r\n"
    )
    table = folder / "prplugin" / "methods" / "registry.py"
    row = '"in-the-package": ("prplugin.methods.in_the_package", "cpu", False),'
    table.write_text(table.read_text().replace("BUILT_IN = {", f"BUILT_IN = {{{row}"))
    (folder / "another_distribution.py").write_text(TOY.format(name="of-another"))
    (folder / "wrong_method.py").write_text(WRONG)
    (folder / "my_method.py").write_text(OF_GUIDE)
    (folder / "no_method.py").write_text('name, runs_on = "empty", "cpu"\n')
    metadata = folder / "another-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


CODE = """
import json, os, sys, warnings
import pandas as pd
import prplugin
from click.testing import CliRunner
from prplugin.cli import main
from prplugin.methods import registry

edges = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]})


def imported():
    return [name for name in ("another_distribution", "wrong_method", "no_method") if name in sys.modules]


prplugin.Graph(edges).rank(method="native", threads=1)
by_name = imported()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    prplugin.Graph(edges).rank()
by_auto = imported()
warnings.simplefilter("ignore")


def shown(*arguments):
    return CliRunner().invoke(main, ["methods", *arguments], catch_exceptions=False).stdout


def message(**options):
    try:
        graph.rank(**options)
    except prplugin.PageRankError as error:
        return str(error)


def reasons():
    return {one.method: one.reason for one in graph.rank()._history.considered}


graph = prplugin.Graph(edges)
found = {
    "known": [*registry.methods()],
    "imported": [by_name, by_auto],
    "warnings": [str(each.message) for each in caught],
    "listed": json.loads(shown("--json")),
    "shown": {name: shown("--method", name) for name in ("in-the-package", "of-another")},
    "ranks": {name: graph.rank(method=name).ranks.tolist() for name in ("in-the-package", "of-another", "numpy")},
    "with loops": {name: graph.rank(method=name, loops=2).method for name in ("in-the-package", "of-another")},
    "cheap": [graph.rank().method, graph.rank(loops=2).method, graph.estimate().chosen.method],
    "misspelled": message(loop=2),
    "of others": message(method="native", loops=2),
    "unusable": [message(method="broken"), message(method="empty")],
}
os.environ["COST"] = "1000"
graph = prplugin.Graph(edges)  # a graph keeps the method that was chosen
found |= {"dear": [graph.rank().method, graph.rank(loops=2).method], "dear reasons": reasons()}
del os.environ["COST"]
os.environ["REASON"] = "it needs a toy box"
graph = prplugin.Graph(edges)
found |= {"absent reasons": reasons(), "absent": message(method="of-another")}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(folder):
    """Return what a process that has the methods found on a graph."""
    return json.loads(run_python("-c", CODE, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}))


@pytest.mark.parametrize("name", ["in-the-package", "of-another"])
def test_a_new_method_ranks_by_name(found, name):
    assert found["ranks"][name] == found["ranks"]["numpy"]
    assert found["with loops"][name] == name


def test_auto_chooses_a_new_method_of_least_cost(found):
    assert found["cheap"] == ["in-the-package"] * 3
    assert found["dear"] == ["native", "in-the-package"]


def test_the_reasons_against_a_new_method_are_true(found):
    dear, absent = found["dear reasons"], found["absent reasons"]
    assert dear["native"] == "the least estimate"
    assert dear["in-the-package"] == dear["of-another"] == "a higher estimate"
    assert absent["in-the-package"] == absent["of-another"] == "it needs a toy box"
    assert "method 'of-another' cannot run here: it needs a toy box" in found["absent"]


def test_options_of_a_new_method_are_checked_and_suggested(found):
    assert "Did you mean loops=?" in found["misspelled"]
    assert "'loops' is an option of other methods: method 'native' takes threads" in found["of others"]


def test_the_command_documents_new_methods(found):
    listed = {entry["name"]: entry for entry in found["listed"]}
    for name in ("in-the-package", "of-another"):
        assert listed[name]["summary"] == "Pull in NumPy, by another name."
        assert listed[name]["options"] == ["loops"]
        assert "Number of loops." in found["shown"][name]


def test_methods_of_other_distributions_are_imported_when_named_or_for_their_cost(found):
    by_name, by_auto = found["imported"]
    assert by_name == []
    assert by_auto == ["another_distribution", "no_method"]
    assert found["dear reasons"]["wrong"] == "its package declares that it is chosen only by name"


def test_what_is_no_method_is_named_in_a_warning_and_cannot_run(found):
    reasons = (
        "no_such_module, of another package, cannot be used: No module named 'no_such_module'",
        "no_method, of another package, cannot be used: it has no memory, prepare, unavailable_reason",
    )
    assert found["warnings"] == [
        f"method {name!r}: {reason}" for name, reason in zip(("broken", "empty"), reasons, strict=True)
    ]
    for name, reason, message in zip(("broken", "empty"), reasons, found["unusable"], strict=True):
        assert message == f"method {name!r} cannot run here: {reason}"
        assert found["dear reasons"][name] == reason
    assert {"native", "wrong"} <= set(found["known"])


def test_the_table_lists_the_modules_that_declare_a_processor():
    declared = {}
    for package in ("prplugin.methods", "prplugin.papers"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            method = importlib.import_module(module.name)
            if hasattr(method, "runs_on"):
                varies = getattr(method, "nondeterministic", False)
                declared[method.name] = module.name, method.runs_on, varies
    assert declared == registry.BUILT_IN


def test_folders_that_cannot_be_listed_have_no_methods(tmp_path, monkeypatch):
    def scandir(path):
        raise PermissionError(path)

    monkeypatch.setattr("os.scandir", scandir)
    registry.methods.cache_clear()
    try:
        assert "native" in registry.methods()
    finally:
        registry.methods.cache_clear()


def test_the_suite_over_all_methods_tests_new_methods_and_finds_a_wrong_one(folder):
    path = f"pythonpath={folder} {ROOT / 'tests' / 'helpers'} {ROOT}"
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--import-mode=append", "-o", path,
            "-k", "every_tolerance and (in-the-package or of-another or my-method or (wrong and hub))", "--tb=line",
            "-c", ROOT / "pyproject.toml",
            ROOT / "tests" / "solver" / "test_accuracy.py",
        ],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    failed, passed = re.search(r"(\d+) failed, (\d+) passed", done.stdout).groups()
    assert int(passed) == 24
    assert int(failed) == len(re.findall(r"^FAILED [^]]*hub[^]]*wrong\]", done.stdout, re.MULTILINE)) == 2
    assert int(failed) == len(re.findall(r"test_accuracy\.py:\d+: assert .* <= Fraction", done.stdout)), done.stdout
