"""Circumstances of a run for its report: machine, versions, commit and command."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import prplugin
from prplugin.machine import this_machine

__all__ = ["circumstances"]

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "numpy", "pandas", "networkx", "scipy", "cupy", "cudf", "pylibcudf", "cugraph", "pylibcugraph", "rmm",
    "nx_cugraph",
)  # fmt: skip


def circumstances(command: str, packages: Iterable[str] = ()) -> dict[str, Any]:
    """Return machine, versions, commit and command, without host names and paths; `packages` adds versions."""
    versions = {"python": platform.python_version(), "prplugin": prplugin.__version__}
    distributions = _distributions()
    for package in (*PACKAGES, *packages):
        if found := _version(package, [package, *distributions.get(package, [])]):
            versions[package] = found
    return {
        "command": command,
        "commit": _commit(),
        "machine": {"processor": _cpu(), "cores": this_machine().threads, "device": device_name()},
        "versions": versions | _drivers(),
    }


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Return the distributions of each importable package; reading their metadata takes about a second."""
    return packages_distributions()


def _version(package: str, distributions: list[str]) -> str | None:
    """Return the version of a package from its metadata, or from the module if there is no metadata.

    Distributions of RAPIDS have names such as cudf-cu13.
    """
    for distribution in distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return getattr(sys.modules.get(package), "__version__", None)


def _commit() -> str:
    def git(*arguments: str) -> str:
        completed = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
        return completed.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ".", ":!conformance/results", ":!benchmarks/results")
        return git("rev-parse", "HEAD") + (" + changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "not in a git checkout"


def _cpu() -> str:
    """Return the model name of the CPU, which Linux lists in /proc/cpuinfo."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def device_name() -> str | None:
    """Return the name of the GPU that CuPy uses, or None."""
    try:
        import cupy  # slow to import, and optional

        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except Exception:  # the class depends on whether CuPy, the driver or the device is missing
        return None


def _drivers() -> dict[str, str]:
    """Return the versions of CUDA's runtime, of its compiler and of the driver, if there is a GPU."""
    if device_name() is None:
        return {}
    import cupy  # installed, since `device_name` found a GPU

    def dotted(number: int) -> str:
        return f"{number // 1000}.{number % 1000 // 10}"

    found = {
        "CUDA": dotted(cupy.cuda.runtime.runtimeGetVersion()),
        "NVRTC": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        "CUDA of the driver": dotted(cupy.cuda.runtime.driverGetVersion()),
    }
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
        completed = subprocess.run(query, capture_output=True, text=True, check=True)
        found["driver"] = completed.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pass
    return found
