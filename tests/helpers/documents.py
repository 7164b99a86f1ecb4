"""The code blocks of the README and of docs/: each is run, or says above itself why it is not run everywhere."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prplugin.gpu.runtime import missing

__all__ = ["PAGES", "ROOT", "SHELL", "Block", "blocks_of", "why_not"]

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")))]

SHELL = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYTHONPATH": str(ROOT),
}
"""The environment of commands: `prplugin` and `python` are those of the tests."""

LANGUAGES = {"python", "sh", "text"}
FENCE = re.compile(
    r'^(?:<!-- (?P<comment>[^\n]*) -->\n)?```(?P<language>\w*)(?: title="(?P<title>[^"\n]*)")?\n(?P<code>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)

NOT_HERE = {"run in CI": ".ci runs it", "takes minutes": "it takes minutes"}
"""Marks of blocks that no test runs; those for maintainers are comments, the others titles for readers."""


class Block(NamedTuple):
    """A block of code: its page and line there, the language, its mark (title, or comment above), and the code."""

    page: str
    line: int
    language: str
    mark: str
    code: str


def blocks_of(page: str) -> Iterator[Block]:
    """Find the blocks of a page, and see that there are none of another form."""
    text = (ROOT / page).read_text()
    found = list(FENCE.finditer(text))
    fences = len(re.findall(r"^\s*```", text, re.MULTILINE))
    assert fences == 2 * len(found), f"{page}: a block is not ```python, ```sh or ```text, alone or with a title"
    for block in found:
        line = text.count("\n", 0, block.start()) + 1
        assert block["language"] in LANGUAGES, f"{page}:{line}: say python, sh, or text for what is no code"
        yield Block(page, line, block["language"], block["title"] or block["comment"] or "", block["code"])


def why_not(block: Block) -> str | None:
    """Say why a block with a mark cannot run here, or None if it can.

    Marks are those of `NOT_HERE`, and "needs ...": a GPU, two GPUs, or modules by name, with commas and "and" between.
    """
    if block.mark in NOT_HERE:
        return NOT_HERE[block.mark]
    assert block.mark.startswith("needs "), f"{block.page}:{block.line}: {block.mark!r} is no mark that the tests know"
    for need in re.split(r", | and ", block.mark.removeprefix("needs ")):
        if reason := _absent(need):
            return reason
    return None


def _absent(need: str) -> str | None:
    if need in ("a GPU", "two GPUs"):
        if reason := missing():
            return reason
        import cupy

        enough = cupy.cuda.runtime.getDeviceCount() >= (1 if need == "a GPU" else 2)
        return None if enough else "it needs two GPUs, and there is one."
    assert re.fullmatch(r"\w+", need), f"{need!r} is not the name of a module"
    return None if importlib.util.find_spec(need) else f"it needs {need}, which is not installed."
