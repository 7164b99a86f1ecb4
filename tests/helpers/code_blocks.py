"""Code blocks of the README and of docs/: each is run, or is marked with the reason why it is not run everywhere."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prplugin.gpu.runtime import unavailable_reason

__all__ = ["PAGES", "ROOT", "SHELL", "Block", "blocks_of", "skip_reason", "tutorial_cells"]

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")))]

SHELL = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYTHONPATH": str(ROOT),
}
"""Environment for shell commands, in which `prplugin` and `python` are those of the tests."""

LANGUAGES = {"python", "sh", "text"}
FENCE = re.compile(
    r'^(?:<!-- (?P<comment>[^\n]*) -->\n)?```(?P<language>\w*)(?: title="(?P<title>[^"\n]*)")?\n(?P<code>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)

NOT_RUN_BY_TESTS = {"run in CI": ".ci runs it", "takes minutes": "it takes minutes"}
"""Marks of blocks that no test runs, with the reasons. Marks for maintainers are comments, marks for readers titles."""


class Block(NamedTuple):
    """A code block: its page, its line on the page, its language, its mark (title, or comment above) and its code."""

    page: str
    line: int
    language: str
    mark: str
    code: str


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page, and check that all have one of the permitted forms."""
    text = (ROOT / page).read_text()
    found = list(FENCE.finditer(text))
    fences = len(re.findall(r"^\s*```", text, re.MULTILINE))
    assert fences == 2 * len(found), (
        f"{page}: a block does not open with ```python, ```sh or ```text and an optional title"
    )
    for block in found:
        line = text.count("\n", 0, block.start()) + 1
        assert block["language"] in LANGUAGES, (
            f"{page}:{line}: the language must be python, sh, or text for what is not code"
        )
        yield Block(page, line, block["language"], block["title"] or block["comment"] or "", block["code"])


def skip_reason(block: Block) -> str | None:
    """Return why a marked block cannot run here, or None if it can.

    A mark is one of `NOT_RUN_BY_TESTS`, or "needs " followed by a list of requirements: "a GPU", "two GPUs" or names
    of modules, separated by commas and "and".
    """
    if block.mark in NOT_RUN_BY_TESTS:
        return NOT_RUN_BY_TESTS[block.mark]
    assert block.mark.startswith("needs "), f"{block.page}:{block.line}: unknown mark {block.mark!r}"
    for need in re.split(r", | and ", block.mark.removeprefix("needs ")):
        if reason := _why_unmet(need):
            return reason
    return None


def _why_unmet(need: str) -> str | None:
    if need in ("a GPU", "two GPUs"):
        if reason := unavailable_reason():
            return reason
        import cupy

        enough = cupy.cuda.runtime.getDeviceCount() >= (1 if need == "a GPU" else 2)
        return None if enough else "it needs two GPUs, and there is one."
    assert re.fullmatch(r"\w+", need), f"{need!r} is not the name of a module"
    return None if importlib.util.find_spec(need) else f"it needs {need}, which is not installed."


def tutorial_cells() -> list[str]:
    """Return the source of each code cell of the tutorial."""
    notebook = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
