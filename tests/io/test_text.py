"""Options of text files, in Python and in the command alike, and what is reported of them."""

from __future__ import annotations

import ast
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import prplugin
from prplugin.cli import main
from prplugin.errors import ColumnNotFoundError, InvalidEdgesError, InvalidOptionError, PageRankError
from prplugin.io import text_blocks

BANNER = "%%MatrixMarket matrix coordinate pattern general\n"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, text):
    Path(name).write_bytes(text.encode())
    return name


def options_of(arguments):
    """Return arguments of Python as options of the command."""
    options = []
    for name, value in arguments.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, bool):
                options.append(f"--{'' if each else 'no-'}{name}")
            else:
                options += [f"--{name}", str(each)]
    return options


def rank(name, input_=None, **arguments):
    """Rank a file by `pagerank`, `from_file` and the command, which agree; return the ranks and the command's report."""
    result = CliRunner().invoke(main, ["rank", name, *options_of(arguments), "-o", "ranks.parquet"], input=input_)
    assert result.exit_code == 0, result.output
    frame = pd.read_parquet("ranks.parquet")
    if input_ is None:
        for found in (prplugin.pagerank(name, **arguments), prplugin.Graph.from_file(name, **arguments).rank().frame):
            pd.testing.assert_frame_equal(found, frame)
    return dict(frame.itertuples(index=False, name=None)), result.stdout


def refusal(name, input_=None, **arguments):
    """Return the message with which the file is refused by all three; it names what each of them accepts."""
    result = CliRunner().invoke(main, ["rank", name, *options_of(arguments)], input=input_)
    assert result.exit_code == 1, result.output
    if input_ is None:
        messages = []
        for function in (prplugin.pagerank, prplugin.Graph.from_file):
            with pytest.raises(PageRankError) as caught:
                function(name, **arguments)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        assert not re.search(r"(?<!\S)--[a-z]", messages[0])
        assert not re.search(r"\b(header|ids|skip|delimiter|comment|null|missing|source|destination)=", result.stderr)
    return result.stderr


def reference(*edges, **arguments):
    frame = pd.DataFrame(list(edges), columns=["src", "dst"])
    return pytest.approx(dict(frame.pagerank(**arguments).itertuples(index=False, name=None)), abs=2e-6)


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "src,dst\n1,2.0\n2,1.0\n"), ("e.csv", "src,dst\n1.0,2\n2.0,1\n"), ("e.txt", "1 2.0\n2 1.00\n"),
        ("e.tsv", "1\t+2\n2\t+1\n"), ("e.csv", "1,2e0\n2,1E0\n"), ("-", "1,2.0\n2,1.0\n"),
        ("e.csv", "src,dst\n" + "a,b\n" * 300 + "1,2\n2.0,1\n"), ("e.csv", "src,dst\n1.0,2.00\n2.0,1.0\n"),
    ],
)  # fmt: skip
def test_one_integer_in_two_forms_is_never_two_vertices(name, text):
    input_ = text if name == "-" else None
    if name != "-":
        write(name, text)
    message = refusal(name, input_)
    assert "are one integer and would be two vertices. Pass --ids integer" in message
    if "e0" not in text and "a,b" not in text:
        assert rank(name, input_, ids="integer")[0] == reference((1, 2), (2, 1))


def test_minus_zero_is_zero_or_refused():
    for text in ("src,dst\n0,-0\n-0,1\n1,0\n", "src,dst\n-0,-0\n0,1\n1,-0\n"):
        write("e.csv", text)
        assert "--ids integer" in refusal("e.csv")
        assert "--ids string" not in refusal("e.csv") or "different vertices" in refusal("e.csv")
    assert rank("e.csv", ids="integer")[0] == reference((0, 0), (0, 1), (1, 0))


def test_a_float_among_integers_is_not_advised_to_be_a_string():
    write("e.csv", "src,dst\n1,2\n2,3\n3,1.0\n")
    message = refusal("e.csv")
    assert "line 4: column 'dst' has '1.0'" in message
    assert "--ids integer" in message
    assert "--ids string" not in message
    assert rank("e.csv", ids="integer")[0] == reference((1, 2), (2, 3), (3, 1))


def test_versions_that_are_strings_can_be_kept():
    write("e.csv", "src,dst\nv,1\n1.0,1\n1,v\n")
    refusal("e.csv")
    assert rank("e.csv", ids="string")[0] == reference(("v", "1"), ("1.0", "1"), ("1", "v"))


