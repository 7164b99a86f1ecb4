"""Reading edges from files, and writing ranks to files."""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import io
import json
import lzma
import os
import pickle
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from method_params import examples

import prplugin
from prplugin import machine
from prplugin.errors import ColumnNotFoundError, InvalidEdgesError, InvalidOptionError, OutOfMemoryError, PageRankError
from prplugin.frames import device_files
from prplugin.io import as_rows, check_output, read_edges, text_blocks, write_frame

BANNER = "%%MatrixMarket matrix coordinate"


@pytest.fixture
def write_file(tmp_path):
    """Return a function that writes a file of this name and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def compressed(data, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def rows(file):
    columns, weight = file.columns, file.columns.weight_name
    names = [*columns.source_names, *columns.destination_names] + ([weight] if weight is not None else [])
    return list(as_rows(file).frame[names].itertuples(index=False, name=None))


SNAP = "# Directed graph\n# FromNodeId\tToNodeId\n30\t1412\n30\t3352\n3\t30\n"
SNAP_EDGES = [(30, 1412), (30, 3352), (3, 30)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("edges.csv", "src,dst\n30,1412\n30,3352\n3,30\n"),
        ("edges.csv", "30,1412\n30,3352\n3,30"),
        ("edges.csv", "\ufeffsrc,dst\r\n30,1412\r\n30,3352\r\n3,30\r\n"),
        ("edges.csv", "extra,dst,src\nx,1412,30\ny,3352,30\nz,30,3\n"),
        ("edges.tsv", "from\tto\n30\t1412\n\n30\t3352\n3\t30\n"),
        ("edges.txt", SNAP),
        ("edges.txt", SNAP.replace("\t", " ")),
        ("edges.txt", "30   1412 \n% a comment\n  30\t3352\n \n3 30\t\n# another\n"),
        ("EDGES.TXT", SNAP.replace("\n", "\r\n")),
    ],
)
@pytest.mark.parametrize(("ending", "codec"), [("", None), (".gz", "gzip"), (".zst", "zstd")])
def test_text_files(write_file, name, content, ending, codec):
    data = content.encode()
    file = read_edges(write_file(name + ending, compressed(data, codec) if codec else data))
    assert rows(file) == SNAP_EDGES
    assert [str(dtype) for dtype in file.frame.dtypes] == ["int64", "int64"]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_only_columns_in_use_of_parquet_are_read(write_file, ending):
    frame = pd.DataFrame({"other": list("xyz"), "src": [30, 30, 3], "dst": [1412, 3352, 30], "w": [1.0, 2.0, 3.0]})
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame), sink)
    data = sink.getvalue() if not ending else compressed(sink.getvalue(), {".gz": "gzip", ".zst": "zstd"}[ending])
    file = read_edges(write_file("edges.parquet" + ending, data), weight="w")
    assert list(as_rows(file).frame.columns) == ["src", "dst", "w"]
    assert rows(file) == [(30, 1412, 1.0), (30, 3352, 2.0), (3, 30, 3.0)]


def test_column_names_with_dots(write_file, tmp_path):
    pd.DataFrame({"a.b": [1], "a": [2], "c.d": [3]}).to_parquet(tmp_path / "edges.parquet")
    file = read_edges(str(tmp_path / "edges.parquet"), ["a.b"], ["c.d"])
    assert rows(file) == [(1, 3)]


def test_all_members_of_a_gzip_file_are_read(write_file):
    data = gzip.compress(b"1\t2\n") + gzip.compress(b"2\t3\n")
    assert rows(read_edges(write_file("edges.tsv.gz", data))) == [(1, 2), (2, 3)]


def test_strings_are_read_unchanged_but_for_blanks_around_them(write_file):
    text = 'src,dst\n"a,b", c\nNA,null\n"two\nlines",ümlaut\n "a, ""b"" ,c" ,\t"d"  \n'
    file = read_edges(write_file("edges.csv", text))
    assert rows(file) == [("a,b", "c"), ("NA", "null"), ("two\nlines", "ümlaut"), ('a, "b" ,c', "d")]


def test_ids_with_leading_zeros_are_strings(write_file):
    assert rows(read_edges(write_file("zip.csv", "src,dst\n00501,10001\n00501,00544\n"))) == [
        ("00501", "10001"),
        ("00501", "00544"),
    ]


def test_ids_have_the_requested_type(write_file):
    path = write_file("edges.csv", "src,dst\n1,2\n2,x7\n")
    assert rows(read_edges(path, ids="string")) == [("1", "2"), ("2", "x7")]
    with pytest.raises(InvalidEdgesError, match="line 3: column 'dst' has 'x7'"):
        read_edges(path, ids="integer")


def test_ids_past_signed_integers_are_exact(write_file):
    file = read_edges(write_file("edges.tsv", f"{2**64 - 1}\t1\n1\t{2**63}\n"))
    assert rows(file) == [(2**64 - 1, 1), (1, 2**63)]


def test_parquet_by_a_name_that_is_not_utf_8(tmp_path, caplog):
    caplog.set_level("WARNING", logger="prplugin")  # pytest-xdist cannot send a captured message with the name
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.parquet")
    pd.DataFrame({"src": [1, 2], "dst": [2, 1]}).to_parquet(tmp_path / "edges.parquet")
    try:
        os.rename(tmp_path / "edges.parquet", path)
    except OSError:
        pytest.skip("this file system has no such names")
    assert prplugin.Graph.from_file(path).number_of_edges == 2


def test_parquet_that_cudf_would_read_is_read_on_the_host_if_endpoints_are_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(device_files, "unavailable_reason", lambda size: None)
    path = str(tmp_path / "edges.parquet")
    for targets in ([2, 3], [2, None]):
        pd.DataFrame({"src": [1, 2], "dst": pd.array(targets, "Int64")}).to_parquet(path)
        if None not in targets:
            assert read_edges(path).frame.paths == [path]
            continue
        with pytest.raises(InvalidEdgesError, match=r"edges\.parquet: 1 row has a missing endpoint.*missing='drop'"):
            read_edges(path)


def test_weights_are_read_only_if_named(write_file):
    path = write_file("edges.txt", "1 2 0.5\n2 1 4\n")
    assert rows(read_edges(path)) == [(1, 2), (2, 1)]
    assert rows(read_edges(path, weight="weight")) == [(1, 2, 0.5), (2, 1, 4.0)]


def test_vertices_of_several_columns(write_file):
    path = write_file("edges.csv", "kind,id,kind2,id2\na,1,b,2\nb,2,a,1\n")
    file = read_edges(path, ["kind", "id"], ["kind2", "id2"])
    assert rows(file) == [("a", 1, "b", 2), ("b", 2, "a", 1)]


def test_header_detection(write_file):
    assert rows(read_edges(write_file("a.csv", "1,2\n3,4\n"), ["1"], ["2"])) == [(1, 2), (3, 4)]
    assert rows(read_edges(write_file("a.csv", "2,1\n3,4\n"), ["1"], ["2"], header=True)) == [(4, 3)]
    assert rows(read_edges(write_file("b.csv", "u,v\n3,4\n"), ["u"], ["v"])) == [(3, 4)]
    with pytest.raises(
        ColumnNotFoundError, match=r"'u', 'v'\. .*source='u'.*Line 1 was taken for a header.*header=False"
    ):
        read_edges(write_file("c.csv", "u,v\nw,x\n"))
    assert rows(read_edges(write_file("c.csv", "u,v\nw,x\n"), header=False)) == [("u", "v"), ("w", "x")]
    with pytest.raises(ColumnNotFoundError, match="comment='#' if it is a comment"):
        read_edges(write_file("d.tsv", "# a comment\n1\t2\n"))
    with pytest.raises(ColumnNotFoundError, match="no column 'u'"):
        read_edges(write_file("e.csv", "1,2\n"), ["u"], ["v"])


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("edges.txt", "# c\n1\t2\n12x\t3\n3\t4\n", 3, "column 'source' has '12x', which is no integer"),
        ("edges.csv", "src,dst\n12x,3\n1,2\n3,4\n5,6\n", 2, "'12x'"),
        ("edges.csv", "src,dst\n1,2\n\n3,4.0\n", 4, "column 'dst' has '4.0'"),
        ("edges.csv", "src,dst\n1,2\n3\n", 3, "1 field where the first has 2: '3'"),
        ("edges.tsv", "1\t2\n3\t4\t5\n", 2, "3 fields where the first has 2: '3 4 5'"),
        ("edges.txt", "1 2\n\n3  4 5\n", 3, "3 fields"),
        ("edges.csv", "src,dst\n1,\n2,3\n3,4\n", 2, "column 'dst' is empty"),
        ("edges.csv", "src,dst\na,b\nc,\n", 3, "column 'dst' is empty"),
        ("edges.csv", 'src,dst\n"a\nb",c\n"d,e\n', 4, "quotes"),
        ("edges.csv", 'src,dst\n"a\nb",c\nd\n', 4, "1 field"),
        ("edges.csv", 'src,dst\n"a,b"\r"x\ny"', 2, "1 field"),
        ("edges.tsv", f"1\t2\n{2**64}\t3\n", 2, "no 64-bit integer"),
        ("edges.csv", b"src,dst\na,b\nc,\xff\xfe\n", 3, r"b'\\xff\\xfe', which is not UTF-8"),
        ("edges.csv", b"src,dst\na,b\nc,\0\n", 3, "zero byte"),
        ("edges.csv", b"src,dst\na,b\n\xff\n", 3, "1 field"),
        ("edges.mtx", f"{BANNER} pattern general\n% c\n3 3 2\n1 2\n4 1\n", 5, "'4', but the size line allows 1 to 3"),
        ("edges.mtx", f"{BANNER} pattern general\n3 3 2\n1 2\n0 1\n", 4, "'0', but the size line allows 1 to 3"),
        ("edges.mtx", f"{BANNER} pattern general\n3 3 3\n1 2\n2 1\n", 2, "3 entries, but 2 follow"),
        ("edges.mtx", f"{BANNER} pattern general\n3 3 1\n1 2\n2 1\n", 2, "1 entries, but 2 follow"),
        ("edges.mtx", f"{BANNER} real general\n3 3 1\n1 2 -1.5\n", 3, "'-1.5', which is below 0"),
        ("edges.mtx", f"{BANNER} real general\n3 3 1\n1 2\n", 3, "2 fields where the first has 3"),
        ("edges.mtx", f"{BANNER} real general\n3 4 1\n1 2 1\n", 2, "square"),
        ("edges.mtx", f"{BANNER} real general\n% c\nthree\n", 3, "no.* size line"),
        ("edges.mtx", f"{BANNER} complex general\n3 3 0\n", 1, "complex values"),
        ("edges.mtx", f"{BANNER} real skew-symmetric\n3 3 0\n", 1, "skew-symmetric"),
        ("edges.mtx", f"{BANNER} complex hermitian\n3 3 0\n", 1, "complex"),
        ("edges.mtx", "%%MatrixMarket matrix array real general\n3 3\n", 1, "array format"),
        ("edges.mtx", "1 2\n", 1, "banner"),
        ("edges.mtx", f"{BANNER} real symmetric\n3 3 2\n2 1 1\n1 2 1\n", 4, r"entry \(1, 2\) is above the diagonal"),
        ("edges.mtx", f"{BANNER} pattern symmetric\n3 3 1\n% c\n1 2\n", 4, r"entry \(1, 2\) is above the diagonal"),
        ("edges.mtx", f"{BANNER} integer general\n3 3 1\n1 2 1.5\n", 3, "has 1.5, and the banner announces integers"),
        ("edges.mtx", f"{BANNER} pattern general\n3 3 1\n1 2 1\n", 3, "3 fields where the first has 2"),
        ("edges.mtx", f"{BANNER} real general\n3 3 {9 * 10**18}\n1 2 1\n", 2, "9,000,.*entries, but 1 follow"),
        ("edges.mtx", f"{BANNER} real general\n{'9' * 5000} 3 1\n1 2 1\n", 2, "more than 64 bits"),
        ("edges.csv", "src,dst\n1," + "2" * 200_000 + "\n", 2, "no 64-bit integer"),
        ("edges.csv", "src,dst\r\n1,2\r\n\r\n3\r\n", 4, "1 field"),
        ("edges.csv", "src,dst\n1,2\n".encode("utf-16-le"), 1, "zero byte"),
    ],
)  # fmt: skip
def test_malformed_lines_are_named(write_file, name, content, line, message):
    path = write_file(name, content)
    with pytest.raises(InvalidEdgesError, match=f"{name}, line {line}: .*{message}"):
        read_edges(path)


@pytest.mark.parametrize(
    ("weight", "message"),
    [("nan", "no finite number"), ("inf", "no finite number"), ("1e999", "past the range"), ("-0.5", "below 0"), ("", "empty"), ("x", "no finite")],
)  # fmt: skip
def test_malformed_weights_are_named(write_file, weight, message):
    with pytest.raises(InvalidEdgesError, match=f"line 3: column 'w' .*{message}"):
        read_edges(write_file("edges.csv", f"src,dst,w\n1,2,1e-300\n2,1,{weight}\n"), weight="w")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("1e-400", "too near to 0"),
        ("2e-324", "too near to 0"),
        ("7e-324", "too near to 0"),
        ("1e-999999999999999999999", "too near to 0"),
        ("-1e-400", "below 0"),
        ("1e400", "past the range"),
    ],
)
@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("edges.csv", "src,dst,weight\n1,2,0e-999\n2,1,"),
        ("edges.tsv", "src\tdst\tweight\n1\t2\t0.0\n2\t1\t"),
        ("edges.txt", "# c\n1 2 2.2250738585072014e-308\n2 1 "),
        ("edges.mtx", f"{BANNER} real general\n2 2 1\n2 1 "),
    ],
)
def test_weights_out_of_the_range_of_float64_are_named(write_file, name, before, weight, message):
    with pytest.raises(InvalidEdgesError, match=f"line 3: column 'weight' has '{weight}', which is {message}"):
        read_edges(write_file(name, f"{before}{weight}\n"), weight="weight")


@pytest.mark.parametrize("text", ["0x10", "1e3", "1.0", "+1", "007", "-0", "1_0", "\u0663", "true", "NaN"])
def test_text_that_is_not_a_canonical_integer_is_refused_or_kept(write_file, text):
    rest = "".join(f"{i},{i}\n" for i in range(1, 9))
    with pytest.raises(InvalidEdgesError, match="line 10: column 'src' has"):
        read_edges(write_file("edges.csv", f"src,dst\n{rest}{text},2\n"))
    assert rows(read_edges(write_file("edges.csv", f"src,dst\n{rest}{text},2\n"), ids="string"))[-1] == (text, "2")
    assert rows(read_edges(write_file("edges.csv", f"src,dst\n{text},x\n"))) == [(text, "x")]


def test_leading_zeros_are_dropped_only_if_integers_are_requested(write_file):
    path = write_file("edges.csv", "src,dst\n7,8\n007,9\n")
    assert rows(read_edges(path, ids="integer")) == [(7, 8), (7, 9)]
    with pytest.raises(InvalidEdgesError, match=r"line 3: .*leading zeros"):
        read_edges(path)


def test_dates_and_booleans_are_strings(write_file):
    path = write_file("edges.csv", "src,dst\n2024-01-01,12:00\ntrue,FALSE\nNone,nan\n")
    assert rows(read_edges(path)) == [("2024-01-01", "12:00"), ("true", "FALSE"), ("None", "nan")]


def test_text_after_a_closing_quote_is_refused(write_file):
    path = write_file("edges.csv", 'src,dst\nit"s,b\n"c ""d""",e\n\n"f"g,h\n')
    with pytest.raises(InvalidEdgesError, match="line 5: its quotes"):
        read_edges(path)


