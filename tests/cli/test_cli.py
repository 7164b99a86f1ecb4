"""The command line, run in this process and as a process of its own."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from decimal import Decimal

import pandas as pd
import pytest
from click.testing import CliRunner
from subprocesses import run_python

import prplugin
import prplugin.methods.numpy
from prplugin.cli import imports, main, verification
from prplugin.local import LocalGraph
from prplugin.machine import this_machine
from prplugin.methods.registry import methods
from prplugin.tables import upward

EDGES = "src,dst,w\na,b,1\nb,a,2\nc,a,3\nc,a,5\nc,d,0.5\n"


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(EDGES)
    return str(path)


def run(*arguments, **options):
    """Run a command in this process and return the result of click."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **options)


def run_process(*arguments, **options):
    """Run a command as a process of its own and return the completed process."""
    command = [sys.executable, "-m", "prplugin", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def frame():
    return pd.DataFrame({"src": list("abccc"), "dst": list("baaad"), "w": [1, 2, 3, 5, 0.5]})


def assert_fails(result, message):
    """Assert that a command failed with exit status 1 and a single line on standard error that has this message."""
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("prplugin: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_rank_prints_the_highest_ranks_and_a_summary(edges):
    result = run("rank", edges)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["vertex", "pagerank"]
    expected = frame().pagerank(top=10)
    assert [line.split()[1:] for line in lines[2:6]] == [[v, f"{p:.6g}"] for v, p in expected.itertuples(index=False)]
    ranking = prplugin.Graph(frame()).rank()
    assert lines[6].startswith(
        f"4 vertices, 5 edges; native, {ranking.iterations} iterations; "
        f"error at most {upward(ranking.error_bound)} (proved); "
    )
    assert lines[6].endswith(" edges/s")
    assert result.stderr == ""


def test_top_is_the_number_of_ranks_printed(tmp_path):
    path = tmp_path / "edges.tsv"
    path.write_text("".join(f"{i}\t0\n" for i in range(1, 30)))
    assert len(run("rank", path).stdout.splitlines()) == 2 + 10 + 1
    assert len(run("rank", path, "--top", 15).stdout.splitlines()) == 2 + 15 + 1
    assert len(run("rank", path, "--top", 99).stdout.splitlines()) == 2 + 30 + 1
    assert len(run("rank", path, "--top", 15, "--output", tmp_path / "r.csv").stdout.splitlines()) == 2 + 10 + 2


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--weight", "w"], {"weight": "w"}),
        (["-s", "dst", "-d", "src"], {"source": "dst", "destination": "src"}),
        (["--undirected", "--duplicates", "last", "-w", "w"], {"directed": False, "duplicates": "last", "weight": "w"}),
        (["--alpha", "0.5", "--tol", "1e-12"], {"alpha": 0.5, "tol": 1e-12}),
        (["--tol", "0", "--max-iter", "3"], {"tol": 0, "max_iter": 3}),
        (["--stop", "delta", "--tol", "0.01"], {"stop": "delta", "tol": 0.01}),
        (["--scale", "n", "--dtype", "float32"], {"scale": "n", "dtype": "float32"}),
        (["--method", "native", "--option", "threads=1"], {"method": "native", "threads": 1}),
        (["--top", "2"], {"top": 2}),
        (["--top", "2", "--certified"], {"top": 2, "certified": True}),
        (["--personalization", "b", "--personalization", "c"], {"personalization": ["b", "c"]}),
        (["--among", "b", "--among", "c"], {"among": ["b", "c"]}),
        (["--exclude", "b", "--exclude", "c"], {"exclude": ["b", "c"]}),
        (["--seeds", "a", "--seeds", "d", "--exclude-seeds"], {"seeds": ["a", "d"], "exclude": "seeds"}),
        (["--vertices", "z", "--vertices", "a"], {"vertices": ["z", "a"]}),
        (["--personalization", "b=1", "--personalization", "c=3"], {"personalization": {"b": 1, "c": 3}}),
        (["--dangling", "a=1"], {"dangling": {"a": 1}}),
        (["--seeds", "a", "--seeds", "d"], {"seeds": ["a", "d"]}),
        (["--seeds", "a", "--seeds", "d", "--top", "2"], {"seeds": ["a", "d"], "top": 2}),
    ],
)
def test_output_has_the_frame_that_pagerank_returns(edges, tmp_path, options, arguments):
    path = tmp_path / "ranks.parquet"
    result = run("rank", edges, *options, "--output", path)
    assert result.exit_code == 0, result.stderr
    expected = prplugin.pagerank(frame(), **arguments)
    pd.testing.assert_frame_equal(pd.read_parquet(path), expected, check_exact=True)
    assert f"{len(expected)} ranks written to {path}" in result.stdout