def test_blanks_around_ids_are_no_part_of_them():
    write("e.csv", 'source,target\nanna,ben\nben, anna\ncy ,"ben"\n"cy" ,\t"ben" \n')
    ranks, report = rank("e.csv")
    assert ranks == reference(("anna", "ben"), ("ben", "anna"), ("cy", "ben"), ("cy", "ben"))
    assert "blanks around 2 ids removed" in report
    write("e.csv", 'src,dst\n"a, ""b"" ,c" , "d"\nd,"a, ""b"" ,c"\n')
    assert rank("e.csv")[0] == reference(('a, "b" ,c', "d"), ("d", 'a, "b" ,c'))


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mark"), [("e.tsv", "\t"), ("e.csv", ","), ("e.txt", " ")])
def test_three_columns_without_a_header_are_refused_unless_the_third_has_weights(name, mark):
    write(name, mark.join("hrt") + "\n" + mark.join("trh") + "\n")
    message = refusal(name, header=False)
    assert "has no header and 3 columns" in message
    assert "column 3 has 't'" in message
    ranks, report = rank(name, header=False, source=1, destination=3)
    assert ranks == reference(("h", "t"), ("t", "h"))
    assert "columns 1 -> 3 of 3 read" in report
    write(name, mark.join("123") + "\n" + mark.join("214") + "\n")
    ranks, report = rank(name)
    assert ranks == reference((1, 2), (2, 1))
    assert "columns 1 -> 2 of 3 read" in report
    assert "--weight weight" in report
    assert "weight 3 of 3 read" in rank(name, weight="weight")[1]
    assert "weight 3 of 3 read" in rank(name, weight=3)[1]


def test_times_are_no_weights():
    write("e.txt", "1 2 1082040961\n3 4 1082155839\n")
    assert "--weight" not in rank("e.txt")[1]
    assert "'time'" in refusal("e.txt", weight="weight")


def test_columns_by_position_also_where_two_have_one_name():
    write("e.csv", "Person.id|Person.id|date\n1|2|x\n2|1|y\n3|1|z\n")
    assert "--source 1 or --source 2" in refusal("e.csv", delimiter="|", source="Person.id", destination="date")
    ranks, report = rank("e.csv", delimiter="|", source=2, destination=1)
    assert ranks == reference((2, 1), (1, 2), (1, 3))
    assert "columns 2 (Person.id) -> 1 (Person.id) of 3 read" in report
    assert "no column 4" in refusal("e.csv", delimiter="|", source=4, destination=1)
    write("e.csv", "3,1,2\n1,2,3\n2,1,3\n")  # the names of these columns are numbers
    assert rank("e.csv", header=True, source=1, destination=2)[0] == reference((2, 3), (1, 3))


# --- lines ------------------------------------------------------------------------------------------------------------


def test_comments_of_snap_stand_above_the_edges_or_apart():
    write("e.txt", "# FromNodeId ToNodeId\n%x\na b\n#c a\nb a\n%d a\n# said later\n")
    ranks, report = rank("e.txt", header=False)
    assert ranks == reference(("a", "b"), ("#c", "a"), ("b", "a"), ("%d", "a"))
    assert "3 comments skipped" in report
    ranks, report = rank("e.txt", header=False, comment="#%")
    assert ranks == reference(("a", "b"), ("b", "a"))
    assert "5 comments skipped" in report
    write("e.txt", "#a #b\n#b #a\n")
    assert rank("e.txt", header=False, comment="")[0] == reference(("#a", "#b"), ("#b", "#a"))
    write("e.txt", "1 2\n2 1\n#comment 7\n")
    assert "line 3" in (message := refusal("e.txt"))
    assert "pass --comment '#'" in message
    write("e.txt", "1 2\n2 1\n#a long comment\n")
    assert "pass --comment '#'" in refusal("e.txt")


@pytest.mark.parametrize("piece", [1, 3, 7, 1 << 22])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_comments_and_skipped_lines_of_delimited_text(monkeypatch, piece, end):
    monkeypatch.setattr(text_blocks, "PIECE_BYTES", piece)
    lines = ['"All Inlinks', "sep=;", "", '# by "x', "src;dst", '"a;', 'b";c', ' # d;"e', "#", "c;'#x'", "'#x';c", ""]
    write("e.csv", end.join(lines))
    ranks, report = rank("e.csv", comment="#", skip=2)
    assert ranks == reference((f"a;{end}b", "c"), ("c", "'#x'"), ("'#x'", "c"))
    assert "2 lines skipped; 3 comments skipped" in report
    write("e.csv", end.join([*lines, "d"]))
    with pytest.raises(InvalidEdgesError, match=f"line {len(lines) + 1}: it has 1 field"):
        prplugin.pagerank("e.csv", comment="#", skip=2)


