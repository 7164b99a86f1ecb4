"""Mutation tests: change one place of the package at a time, and list the changes that no test notices.

    python -m tests.mutate --count 300 --jobs 24 --seconds 480

First each test runs once, and the lines of the package that it executes are recorded, or read from the file of
`--lines`, which another machine may have written at the same commit. Then each process has a copy of the repository,
in which it changes a file, compiles the CPU kernels if the file is C++, and runs the tests that execute the line, up to
a limit of seconds: those of the nearest folder first, and the quicker and the more specific the earlier. For C++ they
are the tests that execute a call of one of its kernels, and those of files that call one. The report is rewritten after
each result; the reasons why survivors stay are read from `conformance/survivors.toml`. `--again` tests the survivors of
an earlier report. Left out are code that only a GPU runs, prefetches, and the constants that measurements have chosen,
which the reasons list: none of them changes what is computed here.

It is a command of our own because a third of the terms of the error bound are in C++: mutmut and cosmic-ray change Python.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from tests.helpers.mutations import NO_CPU, Mutation, mutations

ROOT = Path(__file__).parents[1]
PACKAGE = "prplugin"
CORE = ("solver", "graph", "streams", "numerics.py", "cpu/*.cpp", "cpu/*.hpp", "frames/times.py")
FOLDERS = ("api", "cpu", "frames", "graph", "io", "methods", "papers", "solver", "streams")
"""Folders of tests that run: others start processes, in which no lines are recorded, or defend what is not mutated."""

NEAREST = {
    "numerics": "solver",
    "memory": "methods",
    "times": "api",
    "webgraph": "io",
}  # others have the name of the package
REASONS = "conformance/survivors.toml"
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "site", "*.pyc")
COMPILE = [sys.executable, "prplugin/cpu/build.py", "-O1", "-w"]
"""Command that compiles the kernels. Lower optimization takes a third of the time; no level reorders roundings."""

FIRST_SECONDS = 10
"""Seconds of tests in the first run of pytest for a mutant; a second run has the rest, since collecting all takes long."""


@dataclass
class Mutant:
    """A mutation of a file, and what became of it: `result` is empty while it is not known."""

    file: Path
    line: int
    old: str
    new: str
    mutation: Mutation
    result: str = ""
    tests: int = 0  # that it has survived

    @property
    def change(self) -> str:
        """Cells of a report's table."""
        return f"| {self.mutation.what} | {_code(self.old)} | {_code(self.new)} |"


def mutants_of(root: Path, only: Sequence[str]) -> list[Mutant]:
    """Return every mutant of the named packages, modules or patterns."""
    folder, found, known = root / PACKAGE, [], read_survivors(root)
    files = {
        file for name in only for path in folder.glob(name) for file in ([path] if path.is_file() else path.rglob("*"))
    }
    for file in sorted(files):
        if file.suffix not in (".py", ".cpp", ".hpp") or NO_CPU.search(file.name) or file.name == "build.py":
            continue
        text, measured = file.read_bytes(), known.get(file.relative_to(folder).as_posix(), {}).get("measured", ())
        for each in mutations(text, python=file.suffix == ".py"):
            first, last = text.rfind(b"\n", 0, each.start) + 1, text.find(b"\n", each.end)
            new = text[first : each.start] + each.new + text[each.end : last]
            line, old = text.count(b"\n", 0, each.start) + 1, text[first:last]
            # Of a place of several lines the change is in the first that differs.
            pair = zip(_lines(old), [*_lines(new), *[""] * old.count(b"\n")], strict=False)
            skip = next((i for i, (one, other) in enumerate(pair) if one != other), 0)
            shown = _lines(old)[skip:], _lines(new)[skip:]
            if shown[0][0] in measured:
                continue
            found.append(Mutant(file.relative_to(root), line + skip, *(" ".join(each)[:160] for each in shown), each))
    return found


def _lines(text: bytes) -> list[str]:
    return [line.strip() for line in text.decode().split("\n")]


# --- Copies of the repository -----------------------------------------------------------------------------------------


