"""Documentation: the tutorial runs, every method has a section and a picture, every public name is in the API."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess

import pytest
from code_blocks import ROOT, tutorial_cells

import prplugin
from benchmarks import latency
from benchmarks.papers import kim, kumar, wu
from prplugin.cli import main as commands
from prplugin.methods.registry import methods

DOCS = ROOT / "docs"
METHODS_PAGE = (DOCS / "methods.md").read_text()


def module_at(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_tutorial_runs(capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    namespace = {}
    for source in tutorial_cells():
        exec(source, namespace)
    assert "of the 100 highest" in capsys.readouterr().out


def test_failing_commands_of_the_tutorial_raise():
    namespace = {}
    exec(tutorial_cells()[-1].partition("file =")[0], namespace)
    with pytest.raises(subprocess.CalledProcessError):
        namespace["run"]("rank", "absent.csv")


def test_the_tutorial_is_stored_with_its_outputs():
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells), "jupyter nbconvert --execute --inplace docs/tutorial.ipynb"
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert any("image/png" in output.get("data", {}) for output in outputs)
    source = "\n".join(tutorial_cells())
    for shown in ("seeds=", "top=", "certified=True", ".explain()", ".plot()", "dask"):
        assert shown in source
    assert not re.search(r"^\s*[!%]", source, re.MULTILINE), "failures of shell commands in notebooks are ignored"


@pytest.mark.parametrize("method", sorted({*methods()} & {*re.findall("^### ([a-z-]+)$", METHODS_PAGE, re.MULTILINE)}))
def test_sections_of_methods_have_a_picture_and_all_options(method):
    section = re.search(rf"^### {method}$(.*?)(?=^##)", METHODS_PAGE, re.DOTALL | re.MULTILINE)
    assert f"](pictures/{method}.svg)" in section[1]
    for line in ("Moves", "Threads", "Wins"):
        assert f"\n- {line}: " in section[1]
    options = methods()[method].prepare.__kwdefaults__ or {}
    for option in options:
        assert f"`{option}=" in section[1], f"the section on {method} does not name its option {option}"


def test_tables_of_methods_are_up_to_date():
    page = (DOCS / "methods.md").read_text()
    assert page == module_at(DOCS / "methods_table.py").with_tables(page), "python docs/methods_table.py"
    assert all(f"| `{method}` |" in page for method in methods())


def test_pictures_are_up_to_date():
    draw = module_at(DOCS / "pictures" / "draw.py")
    assert set(draw.PICTURES) <= set(methods())
    for method in draw.PICTURES:
        assert (DOCS / "pictures" / f"{method}.svg").read_text() == draw.drawn(method), "python docs/pictures/draw.py"


def test_public_names_are_in_the_api_reference():
    listed = re.findall(r"^::: prplugin\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(prplugin.__all__)


def test_packed_edges_take_the_measured_range_of_bytes_everywhere():
    sources = [*DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md"), *(ROOT / "prplugin").rglob("*.[pc]*")]
    sources = [path for path in sources if path.suffix != ".pyc"]
    stated = {path: re.findall(r"\b1\s+to\s+(2\.\d)\b", path.read_text()) for path in sources if path.is_file()}
    largest = 0.0
    for page in (ROOT / "benchmarks" / "results").glob("*.md"):
        for table in re.findall(r"(?:^\|.*\n)+", page.read_text(), re.MULTILINE):
            head, _, *rows = ([cell.strip() for cell in line.split("|")] for line in table.splitlines())
            for name in {"bytes per edge", "packed bytes per edge"} & {*head}:
                largest = max([largest, *(float(row[head.index(name)] or 0) for row in rows)])
    assert sum(map(len, stated.values())) >= 6
    assert {number for numbers in stated.values() for number in numbers} == {f"{largest:.1f}"}


def test_the_guide_for_contributors_says_where_the_graphs_of_the_papers_are_from():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    names = [*kim.REAL, *(name for name, *_ in kumar.GRAPHS), *((*known.files, known.name)[0] for known in wu.DATASETS)]
    assert [name for name in names if name not in text] == []


def test_the_api_page_lists_every_command():
    listed = re.findall(r"^\| `prplugin (\w+)", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(commands.commands)


def test_the_latency_of_clients_is_measured_by_the_recipe_of_the_guide(capsys):
    latency.main(quick=True)
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| 2,000")]
    assert [(row[2], int(row[3])) for row in rows] == [(form, n) for form in latency.FORMS for n in latency.CLIENTS]
    assert all(0 < float(row[5]) <= float(row[6]) for row in rows)