def test_comments_with_any_delimiter_and_titles():
    write("e.edges", "% a comment\n# another\n1,2\n2,1\n")
    assert "--delimiter" in refusal("e.edges")
    assert rank("e.edges", delimiter=",")[0] == reference((1, 2), (2, 1))
    write("e.csv", "# a comment\n1,2\n2,1\n")
    assert "--comment '#' if it is a comment" in refusal("e.csv")
    assert rank("e.csv", comment="#")[0] == reference((1, 2), (2, 1))
    write("e.csv", '"All Inlinks"\nFrom,To\na,b\nb,a\n')
    assert "--skip 1 if the header is below it" in refusal("e.csv")
    assert rank("e.csv", skip=1)[0] == reference(("a", "b"), ("b", "a"))
    write("e.csv", "1;2\n")
    assert "--delimiter ';'" in refusal("e.csv", delimiter="|", header=False)
    assert "empty or skipped" in refusal("e.csv", skip=9)


def test_missing_values_by_text():
    airports = "2B,410,AER,2965,KZN\r\n2B,410,\\N,\\N,AER\r\n2B,410,ASF,2966, NA \r\n2B,410,MRV,,AER\r\n"
    write("routes.csv", airports)
    null = ["\\N", "NA"]
    message = refusal("routes.csv", header=False, source=3, destination=5, null=null)
    assert "line 2: column 'column3' has '\\\\N', which stands for a missing value. In all, 2 rows have" in message
    ranks, report = rank("routes.csv", header=False, source=3, destination=5, null=null, missing="drop")
    assert ranks == reference(("AER", "KZN"), ("MRV", "AER"))
    assert "2 rows with a missing endpoint dropped" in report
    assert "pass --null '\\N'" in refusal("routes.csv", header=False, source=4, destination=2)
    options = {"header": False, "source": 4, "destination": 2, "null": "\\N", "missing": "drop"}
    assert rank("routes.csv", **options)[0] == reference((2965, 410), (2966, 410))
    write("e.csv", "src,dst,w\n1,2,NA\n")
    assert "line 2: column 'w' has 'NA', which stands for" in refusal("e.csv", weight="w", null="NA")


TIMED = pd.DataFrame({"src": list("abcab"), "dst": list("bcaca"), "w": [1.0, 2, 1, 3, 1]})


@pytest.mark.parametrize(
    "times",
    [
        ["2024-01-01", "2024-02-01", "2024-02-03", "2024-02-09", "2024-03-01"],
        ["2024-01-01T00:00:00Z", "2024-02-01T12:00:00Z", "2024-02-03", "2024-02-09T00:00Z", "2024-03-01T00:00Z"],
        ["1704067200", "1706745600", "1707000000", "1707500000", "1709251200.5"],
    ],
    ids=["dates", "times", "numbers"],
)
@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_times(times, name):
    frame = TIMED.assign(ts=times)
    if times[0].isdigit():
        life, typed = 1e6, TIMED.assign(ts=np.array(times, float))
    else:
        zone = "Z" in times[0]
        life, typed = "30D", TIMED.assign(ts=pd.to_datetime(frame["ts"], format="ISO8601", utc=zone))
    frame.to_csv(name, index=False) if name == "e.csv" else frame.to_json(name, orient="records", lines=True)
    for more in ({"half_life": life}, {"window": life}, {"half_life": life, "weight": "w"}):
        expected = typed.pagerank(time="ts", **more)
        found = prplugin.Graph.from_file(name, time="ts", **more).rank().frame
        pd.testing.assert_frame_equal(found, expected)
        pd.testing.assert_frame_equal(prplugin.pagerank(name, time=4 if name == "e.csv" else "ts", **more), expected)
    options = ["--time", "ts", "--half-life", str(life), "-q", "-o", "ranks.parquet"]
    assert CliRunner().invoke(main, ["rank", name, *options]).exit_code == 0
    pd.testing.assert_frame_equal(pd.read_parquet("ranks.parquet"), typed.pagerank(time="ts", half_life=life))


@pytest.mark.parametrize(("value", "shown"), [("soon", "'soon' in row 1"), ("17", "'17' in row 1")])
def test_texts_that_are_no_times(value, shown):
    write("e.csv", f"src,dst,ts\n1,2,2024-01-01\n2,1,{value}\n")
    with pytest.raises(prplugin.InvalidEdgesError, match=f"column 'ts' has {shown}.*write all times as numbers"):
        prplugin.pagerank("e.csv", time="ts", half_life="7D")