@pytest.mark.parametrize("name", ["edges.csv", "edges.txt"])
def test_long_fields_and_lines(write_file, monkeypatch, name):
    monkeypatch.setattr(text_blocks, "PIECE_BYTES", 1 << 16)
    delimiter = "," if name == "edges.csv" else " "
    long = "x" * (3 << 20)
    lines = [f"src{delimiter}dst", f"a{delimiter}{long}", f"b{delimiter}c"]
    assert rows(read_edges(write_file(name, "\n".join(lines)))) == [("a", long), ("b", "c")]
    with pytest.raises(InvalidEdgesError, match=r"line 4: it has 1 field where the first has 2: 'x{60}'"):
        read_edges(write_file(name, "\n".join([*lines, long])))


def test_line_without_end_is_refused(write_file, monkeypatch):
    monkeypatch.setattr(text_blocks, "LONGEST_RECORD", 1 << 20)
    with pytest.raises(InvalidEdgesError, match=r"line 3: it does not end within 1,048,576 bytes.*closing quote"):
        read_edges(write_file("edges.csv", 'src,dst\na,b\n"a,b\n' + "a,b\n" * (1 << 21)))


def test_reading_text_stops_before_memory_runs_out(write_file, monkeypatch):
    path = write_file("edges.tsv.gz", gzip.compress(b"1\t2\n" * (4 << 20)))
    free = iter([1 << 30, 100 << 20, 64 << 20])
    monkeypatch.setattr(machine, "bytes_available", lambda: next(free))
    with pytest.raises(
        OutOfMemoryError, match=r"edges.tsv.gz, line 1,\d{3},\d{3}: 2,\d{3},\d{3} edges have been read.*Parquet"
    ):
        read_edges(path)


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["integer", "string"])
def test_memory_to_read_text_is_little_more_than_its_columns(tmp_path, ids):
    path = tmp_path / "edges.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"12345678 87654321 0.12345678901234567\n" * (1 << 16))
    code = (
        "import resource, sys, pyarrow.csv, pandas, prplugin.io.text\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10\n"
        "before = peak()\n"
        "file = prplugin.io.read_edges(sys.argv[1], weight='weight', ids=sys.argv[2])\n"
        "print((peak() - before - (128 << 20)) / len(file.frame))"
    )
    command = [sys.executable, "-c", code, str(path), ids]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert float(done.stdout) < (
        40 if ids == "integer" else 55
    )  # bytes per edge, without the blocks that are being parsed


