"""Nsight Compute (ncu): hardware counters of kernels, or the reason why they are unavailable."""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

__all__ = ["LIMITS", "METRICS", "command", "failure_reason", "find", "parse", "passes"]

LIMITS = {
    "blocks": "launch__occupancy_limit_blocks",
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
}
"""Metrics of the resident blocks per multiprocessor by limiting resource; they need no hardware counter."""

METRICS = {
    "seconds": "gpu__time_duration.sum",
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "L2": "lts__t_bytes.sum",
    "L2 %": "lts__t_bytes.sum.pct_of_peak_sustained_elapsed",
    "occupancy %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    **LIMITS,
}
"""Metrics that fit one pass, so that no launch is replayed; see `passes`."""

SCALES = {
    "nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3, "second": 1.0, "s": 1.0,
    "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12,
}  # fmt: skip
"""Factors of units to seconds or bytes; other units are unchanged."""


def find() -> str | None:
    """Return the path of ncu, from PATH or from an installation of CUDA, or None."""
    return shutil.which("ncu") or shutil.which("ncu", path=os.pathsep.join(_cuda_folders()))


def _cuda_folders() -> list[str]:
    return [str(folder) for folder in sorted(Path("/usr/local").glob("cuda*/bin"), reverse=True)]


def command(ncu: str, log: Path, kernels: Iterable[str], child: list[str]) -> list[str]:
    """Return the command that profiles kernels of these names while the child process enables profiling.

    Clocks are not locked and caches are not flushed, as in the run without a profiler.
    """
    return [
        ncu, "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off",
        "--kernel-name", f"regex:^({'|'.join(kernels)})$", "--metrics", ",".join(METRICS.values()),
        "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log), *child,
    ]  # fmt: skip


def parse(text: str) -> list[dict[str, float | str]]:
    """Parse the raw page, which is CSV among other lines.

    Returns
    -------
    list of dict
        One per launch, in order: "kernel", and the values by the names of `METRICS`, in seconds, bytes, per cent or
        blocks. Metrics without a value are absent.
    """
    lines = text.splitlines()
    begin = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    table = csv.DictReader(line for line in lines[begin:] if line.startswith('"'))
    names = {metric: name for name, metric in METRICS.items()}
    units: dict[str, str] = {}
    launches = []
    for row in table:
        if not row["ID"]:  # row of units
            units = row
            continue
        launch: dict[str, float | str] = {"kernel": row["Kernel Name"].partition("(")[0]}
        for metric, name in names.items():
            number = _number(row.get(metric, ""))
            if number is not None:
                launch[name] = number * SCALES.get(units.get(metric, "").lower(), 1.0)
        launches.append(launch)
    return launches


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:  # such as n/a
        return None


def passes(text: str) -> int:
    """Return the largest number of passes of a launch; 0 if none was profiled."""
    return max(map(int, re.findall(r"- (\d+) pass", text)), default=0)


def failure_reason(text: str) -> str:
    """Return the reason why ncu has no counters."""
    if "ERR_NVGPUCTRPERM" in text:
        return "ncu may not read the counters here (ERR_NVGPUCTRPERM)"
    errors = [line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERROR==")]
    return f"ncu: {errors[0]}" if errors else "ncu profiled no kernel"
