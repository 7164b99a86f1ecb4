"""The library of compiled kernels: checks of arguments, signals, threads, forks, and stale or absent libraries."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pull_of_cycle import cycle
from subprocesses import run_python

from prplugin.cpu import library
from prplugin.cpu.build import suffix
from prplugin.cpu.library import Kernel

PACKAGE = Path(__file__).parents[2] / "prplugin"

# A function without parameters in C, which does not look at what it is passed.
accepts = Kernel("sources_digest", "ids:i8[n] offsets:i8[n+1] sums:f8[n/4,3]! weights:f8[n]? low:i8 alpha:f8")
combines = Kernel("sources_digest", "ids:I[n] counts:I[n]")


def arguments(**changes):
    """Return valid arguments of `accepts`, except for the changes."""
    valid = {"ids": np.zeros(5, "i8"), "offsets": np.zeros(6, "i8"), "sums": np.zeros((2, 3)), "weights": np.ones(5)}
    return tuple((valid | {"low": 1, "alpha": 0.5} | changes).values())


def read_only(array):
    array.flags.writeable = False
    return array


def test_the_library_is_compiled_from_these_sources():
    reason = library.unavailable_reason()
    assert reason is None, f"{reason}; compile it by `python prplugin/cpu/build.py`"


@pytest.mark.parametrize("changes", [{}, {"weights": None}, {"alpha": 2}, {"ids": read_only(np.zeros(5, "i8"))}])
def test_valid_arguments_are_passed(changes):
    assert accepts(*arguments(**changes)) == library.digest()


@pytest.mark.parametrize("n", [0, 1, 4])
def test_dimensions_follow_the_size(n):
    sizes = {"ids": np.zeros(n, "i8"), "offsets": np.zeros(n + 1, "i8"), "sums": np.zeros((-(-n // 4), 3))}
    assert accepts(*arguments(**sizes, weights=np.ones(n))) == library.digest()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": np.zeros(5, "i4")}, "ids of the kernel sources_digest has type i4, not i8"),
        ({"ids": np.zeros(5)}, "ids .* has type f8"),
        ({"ids": np.zeros(5, "u8")}, "ids .* has type u8"),
        ({"ids": np.zeros(5, object)}, "ids .* has type"),
        ({"ids": np.zeros(5, "M8[ns]")}, "ids .* has type"),
        ({"ids": None}, "ids .* is no array"),
        ({"ids": [1, 2, 3, 4, 5]}, "ids .* is no array"),
        ({"ids": np.zeros(4, "i8")}, "offsets .* has shape"),
        ({"offsets": np.zeros(0, "i8")}, "offsets .* has shape"),
        ({"sums": np.zeros((1, 3))}, "sums .* has shape"),
        ({"sums": np.zeros((2, 4))}, "sums .* has shape"),
        ({"sums": np.zeros(6)}, "sums .* has shape"),
        ({"weights": np.ones(6)}, "weights .* has shape"),
        ({"weights": np.ones(10)[::2]}, "weights .* is not contiguous"),
        ({"sums": np.zeros((3, 2)).T}, "sums .* is not contiguous"),
        ({"sums": read_only(np.zeros((2, 3)))}, "sums .* writable"),
        ({"weights": np.ones(5).astype(">f8")}, "weights .* has type >f8, not f8"),
        ({"weights": np.frombuffer(bytes(41), "f8", offset=1)}, "weights .* aligned"),
    ],
)
def test_invalid_arguments_are_refused(changes, message):
    with pytest.raises(TypeError, match=message):
        accepts(*arguments(**changes))


def test_type_variables_stand_for_one_type():
    with pytest.raises(TypeError, match=r"counts .* has type i8, not i4"):
        combines(np.zeros(2, "i4"), np.zeros(2, "i8"))
    with pytest.raises(TypeError, match=r"ids .* has type f8"):
        combines(np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("scalar", [1.5, "1", None])
def test_scalars_of_another_type_are_refused(scalar):
    with pytest.raises(Exception, match="argument"):
        accepts(*arguments(low=scalar))


def test_missing_arguments_are_refused():
    with pytest.raises(TypeError, match="argument"):
        accepts(*arguments()[:-1])


def send_later(seconds, number, count=1):
    """Send this process signals from another thread; return the thread, and the list that receives their times."""
    times = []

    def send():
        for _ in range(count):
            time.sleep(seconds)
            times.append(time.perf_counter())
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread, times


def test_an_interrupted_call_ends_soon_and_the_next_one_works():
    # A process that a shell starts in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupt_calls()
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt_calls():
    waited = []
    for _ in range(3):  # the least of three: other processes take the cores at times
        pull = cycle()
        sender, times = send_later(0.2, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            pull.iterate(10_000_000)
        waited.append(time.perf_counter() - times[0])
        sender.join()
        pull = cycle()
        assert pull.iterate(100).size == 100
        np.testing.assert_allclose(pull.ranks.sum(), 1)
    assert min(waited) < 0.2


def test_a_call_goes_on_after_a_handler_that_returns():
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        sender, _ = send_later(0.15, signal.SIGUSR1, count=2)
        while sender.is_alive():
            assert cycle().iterate(20_000).size == 20_000
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1] * 2


def test_eight_threads_call_at_once():
    expected = cycle(5000)
    expected.iterate(200)

    def rank(_):
        pull = cycle(5000)
        pull.iterate(200)
        return pull.ranks

    with ThreadPoolExecutor(8) as pool:
        for ranks in pool.map(rank, range(24)):
            np.testing.assert_array_equal(ranks, expected.ranks)


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
from pull_of_cycle import cycle
before = cycle(5000)
before.iterate(100)
child = os.fork()
after = cycle(5000)
after.iterate(100)
same = (after.ranks == before.ranks).all()
if child == 0:
    os._exit(0 if same else 1)
assert same and os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_can_call_kernels():
    run_python("-c", FORK, timeout=60, env=os.environ | {"PYTHONPATH": "tests/helpers"})


@pytest.fixture
def copied(tmp_path):
    """Return a function that runs code on a copy of the package, which the test has changed."""
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "prplugin", ignore=shutil.ignore_patterns("__pycache__")))

    def run(code):
        return run_python("-W", "ignore", "-c", code, cwd=tmp_path)

    return copy, run


REASON = "from prplugin.cpu.library import unavailable_reason as why; print(why())"
RANK = """
import hashlib, numpy as np, pandas as pd, prplugin
edges = np.random.default_rng(0).integers(0, 500, (2, 9000)) ** 2 // 500
frame = pd.DataFrame({"src": edges[0], "dst": edges[1], "weight": edges[0] + 0.1})
for weight in (None, "weight"):
    ranks = frame.pagerank(weight=weight, method="METHOD")["pagerank"].to_numpy()
    print(hashlib.sha256(ranks.tobytes()).hexdigest())