@pytest.mark.parametrize(
    ("option", "name", "content", "argument"),
    [
        ("personalization", "p.csv", "vertex,values\n2,0.5\n3,1.5\n", {2: 0.5, 3: 1.5}),
        ("personalization", "p.tsv", "2\t0.5\n3\t1.5\n", {2: 0.5, 3: 1.5}),
        ("personalization", "p.csv", "values;vertex;note\n0.5;2;x\n", {2: 0.5}),
        ("personalization", "p.txt", "3\n2\n", [3, 2]),
        ("dangling", "p.csv", "vertex,values\n1,1\n", {1: 1}),
        ("seeds", "s.csv", "vertex\n3\n1\n", [3, 1]),
        (
            "seeds",
            "s.csv",
            "seed,vertex,values\nx,3,1\nx,1,2\ny,2,1\n",
            pd.DataFrame({"seed": ["x", "x", "y"], "vertex": [3, 1, 2], "values": [1.0, 2.0, 1.0]}),
        ),
    ],
)
def test_personalization_dangling_and_seeds_from_files(tmp_path, option, name, content, argument):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n3,1\n3,2\n4,5\n")
    (tmp_path / name).write_text(content)
    result = run("rank", tmp_path / "edges.csv", f"--{option}", tmp_path / name, "-o", tmp_path / "r.parquet")
    assert result.exit_code == 0, result.stderr
    edges = pd.DataFrame({"src": [1, 2, 3, 3, 4], "dst": [2, 3, 1, 2, 5]})
    expected = edges.pagerank(**{option: argument})
    found = pd.read_parquet(tmp_path / "r.parquet")
    assert found.to_numpy().tolist() == expected.to_numpy().tolist()


@pytest.mark.parametrize(("option", "columns"), [("personalization", ["vertex"]), ("seeds", ["seed", "vertex"])])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_values_by_another_name_are_refused(tmp_path, option, columns, suffix):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,1\n")
    frame, path = pd.DataFrame({name: [1, 2] for name in [*columns, "score"]}), tmp_path / f"p.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    message = f"p.{suffix} has no column 'values', but 'score': rename the column of values to 'values'"
    assert_fails(run("rank", tmp_path / "edges.csv", f"--{option}", path), message)


def test_personalization_of_vertices_of_several_columns_needs_a_file(tmp_path):
    (tmp_path / "edges.csv").write_text("k,i,l,j\na,1,b,1\nb,1,a,2\n")
    pd.DataFrame({"k": ["b"], "i": [1], "values": [1.0]}).to_parquet(tmp_path / "p.parquet")
    endpoints = ["-s", "k", "-s", "i", "-d", "l", "-d", "j"]
    result = run("rank", tmp_path / "edges.csv", *endpoints, "--personalization", tmp_path / "p.parquet")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[2].split()[1:3] == ["b", "1"]
    assert run("rank", tmp_path / "edges.csv", *endpoints, "--seeds", "b").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--personalization", "b", "--personalization", "a=1"], 2, "or a file such as values.csv, not 'b'"),
        (["--dangling", "b", "--dangling", "a=1"], 2, "takes VERTEX=VALUE, vertices alone, or a file such as values"),
        (["--among", "x"], 1, "'x'"),
        (["--exclude-seeds"], 2, "--exclude-seeds leaves out"),
        (["--exclude-seeds", "--exclude", "a"], 2, "--exclude-seeds leaves out"),
        (["--personalization", "b=x"], 2, "not 'b=x'"),
        (["--personalization", "b=1", "--personalization", "b=2"], 2, "names vertex 'b' twice"),
        (["--personalization", "p.csv", "--personalization", "b=2"], 2, "takes one file"),
        (["--personalization", "b=1", "--seeds", "b"], 2, "pass one of the two"),
        (["--personalization", "x=1"], 1, "'x'"),
        (["--personalization", "b=-1"], 1, "personalization"),
        (["--personalization", "absent.csv"], 1, "absent.csv: No such file"),
        (["--seeds", "x"], 1, "'x'"),
        (["--delimiter", "||"], 1, "must be one ASCII character"),
    ],
)
def test_invalid_values_by_vertex_are_refused(edges, arguments, status, message):
    result = run("rank", edges, *arguments)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr


def test_integer_ids_with_leading_zeros_are_refused(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst\n7,8\n8,9\n")
    assert "integers without leading zeros, not '007'" in run("rank", path, "--seeds", "007").stderr
    (tmp_path / "p.csv").write_text("vertex,values\n7,1\n007,1\n")
    assert_fails(run("rank", path, "--personalization", tmp_path / "p.csv"), "p.csv, line 3: column 'vertex' has '007'")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("src;dst;w\na;b;1\nb;a;2\n", []),
        ("src|dst|w\na|b|1\nb|a|2\n", ["--delimiter", "|"]),
        ("src\tdst\tw\na\tb\t1\nb\ta\t2\n", ["--delimiter", r"\t"]),
        ("src;dst;w\na;b;1\nb;a;2\n", ["--delimiter", ";"]),
        ('src;dst;w\n"a";b;1\nb;"a";2\n', []),
    ],
)
def test_delimiters(tmp_path, text, options):
    (tmp_path / "edges.csv").write_text(text)
    result = run("rank", tmp_path / "edges.csv", "-w", "w", *options)
    assert result.exit_code == 0, result.stderr
    assert "2 vertices, 2 edges" in result.stdout


def test_explain_and_certified(edges):
    shown = run("rank", edges, "--explain", "--certified", "--top", 3).stdout
    assert "order of the 3 highest: proved" in shown
    assert "the least estimate" in shown
    assert len(run("rank", edges, "--certified").stdout.splitlines()) == 2 + 4 + 1 + 1


