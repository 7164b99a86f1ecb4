"""Plugin of pytest for `tests.mutate`: record the lines of the package that each test executes, or run listed tests.

    LINES_TO=lines.json python -m pytest -p lines_of_tests ...
    TESTS_FROM=tests.json python -m pytest -p lines_of_tests ...

What fixtures of modules and sessions execute counts for all tests of the file that uses them first.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

PACKAGE = os.path.join(os.getcwd(), "prplugin", "")
LINES_TO, TESTS_FROM = os.environ.get("LINES_TO"), os.environ.get("TESTS_FROM")

executed: defaultdict[str, set[int]] = defaultdict(set)  # lines by file, since the last test began or ended
of_setups: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))  # by file of tests
tests: dict[str, Any] = {}
failed: list[str] = []


def trace(frame: FrameType, event: str, _: object) -> Any:
    return trace_lines if frame.f_code.co_filename.startswith(PACKAGE) else None


def trace_lines(frame: FrameType, event: str, _: object) -> Any:
    if event == "line":
        executed[frame.f_code.co_filename].add(frame.f_lineno)
    return trace_lines


def taken() -> dict[str, set[int]]:
    found = {name.removeprefix(PACKAGE): set(lines) for name, lines in list(executed.items())}
    executed.clear()
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if LINES_TO:
        threading.settrace(trace)
        sys.settrace(trace)
    began = time.perf_counter()
    result = yield
    if item.nodeid in tests:
        tests[item.nodeid] = time.perf_counter() - began, tests[item.nodeid]
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    for name, lines in taken().items():
        of_setups[item.nodeid.partition("::")[0]][name] |= lines
    result = yield
    tests[item.nodeid] = {name: sorted(lines) for name, lines in taken().items()}
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        failed.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        failed.append(report.nodeid)


def pytest_sessionfinish() -> None:
    sys.settrace(None)
    if LINES_TO:
        setups = {file: {name: sorted(lines) for name, lines in found.items()} for file, found in of_setups.items()}
        text = json.dumps({"tests": tests, "setups": setups, "failed": failed})
        Path(LINES_TO).write_text(text, encoding="utf-8")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if TESTS_FROM:
        listed = set(json.loads(Path(TESTS_FROM).read_text(encoding="utf-8")))
        items[:] = [item for item in items if item.nodeid in listed]