@pytest.mark.parametrize("delimiter", [",", "  "])
def test_line_numbers_across_blocks(write_file, monkeypatch, delimiter):
    monkeypatch.setattr(text_blocks, "PIECE_BYTES", 64)
    name = "edges.csv" if delimiter == "," else "edges.txt"
    lines = [f"{i}{delimiter}{i + 1}" for i in range(500)]
    assert rows(read_edges(write_file(name, "\n".join(lines)))) == [(i, i + 1) for i in range(500)]
    lines[432] = f"432{delimiter}x"
    with pytest.raises(InvalidEdgesError, match=r"line 433: .*'x'"):
        read_edges(write_file(name, "\n".join(lines)))
    # Each of the two ids is valid, but together they have no common integer type.
    lines[432], lines[7] = f"432{delimiter}{2**63}", f"-7{delimiter}8"
    with pytest.raises(InvalidEdgesError, match=r"edges.*: no integer type holds negative ids and those past 2\*\*63"):
        read_edges(write_file(name, "\n".join(lines)))


def test_quoted_fields_across_blocks(write_file, monkeypatch):
    monkeypatch.setattr(text_blocks, "PIECE_BYTES", 128)
    expected = [(f"{'a' * (i % 60)}\n{i}", f"b{i}") for i in range(200)]
    path = write_file("edges.csv", "src,dst\n" + "".join(f'"{a}",{b}\n' for a, b in expected))
    assert rows(read_edges(path)) == expected


