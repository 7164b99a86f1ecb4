"""Parts of a release: the README as an index shows it, versions, platforms and the commands of a release."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from types import SimpleNamespace

import yaml
from code_blocks import ROOT

import prplugin
from prplugin.cpu.build import TARGETS

README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RELEASING = (ROOT / "docs" / "releasing.md").read_text()


def test_the_readme_of_an_index_needs_no_files_beside_it(monkeypatch):
    for name, base in (("builders.hooks", "BuildHookInterface"), ("metadata", "MetadataHookInterface")):
        interface = SimpleNamespace(**{base: list})  # hatchling is there only while the package is built
        monkeypatch.setitem(sys.modules, f"hatchling.{name}.plugin.interface", interface)
    hooks = runpy.run_path(str(ROOT / "hatch_build.py"))
    hook = hooks["ReadmeHook"]()
    hook.root = str(ROOT)
    for urls in ({}, {"urls": {"Source": "https://example.org/repository/"}}):
        metadata = dict(urls)
        hook.update(metadata)
        assert metadata["readme"]["content-type"] == "text/markdown"
        text = metadata["readme"]["text"]
        targets = re.findall(r"\]\(([^)]+)\)", text)
        assert not [target for target in targets if not target.startswith("https://")], targets
        assert "what an edge means" in text
        assert re.findall(r"```.*?```", text, re.DOTALL) == re.findall(r"```.*?```", README, re.DOTALL)
    assert "](https://example.org/repository/blob/HEAD/docs/guide/edges.md)" in text
    assert "](https://example.org/repository/raw/HEAD/docs/pictures/ranking.svg)" in text


def test_versions_and_platforms_agree():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == prplugin.__version__
    versions = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert f"for version in {' '.join(versions)}; do" in (ROOT / ".ci" / "package").read_text()
    assert f"Python {versions[0]} to {versions[-1]}" in RELEASING
    assert {tag.partition("_")[0] for tag in TARGETS} == {"manylinux", "macosx", "win"}
    assert len(TARGETS) == 5


def test_a_release_takes_four_commands():
    (commands,) = re.findall(r"```sh[^\n]*\n(.*?)```", RELEASING, re.DOTALL)
    assert len(commands.splitlines()) == 4
    for script in re.findall(r"^\.ci/\w+", commands, re.MULTILINE):
        assert (ROOT / script).exists()
    assert f"v{prplugin.__version__}" in commands
