"""Write the tables of methods in docs/methods.md from the modules of the methods: ``python docs/methods_table.py``."""

from __future__ import annotations

import re
from pathlib import Path

from prplugin.methods.registry import methods, options_of

PAGE = Path(__file__).parent / "methods.md"

TITLES = {"cpu": "on the CPU", "gpu": "on the GPU"}


def table(processor: str) -> str:
    """Return the table of the methods of a processor."""
    lines = [f"| {TITLES[processor]} | description | options |", "|---|---|---|"]
    for name, method in methods().items():
        if method.runs_on != processor:
            continue
        description = str(method.__doc__).partition("\n")[0].rstrip(".")
        options = ", ".join(f"`{option}=`" for option in options_of(method))
        lines.append(f"| `{name}` | {description} | {options} |")
    return "\n".join(lines)


def with_tables(page: str) -> str:
    """Return the page with its tables replaced."""
    for processor, title in TITLES.items():
        old = re.search(rf"^\| {title} \|(.*\n)(\|.*\n)+", page, re.MULTILINE)
        assert old, title
        page = page.replace(old[0], table(processor) + "\n")
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
