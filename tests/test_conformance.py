"""A selection of the conformance suite: every two of method, result type, graph and option values meet once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from conformance import report
from conformance.circumstances import circumstances
from conformance.compare import DTYPES, Case, Result, available, compare, prepare
from conformance.equation import equation
from conformance.options import FACTORS, Choice, choices, pairwise, periodic
from conformance.references import REFERENCES, iterate, measured, residual, solutions
from conformance.shapes import SHAPES

SLOW = {"large"}
"""Shapes whose references take seconds: with the defaults only here, with all options in `python -m conformance`."""


def selection() -> list[tuple[str, str, Choice]]:
    quick = {**FACTORS, "shape": [shape for shape in SHAPES if shape not in SLOW]}
    rows = pairwise({"method": list(available()), "dtype": DTYPES, **quick})
    covered = [(row.pop("method"), row.pop("dtype"), Choice(**row)) for row in rows]
    slow = [(method, dtype, Choice(shape)) for shape in SLOW for method in available() for dtype in DTYPES]
    return covered + slow + [(method, "float64", choice) for choice in periodic() for method in available()]


@pytest.mark.parametrize(
    ("method", "dtype", "choice"),
    [pytest.param(*row, id=f"{row[0]}-{row[1]}-{row[2]}") for row in selection()],
)
def test_conforms(method: str, dtype: str, choice: Choice) -> None:
    if reason := available()[method]:
        pytest.skip(reason)
    result = compare(prepare(choice), method, dtype)
    if result.outcome == "unfit":
        pytest.skip(f"{method} cannot run on this graph")
    assert not result.failures


# --- the suite itself ---------------------------------------------------------------------------------------------


def test_every_pair_of_values_meets() -> None:
    rows = [{name: getattr(choice, name) for name in FACTORS} for choice in choices()]
    for a, values in FACTORS.items():
        for b, others in FACTORS.items():
            if a < b:
                assert {(row[a], row[b]) for row in rows} == {(x, y) for x in values for y in others}, (a, b)


@pytest.fixture(scope="module")
def case() -> Case:
    return prepare(Choice("random-weights", alpha=0.99, personalization="random"))


def test_references_agree_within_their_own_errors(case: Case) -> None:
    dense, networkx = case.solutions["dense"], case.solutions["networkx"]
    assert not isinstance(dense, str)
    assert not isinstance(networkx, str)
    apart = float(np.abs(dense.ranks - networkx.ranks).sum())
    assert 0 < apart <= dense.error + networkx.error < 1e-11


def test_reference_with_a_wrong_answer_knows_how_wrong_it_is(case: Case) -> None:
    dense = case.solutions["dense"]
    assert not isinstance(dense, str)
    off = dense.ranks.copy()
    off[3] += 1e-7
    assert measured(case.equation, off).error >= 1e-7


def test_iterates_approach_the_solution(case: Case) -> None:
    dense = case.solutions["dense"]
    assert not isinstance(dense, str)
    norms = [residual(case.equation, iterate(case.equation, steps).ranks).norm for steps in (0, 10, 100)]
    assert norms[0] > norms[1] > norms[2] > 0
    assert np.abs(iterate(case.equation, 3_000).ranks - dense.ranks).sum() <= dense.error + 2 * 0.99**3_000 + 1e-13


@pytest.mark.parametrize(("times", "notices"), [(100, "distance to dense"), (10_000, "residual")])
def test_too_small_an_error_bound_fails(
    case: Case, monkeypatch: pytest.MonkeyPatch, times: float, notices: str
) -> None:
    from prplugin.certificate import Certificate

    true_bound = Certificate.of_step
    monkeypatch.setattr(Certificate, "of_step", lambda self, change: true_bound(self, change) / times)
    method = next(name for name, reason in available().items() if reason is None)
    result = compare(case, method, "float64")
    assert any(notices in failure for failure in result.failures)


def test_wrong_graph_fails() -> None:
    """The suite would notice rows that are dropped."""
    case = prepare(Choice("parallel-edges"))
    method = next(name for name, reason in available().items() if reason is None)
    del (changed := dict(case.graph))["duplicates"]
    wrong = Case(case.name, case.frame, {**changed, "duplicates": "last"}, case.rank, case.equation, case.solutions)
    assert compare(wrong, method, "float64").failures


def test_shares_of_extreme_weights_are_exact_to_a_rounding() -> None:
    import pandas as pd

    frame = pd.DataFrame({"src": [0, 0, 1, 1], "dst": [1, 2, 0, 2], "weight": [5e-324, 1.5e-323, 1e300, 3e300]})
    meaning = equation(frame, weight="weight")
    assert meaning.share.tolist() == [0.25, 0.75, 0.25, 0.75]
    assert set(solutions(meaning)) == set(REFERENCES)


def test_report_lists_failures(tmp_path, case: Case) -> None:
    good = Result("a-case", "a-method", "float64", bound=1e-6, error=1e-7)
    bad = Result("another", "a-method", "float32", bound=1e-6, error=0.0, failures=["residual: 2.0e-06 > 1.0e-06"])
    about = circumstances("python -m conformance")
    about["machine"]["device"] = None
    markdown = report.save(tmp_path, [good, bad], report.answers(case), {"a-method": None, "another": "no GPU"}, about)
    text = markdown.read_text(encoding="utf-8")
    assert "2 cases, 1 failure." in text
    assert "- `a-method-float32-another`: residual: 2.0e-06 > 1.0e-06" in text
    assert "`another` did not run: no GPU" in text
    assert len(json.loads((tmp_path / "cpu.json").read_text(encoding="utf-8"))["cases"]) == 2
    assert (tmp_path / "cpu.png").stat().st_size > 1_000
