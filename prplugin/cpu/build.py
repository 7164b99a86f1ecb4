"""Compilation of the CPU kernels: for the build hook of the package, and a command for developers.

``python prplugin/cpu/build.py`` compiles the libraries of this machine into `prplugin/cpu/lib`; arguments are further
options of the compiler. It needs a C++ compiler (`CXX`, if set), or the package `ziglang`, which contains one for every
platform. This module imports nothing of the package, which may not be installed yet.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
LIBRARIES = HERE / "lib"

FLAGS = [
    "-std=c++17", "-O3", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno",
    "-fPIC",
]  # fmt: skip
"""No option may let the compiler reorder or fuse floating-point operations: the error bounds count roundings."""

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
"""Only for developers: an installation does not fail at a warning of a later compiler."""

LEVELS = {1: [], 3: ["-mavx2", "-mfma", "-mbmi2"]}
"""Instruction sets of x86-64 for which a library is built; other processors have level 1 alone."""

CHECKED = """
#include <pthread.h>
typedef float Pair __attribute__((vector_size(8)));
typedef double Wide __attribute__((vector_size(16)));
Wide widened(Pair pair) { return __builtin_convertvector(pair, Wide); }
"""
"""Source that a usable compiler accepts: threads, and conversions of vectors, which GCC has from version 9 on."""

VECTORIZED = {"batch", "extremes", "interpreter", "residual"}
"""Sources of the libraries above level 1: those that are faster there, and what each library has for itself."""

TARGETS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}
"""Target of zig for each platform that has wheels, by the platform's tag."""


def sources() -> list[Path]:
    """Return the source files of the kernels, in a fixed order."""
    return sorted(HERE.glob("*.cpp"))


@cache
def digest() -> int:
    """Return a hash of all sources, by which `prplugin.cpu.library` recognizes a stale library."""
    found = hashlib.sha256()
    for file in [*sources(), *sorted(HERE.glob("*.hpp"))]:
        found.update(file.read_bytes())
    return int.from_bytes(found.digest()[:7], "big")


def suffix(system: str) -> str:
    """Return the suffix of a shared library, for a platform tag or the name of a system."""
    return {"mac": ".dylib", "dar": ".dylib", "win": ".dll"}.get(system[:3].lower(), ".so")


def this_platform() -> str | None:
    """Return the platform tag of this machine, or None if there are no wheels for it."""
    system, machine = platform.system(), platform.machine().lower()
    if system == "Linux" and platform.libc_ver()[0] != "glibc":
        return None
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    target = f"{machine}-{'macos' if system == 'Darwin' else system.lower()}"
    return next((tag for tag in TARGETS if TARGETS[tag].startswith(target)), None)


def system_compiler() -> list[str] | None:
    """Return the command of a C++ compiler that works, or None.

    On Windows those found on PATH link libraries that are not there when the kernels are loaded.
    """
    import shlex  # not where kernels are only loaded

    commands = [shlex.split(os.environ.get("CXX", "")), ["c++"], ["g++"], ["clang++"]]
    for command in commands if platform.system() != "Windows" else commands[:1]:
        if not command or shutil.which(command[0]) is None:
            continue
        check = [*command, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
        if subprocess.run(check, input=CHECKED.encode(), capture_output=True, check=False).returncode == 0:
            return command
    return None


def build(folder: Path = LIBRARIES, flags: Sequence[str] = (), tag: str | None = None) -> list[Path]:
    """Compile the libraries of a platform into a folder, and return their paths; by default those of this machine."""
    command = system_compiler() if tag is None else None
    if command is None:
        if (target := tag or this_platform()) is None or find_spec("ziglang") is None:
            raise FileNotFoundError("no C++ compiler: install one, or the package ziglang")
        # A stated target means the baseline of its instructions, not those of this machine.
        command = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[target], "-s"]
    system, machine = (tag, tag) if tag else (platform.system(), platform.machine().lower())
    folder.mkdir(parents=True, exist_ok=True)

    levels = LEVELS if machine.endswith(("x86_64", "amd64")) else [1]
    options = [*FLAGS, *flags, f"-DSOURCES={digest()}"]

    def compile_file(level: int, source: Path, objects: str) -> str:
        result = f"{objects}/{source.stem}-{level}.o"
        subprocess.run([*command, *options, *LEVELS[level], "-x", "c++", "-c", str(source), "-o", result], check=True)
        return result

    def link(level: int, objects: Iterable[str]) -> Path:
        library = folder / f"kernels-{level}{suffix(system)}"
        # A new file: a process that has loaded the old one keeps it.
        library.unlink(missing_ok=True)
        subprocess.run([*command, *flags, "-shared", *objects, "-o", str(library), "-lpthread"], check=True)
        return library

    # Large files first, so that all cores end at about the same time.
    files = sorted(sources(), key=lambda source: source.stat().st_size, reverse=True)
    with TemporaryDirectory() as objects, ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled: dict[int, list[Future[str]]] = {level: [] for level in levels}
        for level in sorted(levels, reverse=True):
            for file in files:
                if level == 1 or file.stem in VECTORIZED:
                    compiled[level].append(pool.submit(compile_file, level, file, objects))
        return [link(level, [each.result() for each in compiled[level]]) for level in levels]


if __name__ == "__main__":
    print(*build(flags=[*WARNINGS, *sys.argv[1:]]), sep="\n")
