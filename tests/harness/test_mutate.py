"""Mutation tests of a package of two modules, one of which its tests defend."""

from __future__ import annotations

import pytest
from mutations import mutations

from tests.mutate import ROOT, calls_of_kernels, main

STEP = """\
def most(values, bound: int = 3):
    \"\"\"Return the largest value below a bound, plus the number of values.\"\"\"
    below = [value for value in values if value < bound]
    return max(below) + len(values)

def fast():
    return True

def twice(x):
    return x * 2
"""
UNTESTED = "def change(state, done):\n    state.done = done\n"
TEST = """\
import pytest

from prplugin.solver.step import fast, most, twice

@pytest.fixture(scope="module")
def four():
    return twice(2)

def test_that_makes_the_fixture(four):
    assert four

def test_that_finds_the_fixture(four):
    assert four == 4

def test_most():
    assert most([2, 3, 1]) == 5

def test_what_does_not_depend_on_the_result():
    fast()

def test_that_fails_without_a_mutation():
    assert False
"""


def test_survivors_are_those_that_no_test_notices(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # half of the time
    for name, text in {"step": STEP, "state": UNTESTED, "on_device": UNTESTED}.items():
        path = tmp_path / "prplugin" / "solver" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in ("prplugin", "prplugin/solver"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "tests" / "solver").mkdir(parents=True)
    (tmp_path / "tests" / "solver" / "test_step.py").write_text(TEST)
    (tmp_path / "tests" / "solver" / "test_absent.py").write_text("import absent\n")
    (tmp_path / "conformance").mkdir()
    reasons = tmp_path / "conformance" / "survivors.toml"
    reasons.write_text('["solver/state.py"]\n"state.done = done" = "nobody reads it"\n')
    page = tmp_path / "mutations.md"
    mutants = main(["--only", "solver", "--jobs", "2", "--output", str(page)], tmp_path)
    assert {(each.file.name, each.line, each.new) for each in mutants if each.result == "survived"} == {
        ("state.py", 2, "pass"),
        ("step.py", 7, "return False"),
    }
    assert {each.new for each in mutants if each.file.name == "step.py" and each.result == "killed"} == {
        "def most(values, bound: int = 4):",
        "below = [value for value in values if value <= bound]",
        "return min(below) + len(values)",
        "return max(below)",
        "return len(values)",
        "return x",
        "return x * 3",
    }
    text = page.read_text()
    assert "of 9 mutants 0 do not compile, 9 met tests, and 2 survived, 1 of them for a reason. No mutant" in text
    one, other = text.split("## Survivors with a reason")
    assert "| prplugin/solver/step.py:7 | negate a constant | ``return True`` | ``return False`` | 1 |  |" in one
    assert (
        "| prplugin/solver/state.py:2 | skip a statement | ``state.done = done`` | ``pass`` | 0 | nobody reads it |"
        in other
    )
    assert "- ``tests/solver/test_step.py::test_that_fails_without_a_mutation``" in text
    assert "- ``tests/solver/test_absent.py``" in text
    assert (tmp_path / "prplugin" / "solver" / "step.py").read_text() == STEP
    (tmp_path / "tests" / "solver" / "test_fast.py").write_text(
        "from prplugin.solver.step import fast\n\ndef test_fast():\n    assert fast()\n"
    )
    lines = tmp_path / "lines.json"
    options = ["--only", "solver", "--jobs", "1", "--again", str(page), "--lines", str(lines)]
    again = main([*options, "--output", str(tmp_path / "again.md")], tmp_path)
    assert {each.new: each.result for each in again} == {"pass": "survived", "return False": "killed"}
    assert "test_fast" in lines.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "solver", "absent"], "prplugin/ has no absent"),
        (["--tests", "tests/harness/test_mutate.py"], "tests/ has no tests/harness/test_mutate.py"),
    ],
)
def test_names_without_files_are_refused(options, message, capsys):
    with pytest.raises(SystemExit):
        main(options)
    assert message in capsys.readouterr().err


def test_mutations_of_a_line_of_cpp():
    line = b"        if (fmax(a, b) < 2 && ok) sums[i] += x * w[i];  // of 3 > 2\n"
    found = {each.apply(line).split(b"//")[0].strip().decode() for each in mutations(line, python=False)}
    assert found == {
        "if (fmin(a, b) < 2 && ok) sums[i] += x * w[i];",
        "if (fmax(a, b) <= 2 && ok) sums[i] += x * w[i];",
        "if (fmax(a, b) < 3 && ok) sums[i] += x * w[i];",
        "if (fmax(a, b) < 2 ) sums[i] += x * w[i];",
        "if (fmax(a, b) < 2 && ok) sums[i] += x;",
        "if (!(fmax(a, b) < 2 && ok)) sums[i] += x * w[i];",
    }
    statement = b"    sums[i] += x;\n"
    assert [each.apply(statement) for each in mutations(statement, python=False)] == [b";\n"]
    assert mutations(b"#define A 2\n// x = 1;\n", python=False) == []


def test_tests_of_a_kernel_are_those_of_its_calls_and_those_that_call_it():
    calls = calls_of_kernels(ROOT, "cpu/pull.cpp")
    assert {name for name, line in calls if line is None} >= {
        "tests/cpu/test_step.py",
        "tests/cpu/test_kernels_fuzz.py",
    }
    assert {name for name, line in calls if line is not None} >= {"distributed/host_step.py"}
    assert {*calls_of_kernels(ROOT, "cpu/mixing.hpp")} == {*calls}
    assert ("tests/cpu/test_push.py", None) in calls_of_kernels(ROOT, "cpu/push.cpp")