QUOTED = st.text(alphabet='",\n\ra ', min_size=1, max_size=9).map(lambda text: text + "b")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
@given(
    fields=st.lists(st.tuples(QUOTED, QUOTED), min_size=1, max_size=12),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    piece=st.integers(1, 64),
)
def test_fields_quoted_by_csv_writer(tmp_path, monkeypatch, fields, quoting, piece):
    monkeypatch.setattr(text_blocks, "PIECE_BYTES", piece)
    with open(tmp_path / "edges.csv", "w", newline="") as file:
        csv.writer(file, quoting=quoting).writerows([("src", "dst"), *fields])
    bare = [(source.strip(" "), destination.strip(" ")) for source, destination in fields]
    assert rows(read_edges(str(tmp_path / "edges.csv"), ids="string")) == bare


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("edges.csv", b"", "is empty"),
        ("edges.txt.gz", gzip.compress(b""), "is empty"),
        ("edges.txt", b"# nothing\n\n", "no edges"),
        ("edges.txt.gz", gzip.compress(SNAP.encode())[:-9], "cut short"),
        ("edges.txt.zst", compressed(SNAP.encode() * 9, "zstd")[:-3], "cut short"),
        ("edges.txt.gz", SNAP.encode(), "damaged"),
        ("edges.txt", gzip.compress(SNAP.encode()), "compressed with gzip"),
        ("edges.parquet", b"not Parquet at all", "no Parquet can be read"),
        ("edges.parquet", b"", "no Parquet can be read"),
        ("edges.parquet.gz", gzip.compress(b"not Parquet"), "no Parquet file that can be read"),
        ("edges.feather", b"not Feather", "no Feather file that can be read"),
        ("edges.jsonl", b"\n\n", "all its lines are empty"),
        ("edges.csv.bz2", bz2.compress(b"src,dst\n1,2\n")[:-3], "damaged or cut short bz2"),
        ("edges.csv.xz", lzma.compress(b"src,dst\n1,2\n")[:-3], "damaged or cut short xz"),
        ("edges.csv.zip", b"PK\3\4", "damaged or cut short zip"),
        ("edges.mtx", f"{BANNER} real general\n% c\n".encode(), "no size line"),
        ("edges.mtx", f"{BANNER} pattern general\n{10**23} {10**23} 1\n1 2\n".encode(), "line 2: .*more than 64 bits"),
        ("edges.dat", b"{}", r"\.parquet, .*\.mtx.*\.xz or \.zip.*format='csv'"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,  # the output of gzip contains a timestamp
)
def test_files_without_edges_are_refused_with_the_reason(write_file, name, content, message):
    with pytest.raises(InvalidEdgesError, match=message):
        read_edges(write_file(name, content))


