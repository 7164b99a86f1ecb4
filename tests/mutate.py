"""Mutation tests: change one place of the package at a time, and list the changes that no test notices.

    python -m tests.mutate --count 300 --jobs 12 --seconds 540

Each process has a copy of the repository, in which it changes a file, compiles the CPU kernels if the file is C++, and runs
pytest. All mutants meet the tests nearest to their file first; those that survive meet the related ones, and then all
default tests, as long as there is time. The report is rewritten after each result. Code that only a GPU runs is left out.

mutmut and cosmic-ray change Python alone, while a third of the terms of the error bound are in C++. mutmut calls the tests
in forks of one process, which lose the threads of the kernels, and cosmic-ray has one command of tests for every file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.helpers.mutations import NO_CPU, Mutation, mutations

ROOT = Path(__file__).parents[1]
PACKAGE = "prplugin"
CORE = ("solver", "graph", "streams", "numerics.py", "cpu/*.cpp", "cpu/*.hpp", "frames/times.py")
TESTS = {
    "solver": (("solver",), ("streams", "methods/test_methods.py", "api")),
    "graph": (("graph",), ("frames", "streams", "api")),
    "graph/memory.py": (("methods/test_memory.py", "methods/test_estimates.py", "methods/test_budget.py"), ("graph",)),
    "graph/problem.py": (("solver/test_seeds.py", "graph"), ("solver", "api")),
    "streams": (("streams",), ("api", "cpu", "distributed/test_cluster_updates.py")),
    "cpu": (("cpu",), ("solver", "graph", "streams", "methods", "io")),
    "numerics.py": (("solver",), ("cpu", "methods", "streams")),
    "frames": (("frames", "api/test_times.py"), ("api", "graph", "streams")),
    "io": (("io",), ("cli",)),
}
"""Files and folders of tests by package or module: the nearest ones, and related ones. Others have the folder of their name."""

STAGES = ("nearest", "related", "all")
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "site", "*.pyc")
COMPILE = [sys.executable, "prplugin/cpu/build.py", "-O1", "-w"]
"""Command that compiles the kernels. Lower optimization takes a third of the time; no level reorders roundings."""


@dataclass
class Mutant:
    """A mutation of a file, and what became of it: `killed` by which tests, and the `survived` ones before."""

    file: Path
    line: int
    old: str
    new: str
    mutation: Mutation
    killed: str = ""
    survived: list[str] = field(default_factory=list)
    compiles: bool = True

    def tests(self, root: Path, stage: str) -> tuple[str, ...]:
        """Return the files and folders of tests of a stage."""
        if stage == "all":
            return ("tests",)
        package = self.file.parts[1]
        of_package = TESTS.get(package, ((package.removesuffix(".py"),), ()))
        nearest, related = TESTS.get("/".join(self.file.parts[1:]), of_package)
        listed = nearest if stage == "nearest" else related
        return tuple(f"tests/{name}" for name in listed if (root / "tests" / name).exists())


def mutants_of(root: Path, only: Sequence[str]) -> list[Mutant]:
    """Return every mutant of the named packages, modules or patterns."""
    folder, found = root / PACKAGE, []
    files = {
        file for name in only for path in folder.glob(name) for file in ([path] if path.is_file() else path.rglob("*"))
    }
    for file in sorted(files):
        if file.suffix not in (".py", ".cpp", ".hpp") or NO_CPU.search(file.name) or file.name == "build.py":
            continue
        text = file.read_bytes()
        for each in mutations(text, python=file.suffix == ".py"):
            first, last = text.rfind(b"\n", 0, each.start) + 1, text.find(b"\n", each.end)
            new = text[first : each.start] + each.new + text[each.end : last]
            line, old = text.count(b"\n", 0, each.start) + 1, text[first:last]
            # Of a place of several lines the change is in the first that differs.
            pair = zip(_lines(old), [*_lines(new), *[""] * old.count(b"\n")], strict=False)
            skip = next((i for i, (one, other) in enumerate(pair) if one != other), 0)
            shown = _lines(old)[skip:], _lines(new)[skip:]
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

    def run(self, command: Sequence[str], limit: float = float("inf")) -> int | None:
        """Return the exit status of a command, or None if it took more than `limit` seconds, or until the deadline."""
        limit = min(limit, self.deadline - time.monotonic())
        if limit <= 0:
            return None
        environment = os.environ | {"PYTHONPATH": str(self.root)}
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

    def pytest(self, tests: Sequence[str], *options: str, limit: float = float("inf")) -> int | None:
        marks = "not (slow or gpu or cudf or multi_gpu or browser)"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", f"--rootdir={self.root}", "-m", marks]
        return self.run([*command, *options, *tests], limit)

    def baseline(self, tests: Sequence[str]) -> tuple[float, list[str]]:
        """Run tests without a mutation; return the seconds and options that leave out those that fail."""
        began, results = time.monotonic(), self.root / ".results"
        self.pytest(tests, "--continue-on-collection-errors", "-o", f"cache_dir={results}")
        failed = results / "v/cache/lastfailed"
        ids = json.loads(failed.read_text()) if failed.exists() else []
        shutil.rmtree(results, ignore_errors=True)
        return time.monotonic() - began, [f"--{'deselect' if '::' in name else 'ignore'}={name}" for name in ids]

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


def examine(
    copies: SimpleQueue[Copy], mutant: Mutant, tests: Sequence[str], base: tuple[float, list[str]], limit: float
) -> str:
    """Return what tests make of a mutant: killed, survived, not compiled, or nothing for want of time."""
    copy = copies.get()
    try:
        with copy.changed(mutant) as compiles:
            if not compiles:
                return "not compiled" if time.monotonic() < copy.deadline else ""
            status = copy.pytest(tests, "-x", "-p", "no:cacheprovider", *base[1], limit=limit)
    finally:
        copies.put(copy)
    if status is None:  # endless loops take longer than any load of the machine
        return "killed" if time.monotonic() < copy.deadline and limit > 3 * base[0] else ""
    return "survived" if status in (0, 5) else "killed"


# --- Report -----------------------------------------------------------------------------------------------------------


def report(mutants: Sequence[Mutant], bases: dict[tuple[str, ...], tuple[float, list[str]]], settings: str) -> str:
    """Return the page: counts by package, and a table of the survivors."""
    tested = [mutant for mutant in mutants if mutant.compiles and (mutant.killed or mutant.survived)]
    alive = [mutant for mutant in tested if not mutant.killed]
    packages = Counter(mutant.file.parts[1] for mutant in tested)
    left = Counter(mutant.file.parts[1] for mutant in alive)
    summary = (
        f"`python -m tests.mutate {settings}` with Python {platform.python_version()}: of {len(mutants)} mutants "
        f"{sum(not mutant.compiles for mutant in mutants)} do not compile, {len(tested)} met tests, and {len(alive)} survived."
    )
    lines = ["# Mutation tests", "", summary, "", "| package | mutants | survivors |", "|---|---:|---:|"]
    lines += [f"| {name} | {packages[name]} | {left[name]} |" for name in sorted(packages)]
    lines += ["", "## Survivors", "", "| place | change | old | new | survived |", "|---|---|---|---|---|"]
    lines += [
        f"| {mutant.file.as_posix()}:{mutant.line} | {mutant.mutation.what} | {_code(mutant.old)} | {_code(mutant.new)} "
        f"| {', '.join(mutant.survived)} |"
        for mutant in alive
    ]
    left_out = sorted({name.partition("=")[2] for _, options in bases.values() for name in options})
    if left_out:
        lines += [
            "",
            "## Tests left out",
            "",
            "They fail without a mutation.",
            "",
            *(f"- {_code(name)}" for name in left_out),
        ]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return "``" + text.replace("|", "\\|") + "``" if text else ""


def main(arguments: Sequence[str], root: Path = ROOT) -> list[Mutant]:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--only", nargs="+", default=CORE, help="packages, modules or patterns in the package")
    parser.add_argument("--count", type=int, default=300, help="mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=40, help="seconds per mutant and stage, except for all tests")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time for everything")
    parser.add_argument("--output", type=Path, default=root / "conformance/results/mutations.md")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + options.seconds
    every = mutants_of(root, options.only)
    mutants = random.Random(options.seed).sample(every, min(options.count, len(every)))
    bases: dict[tuple[str, ...], tuple[float, list[str]]] = {}
    with TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        first = Copy(Path(folder, "0", root.name), root, deadline)
        shutil.copytree(root, first.root, ignore=IGNORED)
        if any(mutant.file.suffix != ".py" for mutant in mutants) and first.run(COMPILE) != 0:
            sys.exit("The CPU kernels do not compile: leave out C++ by --only.")
        copies.put(first)
        for i in range(1, options.jobs):
            copy = Copy(Path(folder, str(i), root.name), root, deadline)
            shutil.copytree(first.root, copy.root)
            copies.put(copy)

        def base(tests: Sequence[str]) -> tuple[float, list[str]]:
            copy = copies.get()
            try:
                return copy.baseline(tests)
            finally:
                copies.put(copy)

        for stage in STAGES:
            if time.monotonic() > deadline:
                break
            alive = [mutant for mutant in mutants if mutant.compiles and not mutant.killed]
            new = list({tests for mutant in alive if (tests := mutant.tests(root, stage))} - set(bases))
            bases |= dict(zip(new, pool.map(base, new), strict=True))
            limit = options.limit if stage != "all" else float("inf")
            futures = {
                pool.submit(examine, copies, mutant, tests, bases[tests], limit): mutant
                for mutant in alive
                if (tests := mutant.tests(root, stage))
            }
            for future in as_completed(futures):
                mutant, result = futures[future], future.result()
                mutant.compiles = result != "not compiled"
                if result == "killed":
                    mutant.killed = stage
                elif result == "survived":
                    mutant.survived.append(stage)
                settings = f"--count {len(mutants)} --seed {options.seed} --only {' '.join(options.only)}"
                options.output.write_text(report(mutants, bases, settings), encoding="utf-8")
                print(f"{result or 'no time':12} {stage:8} {mutant.file}:{mutant.line}: {mutant.new}", flush=True)
    return mutants


if __name__ == "__main__":
    main(sys.argv[1:])
