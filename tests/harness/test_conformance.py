"""A selection of the conformance suite: every pair of values of method, result type, graph and options occurs.

Cases with alpha = 0.999 and large graphs, whose references take seconds, are slow tests.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from method_params import param

from conformance import __main__ as command
from conformance import against_cugraph, forced, probes, rapids, report, work
from conformance.against_cugraph import CALLS, LIMIT, Comparison, compare_with_cugraph
from conformance.circumstances import circumstances
from conformance.compare import DTYPES, LIBRARIES, Result, available, compare, library_for, prepare
from conformance.derivation import ratios
from conformance.equation import equation
from conformance.forced import FORCED
from conformance.options import FACTORS, Choice, choices, pairwise, periodic
from conformance.parts import PartError, PartFile, joined
from conformance.references import REFERENCES, SLOW_ALPHA, Case, iterate, measured, residual, solutions
from conformance.shapes import SHAPES
from conformance.work import Unit, UnitResult
from prplugin.methods.registry import methods, options_of
from prplugin.papers.segmented import Schedule, Segment

SLOW = {"large"}
"""Shapes whose references take seconds. They run with default options here, with all in `python -m conformance`."""


METHODS_ON = {
    runs_on: [name for name, method in methods().items() if method.runs_on == runs_on] for runs_on in ("cpu", "gpu")
}


def selection() -> list[tuple[str, str, str, Choice]]:
    """Return cases for the CPU and the GPU, selected separately so that all pairs of values occur on each."""
    small = {**FACTORS, "shape": [shape for shape in SHAPES if shape not in SLOW]}
    # On the GPU alpha = 0.999 takes 30,000 iterations of several launches each; only cases of `periodic` test it.
    quick = {**small, "alpha": [alpha for alpha in FACTORS["alpha"] if alpha < SLOW_ALPHA]}
    rows = pairwise({"method": METHODS_ON["cpu"], "dtype": DTYPES, **quick})
    rows += pairwise({"method": METHODS_ON["gpu"], "dtype": DTYPES, **quick, "library": LIBRARIES})
    all_pairs = pairwise({"method": METHODS_ON["cpu"], "dtype": DTYPES, **small})
    rows += [row for row in all_pairs if row["alpha"] == SLOW_ALPHA]
    chosen = [(row.pop("method"), row.pop("dtype"), row.pop("library", "pandas"), Choice(**row)) for row in rows]
    for name, method in methods().items():
        library = "cudf" if method.runs_on == "gpu" else "pandas"
        chosen += [(name, dtype, library, Choice(shape)) for shape in SLOW for dtype in DTYPES]
        # On the GPU only with nstart: uniform ranks are already the solution of the regular shapes.
        others = [choice for choice in periodic() if method.runs_on == "cpu" or choice.nstart]
        chosen += [(name, "float64", "pandas", choice) for choice in others]
    # `prepare` keeps two choices: methods that rank the same choice follow one another, or each solves its references.
    return sorted(chosen, key=lambda case: str(case[3]))


@pytest.mark.filterwarnings("default")  # cuDF raises warnings of its own
@pytest.mark.parametrize(
    ("method", "dtype", "wanted", "choice"),
    [param(*row, slow=row[3].alpha == SLOW_ALPHA or row[3].shape in SLOW) for row in selection()],
)
def test_conforms(method: str, dtype: str, wanted: str, choice: Choice) -> None:
    result = compare(prepare(choice), method, dtype, library_for(method, wanted))
    if result.outcome in ("unavailable", "unsupported"):
        pytest.skip(f"{method} cannot run on this graph: {result.outcome} {result.note}")
    assert not result.failures


@pytest.mark.filterwarnings("default")  # cuDF raises warnings of its own
@pytest.mark.parametrize(
    ("method", "text", "shape"),
    [
        param(name, options.text, shape)
        for name, several in FORCED.items()
        for options in several
        for shape in ("isolated", "skewed", "random-weights")
    ],
)
def test_conforms_with_forced_options(method: str, text: str, shape: str) -> None:
    options = next(options for options in FORCED[method] if options.text == text)
    result = compare(prepare(Choice(shape, nstart="random")), method, "float64", library_for(method), options)
    assert (result.options, result.failures) == (text, [])
    assert result.outcome == "ranked" or (options.rule is not None and shape == "random-weights")


def test_forced_options_are_options_of_their_methods(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    of_gpu = tuple(Segment(method=method, threads=64) for method in ("node", "node", "block"))
    monkeypatch.setattr(forced, "_schedule", lambda case: Schedule(n=400, m=2500, segments=of_gpu))
    for name, several in FORCED.items():
        for options in several:
            assert set(options.options(case, tmp_path)) <= set(options_of(methods()[name])), (name, options.text)
    saved, every_second, others, all_ = (options.options(case, tmp_path) for options in FORCED["segmented"][3:7])
    assert Schedule.load(saved["schedule"]).segments == of_gpu
    assert [given["schedule"].host_segments for given in (every_second, others, all_)] == [[0, 2], [1], [0, 1, 2]]


# --- the suite itself ---------------------------------------------------------------------------------------------


def test_every_pair_of_values_occurs() -> None:
    rows = [{name: getattr(choice, name) for name in FACTORS} for choice in choices()]
    for a, values in FACTORS.items():
        for b, others in FACTORS.items():
            if a < b:
                assert {(row[a], row[b]) for row in rows} == {(x, y) for x in values for y in others}, (a, b)


@pytest.fixture(scope="module")
def case() -> Case:
    return prepare(Choice("random-weights", alpha=0.99, personalization="random"))


def test_references_agree_within_their_errors(case: Case) -> None:
    dense, networkx = case.solutions["dense"], case.solutions["networkx"]
    assert not isinstance(dense, str)
    assert not isinstance(networkx, str)
    distance = float(np.abs(dense.ranks - networkx.ranks).sum())
    assert 0 < distance <= dense.error + networkx.error < 1e-11


def test_measured_error_of_a_wrong_reference(case: Case) -> None:
    dense = case.solutions["dense"]
    assert not isinstance(dense, str)
    wrong = dense.ranks.copy()
    wrong[3] += 1e-7
    assert measured(case.equation, wrong).error >= 1e-7


def test_iterates_approach_the_solution(case: Case) -> None:
    dense = case.solutions["dense"]
    assert not isinstance(dense, str)
    norms = [residual(case.equation, iterate(case.equation, steps).ranks).norm for steps in (0, 10, 100)]
    assert norms[0] > norms[1] > norms[2] > 0
    assert np.abs(iterate(case.equation, 3_000).ranks - dense.ranks).sum() <= dense.error + 2 * 0.99**3_000 + 1e-13


@pytest.mark.parametrize(("factor", "check"), [(100, "distance to dense"), (10_000, "residual")])
def test_too_small_an_error_bound_fails(case: Case, monkeypatch: pytest.MonkeyPatch, factor: float, check: str) -> None:
    from prplugin.solver.certificate import Certificate

    true_bound = Certificate.of_step
    monkeypatch.setattr(Certificate, "of_step", lambda self, change: true_bound(self, change) / factor)
    method = next(name for name, reason in available().items() if reason is None)
    result = compare(case, method, "float64")
    assert any(check in failure for failure in result.failures)


def test_dropped_rows_fail() -> None:
    case = prepare(Choice("parallel-edges"))
    method = next(name for name, reason in available().items() if reason is None)
    del (changed := dict(case.graph))["duplicates"]
    wrong = Case(case.name, case.frame, {**changed, "duplicates": "last"}, case.rank, case.equation, case.solutions)
    assert compare(wrong, method, "float64").failures


def test_normalized_weights_of_extreme_weights_are_exact() -> None:
    frame = pd.DataFrame({"src": [0, 0, 1, 1], "dst": [1, 2, 0, 2], "weight": [5e-324, 1.5e-323, 1e300, 3e300]})
    of_frame = equation(frame, weight="weight")
    assert of_frame.normalized_weight.tolist() == [0.25, 0.75, 0.25, 0.75]
    assert set(solutions(of_frame)) == set(REFERENCES)


def test_report_lists_failures(tmp_path, case: Case) -> None:
    good = Result("a-case", "a-method", "float64", bound=1e-6, error=1e-7)
    bad = Result("another", "a-method", "float32", bound=1e-6, error=0.0, failures=["residual: 2.0e-06 > 1.0e-06"])
    about = circumstances("python -m conformance")
    about["machine"]["device"] = None
    markdown = report.save(
        tmp_path,
        [good, bad],
        report.reference_results(case),
        {"a-method": None, "another": "no GPU", "third": "no GPU"},
        about,
    )
    text = markdown.read_text(encoding="utf-8")
    assert "2 cases, 1 failure." in text
    assert "- `a-method-float32-another`: residual: 2.0e-06 > 1.0e-06" in text
    assert "- `another`, `third` did not run: no GPU\n" in text
    assert len(json.loads((tmp_path / "cpu.json").read_text(encoding="utf-8"))["cases"]) == 2
    assert (tmp_path / "cpu.svg").stat().st_size > 1_000


def test_report_compares_bounds_with_derived_ones(tmp_path, monkeypatch) -> None:
    def failures() -> str:
        path = report.save(tmp_path, [], [], {}, circumstances("python -m conformance"))
        text = path.read_text(encoding="utf-8")
        assert "| a residual | 108 | " in text
        return text.partition("## Failures")[2].strip()

    assert failures() == "None."
    monkeypatch.setattr("prplugin.streams.bounds.rounding_of_residual", lambda *measured: 0.0)
    ratios.cache_clear()
    assert failures().startswith("- Bound of a residual: ")
    ratios.cache_clear()


def test_report_lists_forced_options(tmp_path: Path) -> None:
    results = [
        Result(
            "a-case", "a-method", "float64", options=options, bound=1e-6, error=1e-7, errors=errors, failures=failures
        )
        for errors in [{"cugraph": (2e-7, 1e-12)}]
        for options, failures in (("", []), ("split=1", []), ("split=1", ["residual"]))
    ]
    text = report.save(tmp_path, results, [], {}, circumstances("python -m conformance")).read_text(encoding="utf-8")
    assert "| `a-method` | pandas | float64 | 1 | 0 |" in text
    assert "| `a-method` | split=1 | 2 | 1 | 0 | 0 | 0 | 0.1 |  | 2e-07 |" in text
    assert "- `a-method-[split=1]-float64-a-case`: residual" in text


ABOUT: dict[str, Any] = {
    "environment": {"command": "python -m conformance", "commit": "c0ffee", "machine": {"device": None}, "versions": {}},
    "methods": {"numpy": None}, "units": 3,
}  # fmt: skip


def result_of(name: str) -> UnitResult:
    result = Result(name, "numpy", "float64", bound=1e-6, error=1e-7, errors={"dense": (1e-7, 1e-15)})
    return UnitResult([("dense", 1e-15)], [result], [Comparison(name, "Graph", 2, 1)], [probes.Finding("a", "b", "c")])


def test_parts_continue_after_the_last_unit_and_are_joined(tmp_path: Path) -> None:
    first, second = tmp_path / "part-1-of-2.jsonl", tmp_path / "part-2-of-2.jsonl"
    cut_off = PartFile(first, ABOUT)
    cut_off.add(0, result_of("zero"))
    with first.open("a") as file:
        file.write('{"unit": 2, "refer')
    continued = PartFile(first, ABOUT)
    assert list(continued.done) == [0]
    continued.add(2, result_of("two"))
    PartFile(second, ABOUT).add(1, result_of("one"))
    about, done = joined(tmp_path)
    assert about["environment"]["command"] == "python -m conformance, in 2 parts"
    assert {number: result.results[0].case for number, result in done.items()} == {0: "zero", 1: "one", 2: "two"}
    expected = result_of("one")
    assert asdict(done[1].results[0]) == json.loads(json.dumps(asdict(expected.results[0])))
    assert done[1]._replace(results=[]) == expected._replace(results=[])


def test_parts_of_other_code_are_not_joined(tmp_path: Path) -> None:
    with pytest.raises(PartError, match="has no part"):
        joined(tmp_path)
    PartFile(tmp_path / "part-1-of-2.jsonl", ABOUT)
    other = {**ABOUT, "environment": {**ABOUT["environment"], "commit": "decaf"}}
    with pytest.raises(PartError, match="is of another commit: delete it"):
        PartFile(tmp_path / "part-1-of-2.jsonl", other)
    PartFile(tmp_path / "part-2-of-2.jsonl", {**other, "units": 4})
    with pytest.raises(PartError, match="are of another commit and another number of units"):
        joined(tmp_path)


def test_command_runs_parts_and_joins_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run_units(units: list[Unit], *_: Any) -> Any:
        for unit in units:
            ran.append(str(unit))
            yield unit, result_of(str(unit))

    few = [Unit(choice=Choice(shape)) for shape in ("path", "cycle", "grid")]
    monkeypatch.setattr(command, "units", lambda: few)
    monkeypatch.setattr(command, "run_units", run_units)

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(command.main, [*arguments, "--output", str(tmp_path)])
        return done.exit_code, done.output

    assert run("--part", "1/2")[0] == 0
    code, output = run("--join")
    assert code == 1
    assert "interrupted after 2 of 3 graphs and options" in next(tmp_path.glob("*.md")).read_text()
    assert run("--part", "2/2")[0] == run("--part", "2/2")[0] == 0
    assert ran == ["path-defaults", "grid-defaults", "cycle-defaults"]
    code, output = run("--join")
    assert (code, output.startswith("6 cases, 0 failed")) == (0, True)
    text = next(tmp_path.glob("*.md")).read_text()
    assert "`python -m conformance, in 2 parts`" in text
    assert run("--part", "3/2")[0] == 2


def test_each_unit_has_a_name_of_its_own() -> None:
    names = [str(unit) for unit in work.units()]
    assert len(set(names)) == len(names)


def test_only_nondeterministic_methods_may_refuse_a_provable_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The in-star sums 199 addends in any order: at alpha = 0.999, 5 * 209 * 2**-53 / (1 - alpha) is 1.16e-10."""
    from prplugin import InvalidOptionError

    def refuse(*args: object, **options: object) -> None:
        raise InvalidOptionError("tol=1e-10 cannot be proved")

    monkeypatch.setattr("prplugin.Graph.rank", refuse)
    star, cycle = (prepare(Choice(shape, alpha=0.999, tol=1e-10)) for shape in ("in-star", "cycle"))
    assert compare(star, "numpy", "float64").failures
    monkeypatch.setattr(methods()["numpy"], "nondeterministic", True, raising=False)
    assert compare(star, "numpy", "float64").outcome == "refused"
    assert compare(cycle, "numpy", "float64").failures
    assert compare(prepare(Choice("in-star", alpha=0.99, tol=1e-10)), "numpy", "float64").failures