@pytest.mark.parametrize(
    "name", ["edges.csv", "edges.feather", "edges.mtx", "edges.jsonl", "g.sg", "g.adj", "g.properties"]
)
def test_files_that_cannot_be_opened_raise_both_kinds_of_errors(tmp_path, name):
    path = str(tmp_path / name)
    how = {"format": "ldbc"} if name == "g.properties" else {}
    for folder, kind, number in ((False, FileNotFoundError, errno.ENOENT), (True, IsADirectoryError, errno.EISDIR)):
        if folder:
            (tmp_path / name).mkdir()
        with pytest.raises(InvalidEdgesError, match=f"{name}: {os.strerror(number)}") as caught:
            read_edges(path, **how)
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert isinstance(error, kind)
            assert (error.errno, error.filename, str(error)) == (number, path, str(caught.value))


def test_matrix_market_vertices_and_symmetry(write_file):
    general = read_edges(write_file("a.mtx", f"{BANNER} pattern general\n%\n\n4 4 2\n1 2\n 2  3\n"))
    assert rows(general) == [(1, 2), (2, 3)]
    assert (general.vertices.tolist(), general.directed, general.columns.weight_name) == ([1, 2, 3, 4], True, None)
    text = f"{BANNER.upper()} Integer Symmetric\n3 3 2\n1 1 2\n3\t1\t4\n"
    symmetric = read_edges(write_file("b.mtx", text))
    assert rows(symmetric) == [(1, 1, 2.0), (3, 1, 4.0)]
    assert not symmetric.directed
    assert read_edges(write_file("b.mtx", text), unweighted=True).columns.weight_name is None
    assert rows(read_edges(write_file("c.mtx", f"{BANNER} real general\n2 2 0\n"))) == []