def test_certified_names_equal_ranks(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\na,b\na,c\n")
    assert "places 1 to 2: proved equal" in run("rank", tmp_path / "edges.csv", "--certified").stdout


def test_seeds_are_printed_one_after_the_other(edges):
    lines = run("rank", edges, "--seeds", "c", "--seeds", "a", "--top", 2).stdout.splitlines()
    assert [line.split()[:3] for line in lines[2:6]] == [
        ["1", "c", "a"], ["2", "c", "b"], ["1", "a", "a"], ["2", "a", "b"]
    ]  # fmt: skip


def test_seeds_without_their_own_vertices_have_different_numbers_of_ranks(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n3,4\n4,5\n5,1\n1,3\n")
    (tmp_path / "seeds.csv").write_text("seed,vertex\nx,1\ny,1\ny,2\ny,3\n")
    for top in ([], ["--top", 10]):
        shown = run("rank", tmp_path / "edges.csv", "--seeds", tmp_path / "seeds.csv", "--exclude-seeds", *top)
        cells = [line.split()[:3] for line in shown.stdout.splitlines()[2:-1]]
        assert [cell[:2] for cell in cells] == [["1", "x"], ["2", "x"], ["3", "x"], ["4", "x"], ["1", "y"], ["2", "y"]]
        assert {cell[2] for cell in cells[4:]} == {"4", "5"}


def test_one_iteration_is_singular(edges):
    shown = run("rank", edges, "--tol", "0", "--max-iter", "1").stdout
    assert ", 1 iteration;" in shown


def test_vertices_of_several_columns(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("k,i,l,j\na,1,b,1\nb,1,a,2\n")
    result = run("rank", path, "-s", "k", "-s", "i", "-d", "l", "-d", "j", "-o", tmp_path / "r.csv")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["k", "i", "pagerank"]
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == "k,i,pagerank"


@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
def test_standard_input_to_standard_output(output):
    result = run_process("rank", "-", "-o", output, input="1\t2\n2\t1\n7\t1\n")
    assert result.returncode == 0
    ranks = prplugin.pagerank(pd.DataFrame({"src": [1, 2, 7], "dst": [2, 1, 1]}))
    assert result.stdout == "vertex\tpagerank\n" + "".join(f"{v}\t{p}\n" for v, p in ranks.itertuples(index=False))
    assert result.stderr.startswith("3 vertices, 3 edges")


def test_quiet_prints_nothing(edges, tmp_path):
    result = run("rank", edges, "-q", "-o", tmp_path / "ranks.csv")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "ranks.csv").exists()


def test_matrix_market_isolated_vertices_and_symmetry(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n4 4 2\n1 1 2\n2 1 3\n")
    result = run("rank", path, "-o", tmp_path / "r.parquet")
    assert "4 vertices, 3 edges" in result.stdout
    both = pd.DataFrame({"src": [1, 2, 1], "dst": [1, 1, 2], "w": [2, 3, 3]})
    expected = both.pagerank(weight="w", vertices=[1, 2, 3, 4])
    assert pd.read_parquet(tmp_path / "r.parquet")["pagerank"].tolist() == pytest.approx(expected["pagerank"].tolist())


def test_markup_in_names_is_not_interpreted(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(f"src,dst\n[red]x,:smile:\n\x1b[31mq,{'long' * 100}\n")
    shown = run("rank", path).stdout
    assert "[red]x" in shown
    assert ":smile:" in shown
    assert r"'\x1b[31mq'" in shown
    assert "long" * 100 in shown


def test_names_that_the_terminal_cannot_encode_are_escaped(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst\né,b\n", encoding="utf-8")
    result = run_process("rank", path, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0
    assert r"\xe9" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tol", "1e-30"], "cannot be proved"),
        (["--tol", "1e-9", "--max-iter", "2"], "after 2 iterations the error is at most"),
        (["--weight", "dst"], "edges.csv"),
        (["--source", "nope", "--destination", "dst"], "edges.csv: there is no column 'nope'"),
        (["--source", "src"], "destination is not given"),
        (["--duplicates", "error"], "edges.csv: 1 row of the edge frame repeats"),
        (["--output", "/nowhere/ranks.csv"], "/nowhere: No such file or directory"),
    ],
)
def test_failures_are_reported_in_one_line(edges, arguments, message):
    assert_fails(run("rank", edges, *arguments), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "1"], "alpha must be"),
        (["--tol", "0"], "--tol 0 never stops by itself: pass --max-iter k"),
        (["--method", "fastest"], "method must be one of 'auto', 'binned', "),
        (["--method", "numpy", "--option", "threads=2"], "'threads'"),
        (["--option", "speed=2"], "'speed' is neither an argument"),
        (["--option", "thread=2"], "Did you mean threads=?"),
        (["--output", "ranks.xlsx"], "ranks.xlsx: its name does not say"),
    ],
)
def test_options_invalid_for_any_file_are_usage_errors(edges, arguments, message):
    result = run("rank", edges, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "suggestion"),
    [
        (["--damping", "0.9"], 2, "Did you mean --alpha?"),
        (["--tolerance=1e-3"], 2, "Did you mean --tol?"),
        (["--reset-prob", "0.1"], 2, "Did you mean --alpha? It is 1 - alpha."),
        (["--weight", "W"], 1, "Did you mean --weight w?"),
        (["-s", "Src", "-d", "dst"], 1, "Did you mean --source src?"),
    ],
)
def test_wrong_names_suggest_options_of_the_command(edges, arguments, status, suggestion):
    result = run("rank", edges, *arguments)
    assert result.exit_code == status
    assert suggestion in result.stderr
    assert "=" not in result.stderr.partition("Did you mean")[2]


