"""The roofline benchmark without a GPU: required bytes by formula, the CSV of ncu, and rows that combine both."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import ncu, roofline, traffic
from benchmarks.report import complete
from benchmarks.roofline_workload import Case, Trace, report

LOG = """\
==PROF== Connected to process 4711 (/usr/bin/python3.12)
==PROF== Profiling "begin" - 0: 0%....50%....100% - 1 pass
==PROF== Profiling "persist" - 1: 0%....50%....100% - 2 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","launch__occupancy_limit_blocks","launch__occupancy_limit_registers","launch__occupancy_limit_shared_mem","launch__occupancy_limit_warps","lts__t_bytes.sum","lts__t_bytes.sum.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","","","","","","","","","byte","byte","ns","block","block","block","block","byte","%","%"
"0","4711","python3.12","127.0.0.1","begin","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","1,000","500","2,000","32","8","16","8","4,096","12.50","60.25"
"1","4711","python3.12","127.0.0.1","persist","1","7","(256, 1, 1)","(528, 1, 1)","0","9.0","8000000","1000000","10000","32","4","6","8","n/a","70.0","50.0"
"""


# --- required bytes -----------------------------------------------------------------------------------------------


def test_kernels_have_formulas_in_names_of_their_parameters():
    signatures = {
        f"{path.rpartition('/')[2].removesuffix('.cu')}.{name}": names
        for path in traffic.COUNTED
        for name, names in traffic.parameters(path).items()
    }
    assert set(traffic.BYTES) == set(signatures)
    for kernel, formula in traffic.BYTES.items():
        if isinstance(formula, str):
            assert set(formula.split()) <= set(signatures[kernel]), kernel


def test_parameters_are_read_from_the_source():
    assert traffic.parameters("gpu/grouped.cu") == {
        "mark_endpoints": ("range", "ins", "outs", "bits"),
        "compact": ("range", "n", "low", "marks", "ins", "outs", "ids", "ins_by_position", "out_weights"),
        "compact_codes": ("m", "codes", "marks"),
    }  # fmt: skip
    assert len(traffic.parameters("methods/persistent.cu")["persist"]) == 35
    assert {"persist", "propagate", "sort_pass", "node_pull"} <= set(traffic.kernel_names())


def arrays(**shapes):
    """Return arrays by name, of the given sizes and types."""
    return {name: np.zeros(size, dtype) for name, (size, dtype) in shapes.items()}


ROW_OFFSETS = np.array([0, 2, 2, 5, 9], np.int32)
PULL = {
    **arrays(sources=(9, "i4"), contributions=(4, "f4"), row_sums=(4, "f8")),
    "rows": None, "normalized_weights": None, "begins": ROW_OFFSETS[:-1], "ends": ROW_OFFSETS[1:], "first": 0, "last": 4,
}  # fmt: skip
SORT = {
    **arrays(keys=(10, "i4"), values=(10, "i8"), keys_out=(10, "i4"), values_out=(10, "i4"), states=(256, "u4"), next_states=(256, "u4")),
    "weights": 0, "weights_out": 0,
}  # fmt: skip
PERSIST = {
    **arrays(cuts=(3, "i4"), offsets=(11, "i4"), sources=(50, "i4"), target=(1, "f8"), teleport=(1, "f8"), inverse_out_weight=(10, "f8")),
    **arrays(**{"ranks": (10, "f8"), "from": (10, "f4"), "to": (10, "f4")}), "normalized_weights": None,
}  # fmt: skip
PROPAGATE = {
    **PERSIST,
    **arrays(bounds=(6, "i8"), tile_sources=(64, "u2"), chunk_by_piece=(8, "u4"), piece_rows=(64, "u2"), values=(64, "f4")),
    **arrays(marks=(1, "u8"), unit_bounds=(12, "i8")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "arguments", "moved"),
    [
        ("node.node_pull", PULL, 9 * 4 + 5 * 4 + 4 * 4 + 4 * 8),
        ("node.node_pull", {**PULL, "first": 2, "last": 4}, 7 * 4 + 3 * 4 + 4 * 4 + 2 * 8),
        ("warp.warp_pull", {**PULL, "rows": np.zeros(4, "i4"), "first": 0, "last": 2}, 2 * 4 + 2 * 12 + 4 * 4 + 2 * 8),
        ("block.block_pull", {**PULL, "normalized_weights": np.zeros(9, "f4")}, 9 * 8 + 5 * 4 + 4 * 4 + 4 * 8),
        ("sort.sort_pass", SORT, 10 * (4 + 8 + 4 + 4) + 2 * 256 * 4),
        ("sort.sort_pass", {**SORT, "values": 0}, 10 * (4 + 4 + 4) + 2 * 256 * 4),
        ("persistent.persist", PERSIST, 50 * 4 + 3 * 4 + 11 * 4 + 2 * 8 + 10 * (8 + 8 + 8 + 4 + 4)),
        ("persistent.persist", {**PERSIST, "normalized_weights": np.zeros(50, "f4")}, 50 * 8 + 3 * 4 + 11 * 4 + 2 * 8 + 10 * 32),
        (
            "propagation_blocking.propagate",  # a value per edge is written and read
            PROPAGATE, 64 * (2 + 2 + 2 * 4) + 8 * 4 + 6 * 8 + 8 + 12 * 8 + 2 * 8 + 10 * 32,
        ),
        (
            "sparse_ids.place",
            arrays(keys=(5, "u8"), slots=(5, "i4"), positions=(9, "u8"), ids=(5, "i8")), 5 * (8 + 4 + 4 + 8),
        ),
        ("sparse_ids.recode", {**arrays(a=(7, "i4"), b=(7, "i4"), positions=(9, "u8")), "c": 0}, 4 * 7 * 4 + 9 * 4),
        ("somewhere.else", {}, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_required_bytes_of_a_launch(kernel, arguments, moved):
    assert traffic.required_bytes(kernel, arguments) == moved


# --- ncu ----------------------------------------------------------------------------------------------------------


def test_raw_page_is_parsed_in_seconds_and_bytes():
    begin, persist = ncu.parse(LOG)
    assert begin.pop("seconds") == pytest.approx(2e-6)
    assert begin == {
        "kernel": "begin", "read": 1000.0, "written": 500.0, "L2": 4096.0, "L2 %": 12.5,
        "occupancy %": 60.25, "blocks": 32.0, "registers": 8.0, "shared memory": 16.0, "warps": 8.0,
    }  # fmt: skip
    assert persist["read"] == 8e6
    assert "L2" not in persist  # the value is n/a


@pytest.mark.parametrize(("unit", "scale"), [("Mbyte", 1e6), ("Kbyte", 1e3), ("byte", 1.0)])
def test_units_are_converted(unit, scale):
    text = LOG.replace('"byte","byte","ns"', f'"{unit}","byte","ns"')
    assert ncu.parse(text)[0]["read"] == 1000 * scale


def test_passes_are_counted():
    assert ncu.passes(LOG) == 2
    assert ncu.passes("") == 0


def test_reason_why_nothing_was_profiled():
    assert ncu.parse("==PROF== Connected to process 1\n") == []
    denied = '==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access "counters"\n'
    assert ncu.failure_reason(denied) == "ncu may not read the counters here (ERR_NVGPUCTRPERM)"
    assert ncu.failure_reason("==ERROR== Failed to find metric x\n") == "ncu: Failed to find metric x"
    assert ncu.failure_reason("==WARNING== No kernels were profiled.\n") == "ncu profiled no kernel"


def test_command_profiles_the_named_kernels_on_request_of_the_child(tmp_path):
    command = ncu.command("ncu", tmp_path / "log", ["persist", "begin"], ["python", "child.py"])
    assert command[0] == "ncu"
    assert command[-2:] == ["python", "child.py"]
    assert command[command.index("--kernel-name") + 1] == "regex:^(persist|begin)$"
    assert command[command.index("--clock-control") + 1] == "none"
    assert command[command.index("--profile-from-start") + 1] == "off"
    assert "dram__bytes_read.sum" in command[command.index("--metrics") + 1].split(",")


# --- rows ---------------------------------------------------------------------------------------------------------


def launch(kernel, moved, *seconds):
    return {"kernel": kernel, "bytes": moved, "seconds": list(seconds)}


TIMED_LINES = [
    {"copy": 1e12},
    {"graph": "g", "case": "persistent", "launches": [launch("finish.begin", 1000, 4e-6, 5e-6, 9e-6), launch("persistent.persist", 4_000_000, 12e-6)]},
    {"graph": "g", "case": "broken", "launches": [], "reason": "MemoryError: no room"},
]  # fmt: skip
PROFILED_LINES = [
    {**line, "launches": [{**one, "seconds": []} for one in line["launches"]]} for line in TIMED_LINES if "case" in line
]


def rows_with(monkeypatch, *, log=LOG, profiled=PROFILED_LINES, program="ncu", failure=""):
    """Return the rows of the benchmark with a stubbed child process and this log of ncu."""

    def run_child(before, arguments):
        if not before:
            return TIMED_LINES, failure
        Path(before[before.index("--log-file") + 1]).write_text(log)
        assert arguments == ["--profile"]
        return profiled, ""

    monkeypatch.setattr(roofline, "_run_workload", run_child)
    monkeypatch.setattr(ncu, "find", lambda: program)
    return [complete(roofline, row) for row in roofline.rows(None, quick=False)]


def test_rows_combine_times_required_bytes_and_counters(monkeypatch):
    begin, persist, broken = rows_with(monkeypatch)
    assert begin["us by events"] == pytest.approx(5)
    assert begin["us by ncu"] == pytest.approx(2)
    assert begin["required MB"] == pytest.approx(0.001)
    assert begin["DRAM MB"] == pytest.approx(0.0015)
    assert begin["required, % of memory"] == pytest.approx(100 * 1000 / 2e-6 / 1e12)
    assert begin["limiter"] == "registers, warps"
    assert persist["DRAM, % of memory"] == pytest.approx(90)
    assert persist["required, % of memory"] == pytest.approx(40)
    assert (persist["L2 MB"], persist["% of L2"], persist["occupancy %"]) == ("", pytest.approx(70), pytest.approx(50))
    assert persist["limiter"] == "registers"
    assert persist["note"] == "ncu took 2 passes"
    assert (broken["case"], broken["note"]) == ("broken", "MemoryError: no room")
    assert all(set(roofline.COLUMNS) <= set(row) for row in (begin, persist, broken))


def test_launches_of_a_kernel_are_summed(monkeypatch):
    both = [launch("sort.sort_pass", 100, 1e-6), launch("sort.sort_pass", 200, 3e-6), launch("cut.cut", None, 1e-6)]
    monkeypatch.setattr(
        sys.modules[__name__], "TIMED_LINES", [{"copy": 1e12}, {"graph": "g", "case": "ingest", "launches": both}]
    )
    passes, cut = rows_with(monkeypatch, program=None)
    assert (passes["launches"], passes["us by events"]) == (2, pytest.approx(4))
    assert passes["required MB"] == pytest.approx(3e-4)
    assert passes["required, % of memory"] == pytest.approx(100 * 300 / 4e-6 / 1e12)
    assert (cut["required MB"], cut["required, % of memory"]) == ("", "")


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"program": None}, "ncu is not installed"),
        ({"log": "==ERROR== ERR_NVGPUCTRPERM - no"}, "ncu may not read the counters here (ERR_NVGPUCTRPERM)"),
        ({"log": ""}, "ncu profiled no kernel"),
    ],
)
def test_rows_without_counters_have_times_and_the_reason(monkeypatch, options, note):
    begin, persist, _ = rows_with(monkeypatch, **options)
    assert begin["note"] == persist["note"] == note
    assert persist["required, % of memory"] == pytest.approx(100 * 4e6 / 12e-6 / 1e12)
    assert persist["DRAM MB"] == persist["us by ncu"] == ""


def test_kernel_with_another_number_of_launches_in_ncu_has_no_counters(monkeypatch):
    log = "\n".join(line for line in LOG.splitlines() if not line.startswith('"0"')) + "\n"
    begin, persist, _ = rows_with(monkeypatch, log=log)
    assert begin["us by ncu"] == ""
    assert persist["us by ncu"] == pytest.approx(10)


def test_failed_run_is_a_row(monkeypatch):
    *_, last = rows_with(monkeypatch, failure="exit status 1: killed")
    assert last["note"] == "exit status 1: killed"


def test_exit_status_and_errors_of_a_child(monkeypatch):
    assert roofline._run_command([sys.executable, "-c", "pass"]) == ""
    failing = "import sys; print('failed', file=sys.stderr); sys.exit(3)"
    assert roofline._run_command([sys.executable, "-c", failing]) == "exit status 3: failed"
    assert "No such file" in roofline._run_command(["/nowhere/ncu"])
    monkeypatch.setattr(roofline, "TIME_LIMIT", 0.2)
    assert roofline._run_command([sys.executable, "-c", "import time; time.sleep(60)"]) == "ended after 0.2 seconds"


def test_lines_written_before_a_crash_are_kept(monkeypatch):
    def run(command):
        with open(command[command.index("--output") + 1], "w") as output:
            output.write(json.dumps({"copy": 1.0}) + "\n" + '{"graph": "g", "ca')
        return "exit status -9"

    monkeypatch.setattr(roofline, "_run_command", run)
    assert roofline._run_workload([], ["--quick"]) == ([{"copy": 1.0}], "exit status -9")


def test_there_is_a_figure_per_graph(monkeypatch):
    monkeypatch.setattr(roofline, "MIN_DRAWN", 0.0)
    figures = roofline.figures(rows_with(monkeypatch))
    (panel,) = figures["g"].axes
    assert panel.get_title() == "g"
    assert [label.get_text() for label in panel.get_yticklabels()] == [
        "persistent: finish.begin",
        "persistent: persistent.persist",
    ]
    assert roofline.figures([]) == {}


# --- the workload -------------------------------------------------------------------------------------------------


class Kernel:
    """A stub of the kernels that `prplugin.gpu.runtime.kernel` returns; it records its launches."""

    def __init__(self, launched):
        self._launched = launched
        self.max_dynamic_shared_size_bytes = 1
        self.kernel = self
        self.ptr = 7

    def __call__(self, grid, block, arguments, **options):
        self._launched.append((grid, block, arguments, options))


@pytest.fixture
def stubbed_cupy(monkeypatch):
    event = SimpleNamespace(record=lambda: None)
    runtime = SimpleNamespace(deviceSynchronize=lambda: None)
    gpu = SimpleNamespace(Event=lambda: event, runtime=runtime, get_elapsed_time=lambda begin, end: 0.25)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=gpu))
    monkeypatch.setitem(sys.modules, "cupyx.profiler", SimpleNamespace(profile=nullcontext))


def test_launches_are_recorded_and_forwarded(stubbed_cupy):
    launched = []
    inner = Kernel(launched)
    trace = Trace(lambda path, name, **macros: inner)
    launch = trace.kernel("gpu/cut.cu", "cut", index_t="int")
    launch.max_dynamic_shared_size_bytes = 9
    assert inner.max_dynamic_shared_size_bytes == 9
    assert launch.kernel.ptr == 7
    arguments = (1, 2, 3, 4, None, np.zeros(5, "i4"))
    reported = report(
        Case("a cut", lambda: lambda: launch.kernel((1,), (2,), arguments, shared_mem=3)), trace, profile=False
    )
    assert reported == {"case": "a cut", "launches": [{"kernel": "cut.cut", "bytes": 20, "seconds": [0.00025] * 5}]}
    assert launched == [((1,), (2,), arguments, {"shared_mem": 3})] * 6
    assert not trace.launches


def test_failure_is_reported_with_the_launches_before_it(stubbed_cupy):
    trace = Trace(lambda path, name, **macros: Kernel([]))
    kernel = trace.kernel("gpu/cut.cu", "cut")
    times = iter(range(2))

    def work():
        kernel((1,), (1,), (1, 2, 3, 4, None, np.zeros(5, "i4")))
        next(times)

    reported = report(Case("twice", lambda: work), trace, profile=False)
    assert reported["reason"].startswith("StopIteration")
    assert reported["launches"] == [{"kernel": "cut.cut", "bytes": 20, "seconds": [0.00025]}]
    assert (
        report(Case("not ready", lambda: 1 / 0), trace, profile=True)["reason"] == "ZeroDivisionError: division by zero"
    )