def test_matrix_market_with_more_vertices_than_memory(write_file):
    path = write_file("a.mtx", f"{BANNER} pattern general\n{9 * 10**18} {9 * 10**18} 1\n1 2\n")
    with pytest.raises(OutOfMemoryError, match="line 2: it announces 9,000,000,000,000,000,000 vertices"):
        read_edges(path)


def test_graph_from_file(write_file, tmp_path):
    frame = pd.DataFrame({"u": [1, 2, 3], "v": [2, 1, 1], "w": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "edges.parquet")
    frame.to_csv(tmp_path / "edges.csv", index=False)
    expected = prplugin.Graph(frame, "u", "v", "w", directed=False).rank().frame
    for name in ("edges.parquet", "edges.csv"):
        graph = prplugin.Graph.from_file(tmp_path / name, "u", "v", "w", directed=False)
        pd.testing.assert_frame_equal(graph.rank().frame, expected, check_exact=True)
    symmetric = prplugin.Graph.from_file(write_file("a.mtx", f"{BANNER} pattern symmetric\n4 4 1\n2 1\n"))
    assert (symmetric.number_of_vertices, symmetric.number_of_edges) == (4, 2)


def test_column_named_as_endpoint_and_weight_is_refused(write_file):
    with pytest.raises(InvalidOptionError, match="'dst' is named as an endpoint and as the weight"):
        read_edges(write_file("edges.csv", "src,dst\n1,2\n"), weight="dst")


RANKS = pd.DataFrame({"vertex": ["a", 'say "b"', "tab\there"], "pagerank": [0.1, 1 / 3, 5e-324]})


def read_ranks(path, name):
    raw = path.read_bytes()
    if name.endswith((".gz", ".zst")):
        raw = pa.CompressedInputStream(pa.BufferReader(raw), "gzip" if name.endswith(".gz") else "zstd").read()
    if ".parquet" in name:
        return pq.read_table(pa.BufferReader(raw)).to_pandas()
    if ".jsonl" in name or ".ndjson" in name:
        return pd.DataFrame([json.loads(line) for line in raw.decode().splitlines()])
    text = pd.read_csv(io.BytesIO(raw), sep="\t" if ".tsv" in name else ",", dtype=str)
    return text.assign(pagerank=[float(value) for value in text["pagerank"]])


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "jsonl", "ndjson"])
def test_written_ranks_have_all_bits(tmp_path, kind, ending):
    path = tmp_path / f"ranks.{kind}{ending}"
    write_frame(RANKS, str(path))
    found = read_ranks(path, path.name)
    assert found["vertex"].tolist() == RANKS["vertex"].tolist()
    assert found["pagerank"].tolist() == RANKS["pagerank"].tolist()
    assert os.listdir(tmp_path) == [path.name]