def test_updates_of_graphs_with_times_by_text():
    write("e.csv", "src,dst,ts\n1,2,2024-01-01\n2,1,2024-02-01\n")
    write("more.csv", "src,dst,ts\n2,3,2024-03-01\n")
    run = CliRunner().invoke
    assert run(main, ["save", "e.csv", "graph", "--time", "ts", "--half-life", "30D"]).exit_code == 0
    assert run(main, ["update", "graph", "--add", "more.csv"]).exit_code == 0
    everything = pd.concat([pd.read_csv("e.csv"), pd.read_csv("more.csv")], ignore_index=True)
    expected = everything.assign(ts=pd.to_datetime(everything["ts"])).pagerank(time="ts", half_life="30D")
    found = prplugin.Graph.load("graph").rank().frame
    assert np.allclose(found["pagerank"], expected["pagerank"], atol=2e-6)


@pytest.mark.parametrize("said", ["% sym unweighted", "%sym positive", "# Undirected graph: a.txt\n# Nodes: 3"])
def test_files_that_say_that_they_are_undirected(said):
    write("e.txt", f"{said}\n1 2\n1 3\n")
    ranks, report = rank("e.txt")
    assert ranks == reference((1, 2), (1, 3), directed=False)
    assert f"the file says that it is undirected: '{said.splitlines()[0]}'" in report
    assert CliRunner().invoke(main, ["verify", "e.txt"]).exit_code == 0


def test_files_that_say_that_they_are_directed_or_bipartite():
    for said in ("% asym", "# Directed graph (each unordered pair of nodes is saved once)", "# undirected graphs"):
        write("e.txt", f"{said}\n1 2\n1 3\n")
        assert rank("e.txt")[0] == reference((1, 2), (1, 3))
    write("e.txt", "% bip unweighted\n1 7\n2 8\n")
    report = CliRunner().invoke(main, ["rank", "e.txt"]).output
    assert "the file says that it is bipartite: '% bip unweighted'" in report
    same = pd.DataFrame({"source": [1, 2], "destination": [7, 8]}).pagerank(bipartite=True, directed=False)
    found = prplugin.pagerank("e.txt")
    pd.testing.assert_frame_equal(found, same)
    assert CliRunner().invoke(main, ["verify", "e.txt"]).exit_code == 0
    assert prplugin.Graph.from_file("e.txt").rank(exclude="source").frame["vertex"].tolist() == [7, 8]
    assert rank("e.txt", skip=1)[0] == reference((1, 7), (2, 8))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.txt", "{0}1 2\n{0}2 1\n"), ("e.mtx", f"{BANNER}{{0}}2 2 2\n1 2\n{{0}}2 1\n"),
        ("e.metis", "{0}2 1\n2\n{0}1\n{0}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("line", ["\n", "% c\r\n"])
def test_comments_and_empty_lines_are_read_in_bulk(name, text, line):
    """A look at each of 6 million lines by itself would take more than 2 s."""
    if (name, line) == ("e.metis", "\n"):
        text = "{0}2 1\n2\n1\n{0}"  # empty lines are vertices
    write(name, text.format(line * (3 << 20)))
    prplugin.Graph.from_csr([0, 1, 2], [1, 0])
    before = time.process_time()
    graph = prplugin.Graph.from_file(name)
    assert time.process_time() - before < 1.5
    assert (graph.number_of_vertices, graph.number_of_edges) == (2, 2)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delimiter": "||"}, "delimiter must be one ASCII character"), ({"comment": "# "}, "comment must be"),
        ({"skip": -1}, "skip must be a whole number"), ({"null": 7}, "null must be a text"),
        ({"missing": "keep"}, "missing must be one of"), ({"ids": "float"}, "ids must be one of"),
        ({"header": "no"}, "header must be True or False"),
    ],
)  # fmt: skip
def test_invalid_options(arguments, message):
    write("e.csv", "src,dst\n1,2\n")
    for function in (prplugin.pagerank, prplugin.Graph, prplugin.Graph.from_file):
        with pytest.raises(InvalidOptionError, match=message):
            function("e.csv", **arguments)


def test_options_of_files_are_refused_for_what_is_no_text():
    frame = pd.DataFrame({"src": [1, 2], "dst": [2, 1]})
    with pytest.raises(InvalidOptionError, match=r"skip= says how to read a file of edges, not pandas"):
        frame.pagerank(skip=1)
    frame.to_parquet("e.parquet")
    assert "comment" in refusal("e.parquet", comment="#")
    with pytest.raises(InvalidOptionError, match="delimiter= is an option of CSV, TSV and SNAP text, and"):
        prplugin.pagerank("e.parquet", delimiter=";")
    with pytest.raises(InvalidOptionError, match=r"Did you mean delimiter=\?"):
        prplugin.pagerank("e.csv", sep=";")
    pd.DataFrame({"src": pd.array([1, 2, None], "Int64"), "dst": [2, 1, 1]}).to_parquet("e.parquet")
    assert rank("e.parquet", missing="drop")[0] == reference((1, 2), (2, 1))


