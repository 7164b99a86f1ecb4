"""Threads and memory that a process may use: on any system, and within the limits of control groups."""

from __future__ import annotations

import ctypes
import math
import os
from types import SimpleNamespace

import pytest

from prplugin import machine

GIB = 1 << 30


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return a function that writes /proc and /sys/fs/cgroup of a machine with 64 cores and 100 GiB of free memory."""
    monkeypatch.setattr(machine, "PROC", tmp_path / "proc")
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64), raising=False)

    def write(groups, files):
        texts = {"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {100 * GIB >> 10} kB\n", "proc/self/cgroup": groups}
        texts |= {f"cgroup/{name}": text for name, text in files.items()}
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


V1 = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n0::/system.slice/docker.service\n"


@pytest.mark.parametrize(
    ("groups", "files", "threads"),
    [
        ("0::/\n", {}, 64),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "8000000 100000\n"}, 64),
        ("0::/a.slice/b.scope\n", {"a.slice/cpu.max": "300000 100000\n", "a.slice/b.scope/cpu.max": "max 100000\n"}, 3),
        ("0::/a.slice/b.scope\n", {"a.slice/cpu.max": "900000 100000\n", "a.slice/b.scope/cpu.max": "50000 10000\n"}, 5),
        ("0::/named/on/the/host\n", {"cpu.max": "400000 100000\n", "other/cpu.max": "100000 100000\n"}, 4),
        ("0::/../../outside\n", {"cpu.max": "400000 100000\n"}, 4),
        (V1, {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        (V1, {"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "50000\n"}, 3),
        (V1, {"cpu/docker/abc/cpu.cfs_quota_us": "20000\n", "cpu/docker/abc/cpu.cfs_period_us": "10000\n"}, 2),
        (V1, {"memory/cpu.max": "100000 100000\n"}, 64),
    ],
)  # fmt: skip
def test_threads_follow_the_quotas_of_control_groups(system, groups, files, threads):
    system(groups, files)
    assert machine.this_machine().threads == threads


@pytest.mark.parametrize(
    ("groups", "files", "left"),
    [
        ("0::/\n", {}, 100 * GIB),
        ("0::/\n", {"memory.max": "max\n", "memory.current": "9\n", "memory.stat": "anon 5\n"}, 100 * GIB),
        ("0::/\n", {"memory.max": "1000\n", "memory.current": "700\n", "memory.stat": "anon 5\ninactive_file 50\n"}, 350),
        ("0::/a/b\n", {"a/memory.max": "1000\n", "a/memory.current": "700\n", "a/memory.stat": "anon 5\n"}, 300),
        (V1, {"memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "700\n",
              "memory/memory.stat": "inactive_file 3\ntotal_inactive_file 50\n"}, 350),
        (V1, {"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/memory.usage_in_bytes": "700\n",
              "memory/memory.stat": "total_inactive_file 50\n"}, 100 * GIB),
    ],
)  # fmt: skip
def test_memory_follows_the_limits_of_control_groups(system, groups, files, left):
    system(groups, files)
    assert machine.bytes_available() == left


@pytest.fixture
def without_linux(tmp_path, monkeypatch):
    """Let neither /proc nor /sys be there, nor functions that Linux alone has."""
    monkeypatch.setattr(machine, "PROC", tmp_path / "absent")
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "absent")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)


def test_without_linux_threads_are_cores_and_memory_is_that_of_the_machine(without_linux, monkeypatch):
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__, raising=False)
    assert machine.this_machine().threads == 6
    assert machine.bytes_available() == 4_096_000


class MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX, as Microsoft documents it."""

    _fields_ = [
        ("dwLength", ctypes.c_uint32), ("dwMemoryLoad", ctypes.c_uint32), ("ullTotalPhys", ctypes.c_uint64),
        ("ullAvailPhys", ctypes.c_uint64), ("ullTotalPageFile", ctypes.c_uint64), ("ullAvailPageFile", ctypes.c_uint64),
        ("ullTotalVirtual", ctypes.c_uint64), ("ullAvailVirtual", ctypes.c_uint64),
        ("ullAvailExtendedVirtual", ctypes.c_uint64),
    ]  # fmt: skip


@pytest.mark.parametrize("succeeds", [True, False])
def test_available_memory_on_windows(without_linux, monkeypatch, succeeds):
    def fill(buffer):
        status = MemoryStatus.from_buffer(buffer)
        if succeeds and status.dwLength == ctypes.sizeof(MemoryStatus) == ctypes.sizeof(buffer):
            status.ullTotalPhys, status.ullAvailPhys, status.ullTotalPageFile = 8 * GIB, 3 * GIB, 9 * GIB
            return 1
        return 0

    monkeypatch.delattr(os, "sysconf", raising=False)
    kernel32 = SimpleNamespace(GlobalMemoryStatusEx=fill)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel32), raising=False)
    assert machine.bytes_available() == (3 * GIB if succeeds else math.inf)