def test_csv_quotes_only_if_necessary(tmp_path):
    path = tmp_path / "ranks.csv"
    write_frame(pd.DataFrame({"vertex": [1], "pagerank": [1.0]}), str(path))
    assert '"' not in path.read_text()


def test_datetimes_are_written_as_strings(tmp_path):
    frame = pd.DataFrame({"vertex": pd.to_datetime(["2024-02-29"]), "pagerank": [1.0]})
    write_frame(frame, str(tmp_path / "ranks.jsonl"))
    assert json.loads((tmp_path / "ranks.jsonl").read_text())["vertex"].startswith("2024-02-29")


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "ranks.jsonl"
    path.write_text("old\n")
    with pytest.raises(InvalidOptionError, match="jsonl"):
        write_frame(pd.DataFrame({"vertex": [b"bytes"], "pagerank": [1.0]}), str(path))

    def raise_no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", raise_no_space)
    with pytest.raises(OSError, match="No space left") as caught:
        write_frame(RANKS, str(path))
    assert caught.value.filename == str(path)
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["ranks.jsonl"]


def test_write_keeps_file_mode_and_symbolic_link(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_frame(RANKS, str(link))
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert target.read_text().startswith("vertex,pagerank\n")


def test_invalid_output_is_refused_before_ranking(tmp_path):
    with pytest.raises(InvalidOptionError, match=r"Known endings are .*\.jsonl"):
        check_output(str(tmp_path / "ranks.xlsx"))
    with pytest.raises(InvalidOptionError):
        check_output(str(tmp_path / "ranks"))
    with pytest.raises(FileNotFoundError, match="nowhere: No such file") as caught:
        check_output(str(tmp_path / "nowhere" / "ranks.csv"))
    assert isinstance(caught.value, PageRankError)
    with pytest.raises(InvalidOptionError, match=r"\.gz or \.zst after it"):  # bz2 is only read
        check_output(str(tmp_path / "ranks.csv.bz2"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.csv: Is a directory"):
        check_output(str(tmp_path / "folder.csv"))
    assert os.listdir(tmp_path) == ["folder.csv"]


def test_real_edges_as_text(data_dir, tmp_path):
    real = pd.read_parquet(data_dir / "graphs" / "p2p-Gnutella31-weighted.parquet")
    path = tmp_path / "edges.txt.gz"
    with gzip.open(path, "wt") as file:
        file.write("# a comment\n")
        real.to_csv(file, sep=" ", header=False, index=False)
    found = read_edges(str(path), weight="weight").frame
    assert np.array_equal(found.to_numpy(np.float64), real.to_numpy(np.float64))
