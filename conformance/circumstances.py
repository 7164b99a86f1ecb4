"""What a run ran on: the machine, the versions and the commit that a report names."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import prplugin
from prplugin.machine import this_machine

__all__ = ["circumstances"]

ROOT = Path(__file__).parents[1]
PACKAGES = ("numpy", "pandas", "numba", "networkx", "scipy", "cupy", "cudf", "cugraph")


def circumstances(command: str) -> dict[str, Any]:
    """Say what ran on what, and by which command: no host names, no paths."""
    versions = {"python": platform.python_version(), "prplugin": prplugin.__version__}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "command": command,
        "commit": _commit(),
        "machine": {"processor": _processor(), "cores": this_machine().threads, "device": _device()},
        "versions": versions,
    }


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ".", ":!conformance/results", ":!benchmarks/results")
        return git("rev-parse", "HEAD") + (" + changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "not in a git checkout"


def _processor() -> str:
    """Name the model: Linux keeps it in a file of its own."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _device() -> str | None:
    """Name the GPU that CuPy would use, if there is one."""
    try:
        import cupy  # takes a while, and is absent from most machines

        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except Exception:  # no CuPy, no driver and no device each raise something else
        return None