def test_unknown_columns_suggest_options_of_the_command(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("ua,u b\n1,2\n")
    result = run("rank", path)
    assert_fails(result, "--source and --destination. Did you mean --source ua --destination 'u b'?")


@pytest.mark.parametrize("text", [EDGES, EDGES.replace(",", ";"), EDGES.replace(",", "\t")])
def test_delimiter_of_standard_input_is_recognized(edges, text):
    result = run("rank", "-", "--weight", "w", input=text)
    assert result.stdout.splitlines()[:6] == run("rank", edges, "--weight", "w").stdout.splitlines()[:6]


def test_commas_within_fields_of_tsv_on_standard_input_are_kept():
    result = run("rank", "-", input="a,1,2,3\tb,1\nb,1\ta,1,2,3\n", env={})
    assert "--source a,1,2,3" in result.stderr
    result = run("rank", "-", "--no-header", input="a,1,2,3\tb,1\nb,1\ta,1,2,3\n")
    assert result.stdout.splitlines()[2].split()[1] == "a,1,2,3"


def test_unreadable_input_is_reported_in_one_line(tmp_path):
    assert_fails(run("rank", tmp_path / "absent.csv"), "absent.csv: No such file or directory")
    assert_fails(run("rank", tmp_path), "is a folder in which there is no Parquet file")
    assert_fails(run("rank", "-", input=""), "standard input is empty")
    assert_fails(run("rank", "-", input="1\t2\n2\t3\n3\tx\n"), "standard input, line 3: column 'destination' has 'x'")
    assert_fails(
        run("rank", "-", input=gzip.compress(b"1\t2\n")), "standard input is not text but compressed with gzip"
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read all files")
def test_missing_permission_is_reported_in_one_line(edges):
    os.chmod(edges, 0)
    assert_fails(run("rank", edges), "edges.csv: Permission denied")


@pytest.mark.parametrize(
    "arguments", [["rank"], ["rank", "x", "--nope"], ["rank", "x", "--option", "threads"], ["rank", "x", "--option", "tol=1"], ["rank", "x", "--top", "0"], ["nope"]]
)  # fmt: skip
def test_usage_errors_have_exit_status_2(arguments):
    assert run(*arguments).exit_code == 2


def test_memory_errors_are_reported_in_one_line(edges, monkeypatch):
    def raise_memory_error(*_, **__):
        raise MemoryError("Unable to allocate 1 TiB")

    monkeypatch.setattr(LocalGraph, "read", raise_memory_error)
    assert_fails(run("rank", edges), "out of memory: Unable to allocate 1 TiB")


def test_files_larger_than_memory_are_reported_in_one_line(edges, set_available_bytes):
    set_available_bytes(1000)
    assert_fails(run("rank", edges), "5 edges have been read, and")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_full_disk_is_reported_in_one_line(edges):
    command = [sys.executable, "-m", "prplugin", "rank", edges]
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert result.returncode == 1
    assert result.stderr == "prplugin: standard output: No space left on device\n"
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "prplugin", "--help"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (1, "prplugin: No space left on device\n")
    assert_fails(run("rank", edges, "-o", "/dev/full"), "/dev/full: No space left on device")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that closes streams")
@pytest.mark.parametrize(
    "arguments",
    [
        ["rank", "edges.csv"],
        *[
            pytest.param(arguments, marks=pytest.mark.slow)
            for arguments in (
                ["rank", "edges.csv", "-o", "-"], ["verify", "edges.csv"], ["methods", "--json"], ["--help"],
                ["rank", "--help"], ["--version"],
            )
        ],
        ["rank", "-"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_closed_standard_stream_is_reported_in_one_line(edges, arguments):
    closed, name = ("<&-", "input") if arguments == ["rank", "-"] else (">&-", "output")
    arguments = [edges if argument == "edges.csv" else argument for argument in arguments]
    shell = ["sh", "-c", f'"$0" -m prplugin "$@" {closed}', sys.executable, *arguments]
    result = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (1, f"prplugin: standard {name}: Bad file descriptor\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the file size")
@pytest.mark.parametrize(
    "name", ["ranks.csv", *[pytest.param(name, marks=pytest.mark.slow) for name in ("ranks.parquet", "ranks.jsonl.gz")]]
)
def test_disk_that_fills_up_keeps_the_old_file(tmp_path, name):
    edges = tmp_path / "edges.tsv"
    edges.write_text("".join(f"{i}\t{i * i}\n" for i in range(20_000)))
    target = tmp_path / name
    target.write_text("old")

    def limit_file_size():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    result = run_process(
        "rank",
        edges,
        "-o",
        target,
        preexec_fn=limit_file_size,
    )
    assert result.returncode == 1
    assert result.stderr == f"prplugin: {target}: File too large\n"
    assert target.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} <= {"edges.tsv", name}


@pytest.mark.parametrize("output", [[], ["--output", "-"]])
def test_closed_pipe_prints_no_traceback(tmp_path, output):
    path = tmp_path / "edges.tsv"
    ids = range(10**15, 10**15 + 2_500)  # the ranks are larger than the buffer of a pipe
    path.write_text("".join(f"{i}\t{i + 1}\n" for i in ids))
    command = [sys.executable, "-m", "prplugin", "rank", str(path), "--top", "2500", *output]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ranking:
        ranking.stdout.readline()
        ranking.stdout.close()
        errors = ranking.stderr.read()
        assert ranking.wait(120) == 1
    assert errors == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_interrupt_is_reported_in_one_line(tmp_path):
    pipe = tmp_path / "edges.tsv"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "prplugin", "rank", str(pipe), "-o", str(tmp_path / "ranks.csv")]

    def reset_sigint():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=reset_sigint) as ranking:  # noqa: PLW1509
        with open(pipe, "w", encoding="utf-8"):  # returns when the command opens the pipe
            ranking.send_signal(signal.SIGINT)
            errors = ranking.stderr.read()
        assert ranking.wait(120) == 1
    assert errors == "prplugin: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["edges.tsv"]


def test_verify_compares_all_methods_and_networkx(edges):
    result = run("verify", edges, "--weight", "w")
    assert result.exit_code == 0
    available = [name for name, method in methods().items() if method.unavailable_reason(None, this_machine()) is None]
    for name in ("reference", *available, "plain sums over the rows", "networkx"):
        assert any(line.startswith(name) and line.endswith("yes") for line in result.stdout.splitlines()), name


@pytest.mark.parametrize("duplicates", ["sum", "first", "last"])
@pytest.mark.parametrize("direction", [[], ["--undirected"]])
def test_verify_accepts_the_graph_options_of_rank(tmp_path, duplicates, direction):
    path = tmp_path / "edges.csv"
    path.write_text("k,i,l,j,w\na,1,b,1,1\na,1,b,1,4\nb,1,a,1,9\nb,2,b,2,3\na,1,c,0,0\nc,0,a,1,0\n")
    endpoints = ["-s", "k", "-s", "i", "-d", "l", "-d", "j", "-w", "w"]
    result = run("verify", path, *endpoints, "--tol", "1e-12", "--duplicates", duplicates, *direction)
    assert result.exit_code == 0, result.output
    assert "NO" not in result.stdout


def test_verify_fails_for_a_wrong_method(edges, monkeypatch):
    prepare = prplugin.methods.numpy.prepare
    monkeypatch.setattr(
        prplugin.methods.numpy,
        "prepare",
        lambda problem, machine: prepare(problem._replace(alpha=0.84), machine),
    )
    result = run("verify", edges)
    assert result.exit_code == 1
    assert "the distance to the reference exceeds the error bounds" in result.stderr
    assert "exceeds the error bounds: numpy." in result.stderr


def test_verify_of_isolated_vertices_and_of_an_empty_graph(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n5 5 1\n2 4\n")
    assert run("verify", path).exit_code == 0
    empty = tmp_path / "empty.csv"
    empty.write_text("src,dst\n")
    assert run("verify", empty).exit_code == 0


def test_verify_leaves_networkx_out_of_large_graphs(edges, monkeypatch):
    monkeypatch.setattr(verification, "NETWORKX_EDGES", 3)
    assert "networkx: skipped: 5 edges are more than 3" in run("verify", edges).stdout


def test_methods_of_a_graph_has_the_choice_of_auto_and_its_reason(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n")
    listed = {
        entry["name"]: entry for entry in json.loads(run("methods", str(tmp_path / "edges.csv"), "--json").stdout)
    }
    assert [name for name, entry in listed.items() if entry["chosen"]] == ["native"]
    assert 0 < listed["native"]["seconds"] < listed["numpy"]["seconds"]
    assert all((entry["seconds"] is not None) == entry["runs"] for entry in listed.values())
    assert "auto chooses native: the least estimate" in run("methods", str(tmp_path / "edges.csv")).stdout


def test_methods_lists_all_methods(monkeypatch):
    listed = json.loads(run("methods", "--json").stdout)
    assert sorted(entry["name"] for entry in listed) == sorted(methods())
    assert all(entry["runs"] == (entry["reason"] is None) and entry["summary"] for entry in listed)
    monkeypatch.setattr(prplugin.methods.numpy, "unavailable_reason", lambda adjacency, machine: "it is disabled")
    shown = run("methods").stdout
    assert re.search(r"^numpy +no ", shown, re.MULTILINE)
    assert "\nnumpy: it is disabled\n" in shown


def test_methods_and_verify_fit_80_columns_and_print_a_reason_once(edges, monkeypatch):
    for name in ("numpy", "native"):
        monkeypatch.setattr(methods()[name], "unavailable_reason", lambda adjacency, machine: "it is disabled")
    for command in (["methods"], ["methods", edges]):
        shown = run(*command).stdout
        assert max(map(len, shown.splitlines())) <= 80
        assert shown.count("it is disabled") == 1
        assert "native, numpy: it is disabled" in shown
    monkeypatch.undo()
    shown = run("verify", edges).stdout
    assert max(map(len, shown.splitlines())) <= 80
    reasons = [method.unavailable_reason(None, this_machine()) for method in methods().values()]
    for reason in filter(None, reasons):
        assert " ".join(shown.split()).count(reason) == 1


@pytest.mark.slow
def test_demo_ranks_the_imports_of_this_python(tmp_path):
    result = run("demo", "--top", 5, "--edges", tmp_path / "imports.parquet")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 2 + 5 + 2
    assert "(proved)" in lines[7]
    assert "could not be parsed" in lines[8]
    expected = pd.read_parquet(tmp_path / "imports.parquet").pagerank(top=5)
    assert [line.split()[1] for line in lines[2:7]] == expected["vertex"].tolist()
    assert "sys" in expected["vertex"].tolist()


def test_demo_without_source_files(monkeypatch, tmp_path):
    monkeypatch.setattr(imports.sysconfig, "get_path", lambda name: str(tmp_path))
    assert run("demo").exit_code == 0


def test_help_imports_no_large_library():
    code = "import sys, prplugin.cli; print([m for m in ('pandas', 'pyarrow', 'rich') if m in sys.modules])"
    assert run_python("-c", code, timeout=120) == "[]"


@pytest.mark.parametrize("bound", [9.41e-7, 1e-6, 2.0**-1074, 1.0000001, 0.1])
def test_bounds_are_rounded_up(bound):
    assert Decimal(upward(bound)) >= Decimal(bound)
    assert float(upward(bound)) == pytest.approx(bound, rel=0.1, abs=1e-323)


def test_rank_of_wiki_vote(data_dir):
    result = run("rank", data_dir / "graphs" / "wiki-Vote.parquet", "--tol", "1e-10")
    assert "7,115 vertices, 103,689 edges" in result.stdout
    assert result.stdout.splitlines()[2].split()[1] == "4037"


@pytest.mark.parametrize("name", ["edges.csv", "edges.parquet", "ids.csv"])
def test_rows_with_missing_endpoints_are_counted_or_dropped_on_request(tmp_path, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        ends = pd.DataFrame({"src": pd.array([1, None, 2, 4], "Int64"), "dst": pd.array([2, 3, None, 1], "Int64")})
        ends.to_parquet(path)
    else:
        prefix = "v" if name == "ids.csv" else ""
        path.write_text("src,dst\n" + "1,2\n,3\n2, \n4,1\n".replace("4", prefix + "4"))
    assert_fails(run("rank", path), "2 rows have a missing endpoint. Correct the file, or pass --missing drop")
    options = [] if name != "ids.csv" else ["--ids", "string"]
    result = run("rank", path, "--missing", "drop", *options)
    assert result.exit_code == 0, result.stderr
    assert "3 vertices, 2 edges" in result.stdout
    assert "2 rows with a missing endpoint dropped" in result.stdout
    checked = run("verify", path, "--missing", "drop", *options)
    assert checked.exit_code == 0, checked.stderr
    assert "2 rows with a missing endpoint dropped" in checked.stdout


def test_dropping_rows_keeps_the_line_of_another_error(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst,w\n1,2,1\n,3,1\n2,4,x\n")
    result = run("rank", path, "--missing", "drop", "--weight", "w")
    assert_fails(result, "line 4: column 'w' has 'x', which is no finite number")


def test_methods_that_can_run_here_are_listed_first(edges):
    for arguments in ([], [edges]):
        runs = [method["runs"] for method in json.loads(run("methods", "--json", *arguments).stdout)]
        assert runs == sorted(runs, reverse=True)
    rows = repr(prplugin.Graph.from_file(edges).estimate()).splitlines()[2:]
    reasons = ["cannot run:" in row for row in rows]
    assert reasons == sorted(reasons)


def test_files_of_adjacency_lists(tmp_path):
    path = tmp_path / "g.metis"
    path.write_text("4 3 001\n2 5 3 1\n1 5\n1 1 4 2\n3 2\n")
    result = run("verify", path)
    assert result.exit_code == 0, result.output
    assert "plain sums over the rows" in result.stdout
    assert run("verify", path, "--undirected", "--duplicates", "first", "-q").exit_code == 0
    result = run("rank", path, "--unweighted", "-o", tmp_path / "ranks.csv")
    assert "4 vertices, 6 edges" in result.stdout
    assert "column 'weight' is not used" in result.stdout
    expected = prplugin.Graph.from_file(path, "destination", "source").rank().frame
    assert run("rank", path, "-s", "destination", "-d", "source", "-q", "-o", tmp_path / "ranks.csv").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "ranks.csv"), expected)
    assert "auto chooses" in run("methods", path).stdout
    assert_fails(run("rank", path, "--vertices", "7"), "names all vertices itself: omit --vertices")
    assert_fails(run("rank", path, "-s", "from", "-d", "to"), "from")


def test_ids_that_lines_of_blanks_cannot_hold_are_refused(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst\na b,c\n")
    assert_fails(run("rank", path, "-q", "-o", tmp_path / "ranks.txt"), "ranks.txt: a column cannot be written as snap")


def test_rank_groups_and_sides(tmp_path):
    path, output = tmp_path / "edges.csv", tmp_path / "ranks.csv"
    frame = pd.DataFrame({"country": ["FR", "DE", "FR"], "src": [1, 1, 2], "dst": [2, 2, 1]})
    frame.to_csv(path, index=False)
    for options, expected in (
        (["--by", "country"], frame.pagerank(by="country")),
        (["--bipartite"], frame.pagerank(bipartite=True)),
    ):
        assert run("rank", path, *options, "-q", "-o", output).exit_code == 0
        pd.testing.assert_frame_equal(pd.read_csv(output), expected, check_dtype=False)
    assert run("verify", path, "--by", "country").exit_code == 2
    refused = run("rank", path, "--by", "country", "--seeds", "1")
    assert (refused.exit_code, "Pass a file with the columns 'country' and 'vertex'" in refused.stderr) == (2, True)
    seeds = tmp_path / "seeds.csv"
    seeds.write_text("country,vertex\nFR,2\nDE,1\n")
    assert run("rank", path, "--by", "country", "--seeds", seeds, "-q", "-o", output).exit_code == 0
    expected = prplugin.Graph(frame, by="country").rank(seeds=[("FR", 2), ("DE", 1)]).frame
    pd.testing.assert_frame_equal(pd.read_csv(output), expected, check_dtype=False)


def test_arguments_of_groups(tmp_path):
    path, more, output = tmp_path / "edges.csv", tmp_path / "more.csv", tmp_path / "ranks.csv"
    frame = pd.DataFrame({"country": [f"g{place}" for place in range(12)], "src": 1, "dst": 2})
    frame.to_csv(path, index=False)
    printed = run("rank", path, "--by", "country").stdout
    assert "g9 " in printed
    assert "g10" not in printed
    assert "and 2 more groups; --output writes all" in printed

    vertices = pd.DataFrame({"country": ["g11", "new"], "vertex": [3, 4]})
    vertices.to_csv(more, index=False)
    assert run("rank", path, "--by", "country", "--vertices", more, "-q", "-o", output).exit_code == 0
    expected = frame.pagerank(by="country", vertices=vertices)
    pd.testing.assert_frame_equal(pd.read_csv(output), expected, check_dtype=False)
    assert run("rank", path, "--by", "country", "--why", "1").exit_code == 2
    result = run("rank", path, "--by", "country", "--vertices", more, "--why", more)
    assert result.exit_code == 2
    assert "--why explains the rank of one vertex" in result.stderr
    vertices.iloc[:1].to_csv(more, index=False)
    assert "dangling" in run("rank", path, "--by", "country", "--vertices", more, "--why", more).stdout
    vertices[["vertex"]].to_csv(more, index=False)
    assert_fails(run("rank", path, "--by", "country", "--personalization", more), "needs a column 'country'")