"""


def test_a_stale_library_is_refused_with_the_command_that_compiles_it(copied):
    copy, run = copied
    assert run(REASON) == "None"
    with (copy / "cpu" / "native.hpp").open("a") as file:
        file.write("// changed\n")
    assert "run python prplugin/cpu/build.py" in run(REASON)


NOT_INSTALLED = """
import importlib.metadata as metadata
def distribution(name): raise metadata.PackageNotFoundError(name)
metadata.distribution = distribution
"""


def test_without_a_library_numpy_ranks_and_the_reason_names_what_was_imported(copied, tmp_path):
    copy, run = copied
    shutil.rmtree(copy / "cpu" / "lib")
    assert len(run(RANK.replace("METHOD", "numpy")).split()) == 2
    imported = f"prplugin was imported from {copy}, which has no compiled CPU kernels"
    install = f'run pip install -e "{tmp_path}"'
    assert (
        run(REASON)
        == f"{imported}, as no C++ compiler could be used when it was installed: install one, and prplugin again"
    )
    assert run(NOT_INSTALLED + REASON) == f"{imported}, as it is not installed: {install}"

    # As after `pip install .` in a clone in which Python is started.
    installed = tmp_path / "site" / "prplugin"
    installed.mkdir(parents=True)
    information = tmp_path / "site" / "prplugin-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.4\nName: prplugin\nVersion: 0.1.0\n")
    found = run(f"import sys; sys.path.insert(1, {str(tmp_path / 'site')!r})\n{REASON}")
    assert found == f"{imported}; it is installed in {installed}: start Python in another folder, or {install}"


def test_all_instruction_levels_have_the_same_bits(copied):
    copy, run = copied
    libraries = copy / "cpu" / "lib"
    highest = run(RANK.replace("METHOD", "native"))
    for level in libraries.glob("kernels-[2-9].*"):
        shutil.copy(libraries / f"kernels-1{suffix(sys.platform)}", level)
    assert run(RANK.replace("METHOD", "native")) == highest
