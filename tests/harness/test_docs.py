"""The site: its notebook runs, every method has its section and its picture, and all pages can be found."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess

import pytest
from documents import ROOT

import prplugin
from prplugin.methods.registry import methods

DOCS = ROOT / "docs"
CELLS = [cell for cell in json.loads((DOCS / "tutorial.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]


def module_at(path):
    found = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_tutorial_runs(capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    known = {}
    for cell in CELLS:
        exec("".join(cell["source"]), known)
    assert "of the 100 highest" in capsys.readouterr().out


def test_the_tutorial_fails_where_a_command_does(monkeypatch):
    known = {}
    exec("".join(CELLS[-1]["source"]).partition("file =")[0], known)
    with pytest.raises(subprocess.CalledProcessError):
        known["run"]("rank", "absent.csv")


def test_the_tutorial_is_kept_with_what_it_shows():
    assert all(cell["execution_count"] for cell in CELLS), "jupyter nbconvert --execute --inplace docs/tutorial.ipynb"
    outputs = [output for cell in CELLS for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert any("image/png" in output.get("data", {}) for output in outputs)
    source = "\n".join("".join(cell["source"]) for cell in CELLS)
    for shown in ("seeds=", "top=", "certified=True", ".explain()", ".plot()", "dask"):
        assert shown in source
    assert not re.search(r"^\s*[!%]", source, re.MULTILINE), "a shell command that fails would not fail the build"


@pytest.mark.parametrize("method", methods())
def test_a_method_has_a_section_with_its_picture_and_its_options(method):
    page = (DOCS / "methods.md").read_text()
    section = re.search(rf"^### {method}$(.*?)(?=^##)", page, re.DOTALL | re.MULTILINE)
    assert section, f"docs/methods.md has no section on {method}"
    assert f"](pictures/{method}.svg)" in section[1]
    for line in ("Moves", "Threads", "Wins"):
        assert f"\n- {line}: " in section[1]
    options = methods()[method].prepare.__kwdefaults__ or {}
    for option in options:
        assert f"`{option}=" in section[1], f"{method} has an option {option}"


def test_pictures_are_as_drawn():
    draw = module_at(DOCS / "pictures" / "draw.py")
    assert sorted(draw.PICTURES) == sorted(methods())
    for method in methods():
        assert (DOCS / "pictures" / f"{method}.svg").read_text() == draw.drawn(method), "python docs/pictures/draw.py"


def test_every_public_name_is_in_the_api():
    listed = re.findall(r"^::: prplugin\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(prplugin.__all__)
