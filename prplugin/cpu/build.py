"""Compilation of the CPU kernels: the build hook of the package, and a command for developers.

``python prplugin/cpu/build.py`` compiles the libraries of this machine into `prplugin/cpu/lib`. It needs a C++ compiler,
or the package `ziglang`, which contains one for every platform.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent
LIBRARIES = HERE / "lib"

FLAGS = [
    "-std=c++17", "-O3", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno",
    "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror",
]  # fmt: skip
"""No option may let the compiler reorder or fuse floating-point operations: the error bounds count roundings."""

LEVELS = {1: [], 3: ["-mavx2", "-mfma", "-mbmi2"]}
"""Instruction sets of x86-64 for which a library is built; other processors have level 1 alone."""


def sources() -> list[Path]:
    """Return the source files of the kernels, in a fixed order."""
    return sorted(PACKAGE.rglob("*.cpp"))


def digest() -> str:
    """Return a hash of all sources, by which a stale library is recognized."""
    found = hashlib.sha256()
    for file in [*sources(), *sorted(PACKAGE.rglob("*.hpp"))]:
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


def compiler() -> list[str] | None:
    """Return the command of a C++ compiler, or None."""
    for name in ("c++", "g++", "clang++"):
        if (found := shutil.which(name)) is not None:
            return [found]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def suffix() -> str:
    """Return the suffix of a shared library on this system."""
    return {"Darwin": ".dylib", "Windows": ".dll"}.get(platform.system(), ".so")


def build(folder: Path = LIBRARIES, flags: list[str] | None = None) -> list[Path]:
    """Compile the libraries of this machine into a folder, and return their paths."""
    command = compiler()
    if command is None:
        raise FileNotFoundError("no C++ compiler: install one, or the package ziglang")
    folder.mkdir(parents=True, exist_ok=True)
    levels = LEVELS if platform.machine().lower() in ("x86_64", "amd64") else {1: []}
    built = []
    for level, instructions in levels.items():
        library = folder / f"kernels-{level}{suffix()}"
        options = [*FLAGS, *instructions, *(flags or []), f'-DSOURCES="{digest()}"', f"-I{HERE}"]
        files = ["-x", "c++", *map(str, sources())]
        subprocess.run([*command, *options, *files, "-o", str(library), "-lpthread"], check=True)
        built.append(library)
    return built


if __name__ == "__main__":
    print(*build(flags=sys.argv[1:]), sep="\n")