# --- comparison with cuGraph --------------------------------------------------------------------------------------

ON_GPU = pytest.mark.skipif(rapids.missing("cugraph") is not None, reason=str(rapids.missing("cugraph")))


@pytest.mark.gpu
@ON_GPU
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("graph", ["single-edge", "isolated", "skewed", "several-columns", "string-ids", "bipartite"])
@pytest.mark.parametrize("call", CALLS)
def test_agrees_with_cugraph(graph: str, call: str) -> None:
    found = compare_with_cugraph(graph, call)
    assert found.rankings
    assert not found.failures


@pytest.mark.gpu
@ON_GPU
def test_cugraph_is_a_reference() -> None:
    solution = prepare(Choice("random-weights", alpha=0.99, personalization="random")).solutions["cugraph"]
    assert not isinstance(solution, str)
    assert solution.error < 1e-10


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace cuDF by pandas, the GPU methods by numpy, and the ranks of cuGraph by those of numpy."""
    monkeypatch.setattr(rapids, "as_cudf", lambda value: value)
    monkeypatch.setattr(
        against_cugraph,
        "methods",
        lambda: {"numpy": SimpleNamespace(runs_on="gpu", unavailable_reason=lambda *_: None)},
    )
    monkeypatch.setattr(against_cugraph, "_rank_by_cugraph", numpy_ranks)


def numpy_ranks(prepared: Any, call: against_cugraph.Call) -> np.ndarray:
    _, _, ranking = next(against_cugraph._rank_by_prplugin(prepared, call, list(against_cugraph.methods())))
    ranks = rapids.by_position(ranking.frame, prepared.vertices)
    assert not isinstance(ranks, str)
    return ranks


@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize("graph", ["single-edge", "isolated", "zero-weights", "several-columns", "datetime-ids"])
@pytest.mark.parametrize("call", CALLS)
def test_identical_ranks_agree(graph: str, call: str) -> None:
    found = compare_with_cugraph(graph, call)
    assert (found.verdict, found.rankings, found.failures) == ("agree", 2, [])
    assert found.difference is not None
    assert found.difference <= 1e-7


@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize(
    ("call", "verdict"), [("MultiGraph", "cuGraph's float32 is inexact"), ("MultiGraph, float64", "FAILED")]
)
def test_difference_is_attributed_to_the_inexact_ranks(
    monkeypatch: pytest.MonkeyPatch, call: str, verdict: str
) -> None:
    def wrong_ranks(prepared: Any, call: against_cugraph.Call) -> np.ndarray:
        ranks = numpy_ranks(prepared, call)
        ranks[0] += 3 * LIMIT
        return ranks

    monkeypatch.setattr(against_cugraph, "_rank_by_cugraph", wrong_ranks)
    found = compare_with_cugraph("skewed", call)
    assert found.verdict == verdict
    assert found.cugraph_vertex == pytest.approx(3 * LIMIT, rel=0.01)
    assert found.cugraph_bound >= found.cugraph_l1 >= 3 * LIMIT * 0.99


@pytest.mark.usefixtures("without_gpu")
def test_wrong_ranks_of_prplugin_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    true = rapids.by_position
    calls = []

    def wrong_after_the_first(ranks: pd.DataFrame, vertices: pd.Index) -> np.ndarray | str:
        values = true(ranks, vertices)
        calls.append(values)
        return values if len(calls) == 1 else values + 1e-6

    monkeypatch.setattr(rapids, "by_position", wrong_after_the_first)
    # Each of the two rankings exceeds its error bound, the limit per vertex, and the limit of the distance.
    assert len(compare_with_cugraph("path", "MultiGraph").failures) == 6


def test_report_has_a_section_on_cugraph(tmp_path: Path) -> None:
    about = circumstances("python -m conformance")
    good = Comparison(
        "path", "Graph", 41, 40, "float32", rankings=20, difference=1e-8, cugraph_l1=1e-6, verdict="agree"
    )
    bad = Comparison("web", "Graph", 9, 9, verdict="FAILED", failures=["node-float64: error of a rank"])
    findings = probes.findings()
    result = Result("a-case", "a-method", "float64", "cudf", outcome="unsupported", note="no such type")
    text = report.save(tmp_path, [result], [], {}, about, [good, bad], findings).read_text(encoding="utf-8")
    assert "20 rankings of 2 cases, 1 failure." in text
    assert "- `web`, Graph: node-float64: error of a rank" in text
    assert "- `a-case` is not supported by cudf: no such type" in text
    assert "InvalidEdgesError: column 'src' has 1 null" in text
    (written,) = tmp_path.glob("*.json")
    assert len(json.loads(written.read_text(encoding="utf-8"))["cugraph"]) == 2


def test_one_case_can_be_run_alone(tmp_path):
    from click.testing import CliRunner

    from conformance.__main__ import main

    only = ["--method", "numpy", "--jobs", "1", "--output", str(tmp_path), "--only"]
    found = CliRunner().invoke(main, [*only, "zero-weights-defaults"])
    assert found.exit_code == 0, found.output
    assert int(found.output.splitlines()[-2 if "took" in found.output.splitlines()[-1] else -1].split()[0]) < 20
    absent = CliRunner().invoke(main, [*only, "no such case"])
    assert absent.exit_code == 2
    assert "zero-weights-defaults" in absent.output