def test_no_message_of_the_package_names_an_option_of_the_command():
    package = Path(prplugin.__file__).parent
    paths = [path for path in package.rglob("*.py") if path.parent.name != "cli"]
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                assert not re.search(r"(?<=\s)--[a-z]", node.value), f"{path}: {node.value}"


def test_values_in_messages_of_the_command_are_as_they_are():
    write("e.csv", "src,dst\n1,2\n2,3\n3,source='x'\n")
    result = CliRunner().invoke(main, ["rank", "e.csv"])
    assert "column 'dst' has \"source='x'\", which is no integer" in result.stderr


def test_vertices_named_like_pairs_and_files():
    names = ["https://x.org/?id=5", "https://x.org/?id", "requirements.txt", "data.csv"]
    edges = list(zip(names, names[1:] + names[:1], strict=True))
    pd.DataFrame(edges, columns=["src", "dst"]).to_csv("e.csv", index=False)
    write("requirements.txt", "https://x.org/?id\n")

    def run(*options):
        return CliRunner().invoke(main, ["rank", "e.csv", *options, "-o", "r.parquet"])

    for option in ("personalization", "dangling"):
        for item, expected in [(names[0], [names[0]]), (f"{names[0]}=2", {names[0]: 2}), (names[2], [names[2]]),
                               ("./requirements.txt", [names[1]])]:  # fmt: skip
            result = run(f"--{option}", item)
            assert result.exit_code == 0, result.output
            assert pd.read_parquet("r.parquet").set_index("vertex")["pagerank"].to_dict() == reference(
                *edges, **{option: expected}
            )
    for option in ("among", "exclude", "seeds"):
        assert run(f"--{option}", "data.csv").exit_code == 0  # there is no such file
    assert run("--vertices", "data.csv").exit_code == 1


@pytest.mark.parametrize("option", ["seeds", "among", "exclude", "vertices", "personalization", "dangling"])
def test_a_file_of_plain_vertices_serves_every_option(option):
    edges = [("ann", "bob"), ("bob", "cy"), ("cy", "ann"), ("cy", "bob")]
    pd.DataFrame(edges, columns=["src", "dst"]).to_csv("e.csv", index=False)
    expected = prplugin.pagerank("e.csv", **{option: ["ann", "bob"]})
    write("plain.txt", "# these\nann\nbob\n")
    write("plain.csv", "ann\n bob\n")
    write("header.csv", "vertex\nann\nbob\n")
    pd.DataFrame({"name": ["ann", "bob"]}).to_parquet("other.parquet")
    for name in ("plain.txt", "plain.csv", "header.csv", "other.parquet"):
        result = CliRunner().invoke(main, ["rank", "e.csv", f"--{option}", name, "-o", "r.parquet"])
        assert result.exit_code == 0, result.output
        pd.testing.assert_frame_equal(pd.read_parquet("r.parquet"), expected)
    if option in ("personalization", "dangling"):
        prplugin.pagerank("e.csv", alpha=0.5).to_csv("ranks.csv", index=False)
        result = CliRunner().invoke(main, ["rank", "e.csv", f"--{option}", "ranks.csv", "-o", "r.parquet"])
        assert result.exit_code == 0, result.output
        ranks = prplugin.pagerank(
            "e.csv", **{option: prplugin.pagerank("e.csv", alpha=0.5).set_index("vertex").pagerank}
        )
        pd.testing.assert_frame_equal(pd.read_parquet("r.parquet"), ranks)


def test_a_file_of_integers_may_have_any_header():
    write("e.csv", "src,dst\n1,2\n2,1\n")
    for text in ("user_id\n2\n", "2\n", "vertex\n2\n"):
        write("v.csv", text)
        result = CliRunner().invoke(main, ["rank", "e.csv", "--among", "v.csv", "-o", "r.parquet"])
        assert result.exit_code == 0, result.output
        assert pd.read_parquet("r.parquet")["vertex"].tolist() == [2]


def test_what_was_read_is_logged(caplog):
    caplog.set_level("INFO", logger="prplugin")
    write("e.txt", "# c\n1 2 3\n2 1 4\n")
    prplugin.pagerank("e.txt")
    assert "e.txt: columns 1 -> 2 of 3 read; 1 comment skipped" in caplog.text
    with pytest.raises(ColumnNotFoundError):
        prplugin.pagerank("e.txt", "u", "v")