@dataclass
class Copy:
    """A copy of the repository, in which one mutant at a time is tested until a deadline (of `time.monotonic`)."""

    root: Path
    origin: Path
    deadline: float
    changes: int = 0

    def run(self, command: Sequence[str], limit: float = float("inf"), **variables: str) -> int | None:
        """Return the exit status of a command, or None if it took more than `limit` seconds, or until the deadline."""
        limit = min(limit, self.deadline - time.monotonic())
        if limit <= 0:
            return None
        paths = [str(self.root), str(ROOT / "tests/helpers"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | variables
        silent = subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=self.root, env=environment, stdin=silent, stdout=silent, stderr=silent, start_new_session=True
        ) as process:
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # and what the tests have started

    def pytest(self, tests: Sequence[str], *options: str, limit: float = float("inf"), **variables: str) -> int | None:
        marks = "not (slow or gpu or cudf or multi_gpu or browser)"
        plugins = ["-p", "lines_of_tests", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", f"--rootdir={self.root}", "-m", marks, *plugins]
        return self.run([*command, *options, *tests], limit, **variables)

    def record(self, files: Sequence[str], limit: float) -> dict[str, Any]:
        """Run files of tests without a mutation, and return what `lines_of_tests` records of them."""
        path = self.root / ".lines.json"
        path.write_text(
            json.dumps({"tests": {}, "setups": {}, "failed": files}), encoding="utf-8"
        )  # if it does not end
        self.pytest(files, "--continue-on-collection-errors", limit=limit, LINES_TO=str(path))
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def notice(self, tests: Sequence[str], limit: float) -> bool | None:
        """Return whether one of these tests fails; None for want of time."""
        (self.root / ".tests.json").write_text(json.dumps(tests), encoding="utf-8")
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        status = self.pytest(files, "-x", limit=limit, TESTS_FROM=str(self.root / ".tests.json"))
        if status is None:  # endless loops take longer than any load of the machine
            return True if time.monotonic() < self.deadline else None
        return status not in (0, 5)

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[bool]:
        """Apply a mutation, and yield whether it compiles."""
        file, compiled = self.root / mutant.file, mutant.file.suffix != ".py"
        libraries, kept = self.root / PACKAGE / "cpu/lib", self.root / ".libraries"
        text, status = file.read_bytes(), file.stat()
        if compiled:
            shutil.copytree(libraries, kept)
        try:
            file.write_bytes(mutant.mutation.apply(text))
            # Python recognizes a changed file by its time in seconds and its size.
            self.changes += 1
            os.utime(file, (self.changes, self.changes))
            yield not compiled or self.run(COMPILE) == 0
        finally:
            file.write_bytes(text)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
            if compiled:
                shutil.rmtree(libraries)
                kept.rename(libraries)


def examine(copies: SimpleQueue[Copy], mutant: Mutant, tests: Tests, seconds: float) -> None:
    """Run tests of up to so many seconds on a mutant, and write the result."""
    runs = tests.of(mutant, seconds)
    copy = copies.get()
    try:
        with copy.changed(mutant) as compiles:
            if not compiles:
                mutant.result = "not compiled" if time.monotonic() < copy.deadline else ""
                return
            for names in filter(None, runs):
                noticed = copy.notice(names, limit=60 + 10 * sum(tests.seconds[name] for name in names))
                if noticed is None:
                    return
                if noticed:
                    mutant.result = "killed"
                    return
                mutant.tests += len(names)
        mutant.result = "survived"
    finally:
        copies.put(copy)


# --- Which tests run --------------------------------------------------------------------------------------------------


class Tests:
    """The tests that pass without a mutation, by the lines of the package that they execute."""

    def __init__(self, root: Path, records: Sequence[dict[str, Any]]) -> None:
        self.root = root
        self.seconds: dict[str, float] = {}
        self.executed: dict[str, int] = {}  # lines of the package
        self.failed = sorted({name for record in records for name in record["failed"]})
        self._of_line: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        """By module and line: tests, and files of tests whose fixtures execute it."""
        for record in records:
            passed = {test: found for test, found in record["tests"].items() if test not in self.failed}
            self.seconds |= {test: seconds for test, (seconds, _) in passed.items()}
            self.executed |= {test: sum(map(len, found.values())) for test, (_, found) in passed.items()}
            for name, found in [*record["setups"].items(), *((test, lines) for test, (_, lines) in passed.items())]:
                for module, numbers in found.items():
                    for number in numbers:
                        self._of_line[module][number].add(name)

    def of(self, mutant: Mutant, seconds: float) -> tuple[list[str], list[str]]:
        """Return the first tests to run on a mutant, and the others, of up to so many seconds in all."""
        name = mutant.file.relative_to(PACKAGE).as_posix()
        places = [(name, mutant.line)] if mutant.file.suffix == ".py" else calls_of_kernels(self.root, name)
        found = set[str]().union(*({path} if at is None else self._of_place(path, at) for path, at in places))
        folder = NEAREST.get(mutant.file.stem, mutant.file.parts[1])
        tests = [test for test in self.seconds if test in found or test.partition("::")[0] in found]

        def cost(test: str) -> tuple[bool, float, str]:
            """Return a key by which quick tests come first, and slow ones if they execute little else."""
            return not test.startswith(f"tests/{folder}/"), self.seconds[test] * self.executed[test], test

        ordered = sorted(tests, key=cost)
        first, others, spent = [], [], 0.0
        for test in ordered:
            spent += self.seconds[test]
            if spent <= seconds:
                (first if spent <= FIRST_SECONDS else others).append(test)
        return first, others

    def _of_place(self, name: str, line: int) -> set[str]:
        """Return the tests, and the files of tests, that execute a line, or a function of its module if it is in none."""
        inside, of_line = lines_of_functions(self.root / PACKAGE / name), self._of_line[name]
        if line not in inside:
            return {test for each in of_line.keys() & inside for test in of_line[each]}
        # The last executed line up to this one, which may be within a statement of several lines.
        return of_line[max((each for each in of_line if each in inside and each <= line), default=0)]


@cache
def lines_of_functions(path: Path) -> frozenset[int]:
    """Return the lines in bodies of functions: those of a module or a class run once, in whichever test imports it."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    bodies = (node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return frozenset(n for node in bodies for n in range(node.body[0].lineno, (node.end_lineno or 0) + 1))


@cache
def calls_of_kernels(root: Path, name: str) -> tuple[tuple[str, int | None], ...]:
    """Return modules and lines that call a kernel of a C++ file, or of those that include a header; and files of tests."""
    folder, names, kernels = (root / PACKAGE / name).parent, {Path(name).name}, set()
    for _ in range(3):  # headers include headers
        names |= {
            path.name for path in folder.iterdir() if path.suffix in (".cpp", ".hpp")
            and any(f'#include "{each}"' in path.read_text(encoding="utf-8") for each in names)
        }  # fmt: skip
    for each in names:
        text = (folder / each).read_text(encoding="utf-8")
        kernels |= set(re.findall(r"^EXPORT(?:_\w+\(| )(\w+)", text, re.MULTILINE))
    either = "|".join(sorted(kernels))
    pattern = re.compile(rf'"(?:{either})"|\bkernels\.(?:{either})\b' if kernels else "(?!)")
    calls: list[tuple[str, int | None]] = [
        (path.relative_to(root / PACKAGE).as_posix(), number)
        for path in sorted((root / PACKAGE).rglob("*.py"))
        if path.name != "kernels.py"  # declares all kernels, and calls none
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    tests = sorted((root / "tests").rglob("test_*.py"))
    calls += [(path.relative_to(root).as_posix(), None) for path in tests if pattern.search(path.read_text("utf-8"))]
    return tuple(calls)


# --- Report -----------------------------------------------------------------------------------------------------------


def report(mutants: Sequence[Mutant], tests: Tests, settings: str) -> str:
    """Return the page: counts by package, and tables of the survivors, those with a reason and those without."""
    tested = [mutant for mutant in mutants if mutant.result in ("killed", "survived")]
    alive = [mutant for mutant in tested if mutant.result == "survived"]
    packages = Counter(mutant.file.parts[1] for mutant in tested)
    left = Counter(mutant.file.parts[1] for mutant in alive)
    reasons = read_reasons(tests.root)
    known = {id(mutant): reason for mutant in alive if (reason := reasons(mutant))}
    uncompiled = sum(mutant.result == "not compiled" for mutant in mutants)
    summary = (
        f"`python -m tests.mutate {settings}` with Python {platform.python_version()}: of {len(mutants)} mutants "
        f"{uncompiled} do not compile, {len(tested)} met tests, and {len(alive)} survived, {len(known)} of them for a reason. "
        "No mutant is of a prefetch, or of a constant that a measurement chose."
    )
    lines = ["# Mutation tests", "", summary, "", "| package | mutants | survivors |", "|---|---:|---:|"]
    lines += [f"| {name} | {packages[name]} | {left[name]} |" for name in sorted(packages)]
    for title, has_reason in (("Survivors", False), ("Survivors with a reason", True)):
        if some := [mutant for mutant in alive if (id(mutant) in known) == has_reason]:
            lines += [
                "",
                f"## {title}",
                "",
                "| place | change | old | new | tests | reason |",
                "|---|---|---|---|---:|---|",
            ]
            lines += [
                f"| {mutant.file.as_posix()}:{mutant.line} {mutant.change} {mutant.tests} | {known.get(id(mutant), '')} |"
                for mutant in some
            ]
    if tests.failed:
        lines += ["", "## Tests left out", "", "They fail without a mutation, while their lines are recorded.", ""]
        lines += [f"- {_code(name)}" for name in tests.failed]
    return "\n".join(lines) + "\n"


def read_survivors(root: Path) -> dict[str, Any]:
    """Return, by file, why survivors stay, and which lines are not mutated."""
    path = root / REASONS
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def read_reasons(root: Path) -> Callable[[Mutant], str | None]:
    """Return a function that returns why a survivor stays: by the new line, or for all mutations of a line by the old."""
    known = read_survivors(root)

    def reason(mutant: Mutant) -> str | None:
        of_file = known.get(mutant.file.relative_to(PACKAGE).as_posix(), {})
        return next((of_file[line] for line in (mutant.new, mutant.old) if line in of_file), None)

    return reason


def _code(text: str) -> str:
    return "``" + text.replace("|", "\\|") + "``" if text else ""


def main(arguments: Sequence[str], root: Path = ROOT) -> list[Mutant]:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--only", nargs="+", default=CORE, help="packages, modules or patterns in prplugin/")
    parser.add_argument("--tests", nargs="+", default=FOLDERS, help="folders or files in tests/")
    parser.add_argument("--count", type=int, default=300, help="mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=40, help="seconds of tests per mutant, as recorded")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time for everything")
    parser.add_argument("--again", type=Path, help="earlier report, whose survivors are tested instead of a sample")
    parser.add_argument("--lines", type=Path, help="file of the recorded lines: written where it does not exist")
    parser.add_argument("--output", type=Path, default=root / "conformance/results/mutations.md")
    options = parser.parse_args(arguments)
    for given, default, folder in ((options.only, CORE, PACKAGE), (options.tests, FOLDERS, "tests")):
        absent = [name for name in given if given is not default and not any((root / folder).glob(name))]
        if absent:
            parser.error(f"{folder}/ has no {', '.join(absent)}: names are relative to that folder, as in {default[0]}")
    deadline = time.monotonic() + options.seconds
    mutants, settings = chosen(mutants_of(root, options.only), options)
    for name, default in (("only", CORE), ("tests", FOLDERS)):
        if tuple(given := getattr(options, name)) != default:
            settings += f" --{name} {' '.join(given)}"
    with TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        first = Copy(Path(folder, "0", root.name).resolve(), root, deadline)
        shutil.copytree(root, first.root, ignore=IGNORED)
        if any(mutant.file.suffix != ".py" for mutant in mutants) and first.run(COMPILE) != 0:
            sys.exit("The CPU kernels do not compile: leave out C++ by --only.")
        copies.put(first)
        for i in range(1, options.jobs):
            copy = Copy(Path(folder, str(i), root.name).resolve(), root, deadline)
            shutil.copytree(first.root, copy.root)
            copies.put(copy)

        def record(files: Sequence[str]) -> dict[str, Any]:
            copy = copies.get()
            try:
                return copy.record(files, limit=options.seconds / 2)
            finally:
                copies.put(copy)

        if options.lines and options.lines.exists():
            records = json.loads(options.lines.read_text(encoding="utf-8"))
        else:
            records = list(pool.map(record, shares_of(root, options.tests, 3 * options.jobs)))
            if options.lines:
                options.lines.write_text(json.dumps(records), encoding="utf-8")
        tests = Tests(root, records)
        print(f"{len(tests.seconds)} tests take {sum(tests.seconds.values()):.0f} s", flush=True)
        futures = {pool.submit(examine, copies, mutant, tests, options.limit): mutant for mutant in mutants}
        for future in as_completed(futures):
            future.result()
            mutant = futures[future]
            options.output.write_text(report(mutants, tests, settings), encoding="utf-8")
            print(f"{mutant.result or 'no time':12} {mutant.file}:{mutant.line}: {mutant.new}", flush=True)
    return mutants


def chosen(every: Sequence[Mutant], options: argparse.Namespace) -> tuple[list[Mutant], str]:
    """Return a sample, or the survivors of an earlier report, and the options that chose them."""
    if options.again:
        earlier = re.sub(r":\d+ \|", " |", options.again.read_text(encoding="utf-8"))  # lines move
        mutants = [mutant for mutant in every if f"| {mutant.file.as_posix()} {mutant.change}" in earlier]
        return mutants, f"--again {options.again.name} --limit {options.limit:g}"
    mutants = random.Random(options.seed).sample(every, min(options.count, len(every)))
    return mutants, f"--count {len(mutants)} --seed {options.seed} --limit {options.limit:g}"


def shares_of(root: Path, names: Sequence[str], count: int) -> list[list[str]]:
    """Return the files of tests in at most `count` lists of about equal sizes, the largest files first."""
    given = [root / "tests" / name for name in names]
    paths = [path for each in given for path in (each.rglob("test_*.py") if each.is_dir() else [each]) if path.exists()]
    ordered = sorted(paths, key=lambda path: -path.stat().st_size)
    return [share for i in range(count) if (share := [str(path.relative_to(root)) for path in ordered[i::count]])]


if __name__ == "__main__":
    main(sys.argv[1:])
