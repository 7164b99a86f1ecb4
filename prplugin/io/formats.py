"""The file formats, how each is recognized, and the names of files in messages."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn

from prplugin.errors import InvalidEdgesError, InvalidOptionError, full_name, path_errors
from prplugin.folders import is_saved

STANDARD_STREAM = "-"
STANDARD_INPUT, STANDARD_OUTPUT = "standard input", "standard output"

TABLES = {"parquet": (".parquet", ".pq"), "csv": (".csv",), "tsv": (".tsv", ".tab")}
JSON_LINES = ".jsonl", ".ndjson"
OUTPUT_FORMATS = TABLES | {"jsonl": JSON_LINES, "snap": (".txt",)}
WRITTEN = {".gz": "gzip", ".zst": "zstd"}  # compressions by suffix, as named by pyarrow
COMPRESSIONS = WRITTEN | {".bz2": "bz2", ".xz": "xz", ".zip": "zip"}  # of files that are read


def described(path: str) -> str:
    """Return the name of an input file for messages."""
    return STANDARD_INPUT if path == STANDARD_STREAM else path


ADDRESS = re.compile("([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


def path_of(given: str | os.PathLike[str]) -> str:
    """Return a path, also one in bytes or with file://, as text."""
    try:
        path = os.fsdecode(given)
    except (TypeError, ValueError) as error:
        raise InvalidEdgesError(f"{full_name(given)} has no path of text: {error}. Pass a string.") from error
    if not path.lower().startswith("file://"):
        return path
    from urllib.parse import urlsplit  # lazy imports: few calls need them
    from urllib.request import url2pathname

    return url2pathname(urlsplit(path).path)


def is_standard_output(path: str) -> bool:
    """Return whether a path is the standard output of this process."""
    return path in (STANDARD_STREAM, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check_standard_output() -> None:
    """Raise OSError if standard output is closed, since `print` would silently write nothing."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), STANDARD_OUTPUT)


# --- formats of edges -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A format of files of edges.

    `reader`: Function of a module of `prplugin.io` that reads it, after the name of the module.
    `suffixes`: Suffixes of its files, before that of a compression.
    `recognizes`: Whether a path with none of the suffixes is of this format, by its content or by files beside it.
    """

    name: str
    reader: str
    suffixes: tuple[str, ...] = ()
    recognizes: Callable[[Path], bool] | None = None

    def accepts(self, path: Path) -> bool:
        """Return whether a path is of this format."""
        return path.suffix.lower() in self.suffixes or (self.recognizes is not None and self.recognizes(path))


PARQUET = b"PAR1"  # first bytes of a file
WEBGRAPH_SUFFIXES = ".graph", ".properties", ".offsets"


def _is_parquet(path: Path) -> bool:
    """Return whether a file, or one of the first thousand files in a folder that Arrow reads, is of Parquet."""
    if not os.path.isdir(path):
        return _start(path, 4) == PARQUET
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names if name[0] not in "._")
    return any(file.suffix.lower() in TABLES["parquet"] or _start(file, 4) == PARQUET for file in islice(files, 1000))


def _is_webgraph(path: Path) -> bool:
    properties = Path(f"{path.with_suffix('') if path.suffix in WEBGRAPH_SUFFIXES else path}.properties")
    return os.path.isfile(properties) and not _is_graphalytics(properties)


def _is_graphalytics(path: Path) -> bool:
    return path.suffix == ".properties" and b".vertex-file" in _start(path, 1 << 20)


def _is_common_crawl(path: Path) -> bool:
    return os.path.isdir(path) and bool(part_files(path, "vertices")) and bool(part_files(path, "edges"))


def part_files(folder: Path, kind: str) -> list[Path]:
    """Return the files of "vertices" or "edges" in a folder of Common Crawl, in order: parts, or one file."""
    return sorted([*folder.glob(f"{kind}/*.gz"), *folder.glob(f"{kind}/*.txt"), *folder.glob(f"*-{kind}.txt*")])


def _is_ligra(path: Path) -> bool:
    return _start(path, 22).split(b"\n")[0].strip() in (b"AdjacencyGraph", b"WeightedAdjacencyGraph")


def _start(path: Path, count: int) -> bytes:
    """Return the first bytes of a regular file; none if it cannot be read, or is a pipe, which is read only once."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read(count)
    except OSError:
        return b""


FORMATS = (
    Format("parquet", "tables.read_parquet", TABLES["parquet"]),
    Format("feather", "tables.read_feather", (".feather", ".arrow", ".ipc")),
    Format("jsonl", "tables.read_json_lines", JSON_LINES),
    Format("csv", "text.read", TABLES["csv"]),
    Format("tsv", "text.read", TABLES["tsv"]),
    Format("ligra", "adjacency.read_ligra", (".adj",), _is_ligra),
    Format("snap", "text.read", (".txt", ".snap", ".edges", ".edgelist", ".el")),
    Format("mtx", "arcs.read_matrix_market", (".mtx",)),
    Format("common-crawl", "webgraph.read_common_crawl", recognizes=_is_common_crawl),
    Format("ldbc", "arcs.read_graphalytics", (".v", ".e"), _is_graphalytics),
    Format("webgraph", "webgraph.read", recognizes=_is_webgraph),
    Format("metis", "adjacency.read_metis", (".graph", ".metis")),
    Format("gap", "adjacency.read_gap", (".sg", ".wsg")),
    Format("dimacs", "arcs.read_dimacs", (".gr",)),
)
"""All formats, in the order in which they are asked whether they accept a path."""

NAMES = [known.name for known in FORMATS]

DELIMITED = Format("delimited", "text.read")  # TSV or CSV by its first line: standard input

ROWS = {known.name: known.suffixes for known in FORMATS if known.name in (*OUTPUT_FORMATS, "feather", "mtx")}
"""Suffixes of files of rows, among them those of values by vertex."""


FUNCTIONS = {
    ".graphml": "networkx.read_graphml", ".gexf": "networkx.read_gexf", ".gml": "networkx.read_gml",
    ".net": "networkx.read_pajek", ".g6": "networkx.read_graph6", ".dot": "networkx.nx_pydot.read_dot",
    ".npz": "scipy.sparse.load_npz", ".xlsx": "pandas.read_excel", ".xls": "pandas.read_excel",
    ".ods": "pandas.read_excel", ".json": "pandas.read_json", ".orc": "pandas.read_orc", ".dta": "pandas.read_stata",
}  # fmt: skip
"""Functions of other libraries that read files which no reader here does, by suffix."""

CONSUMERS = {"networkx": "prplugin.Graph.from_networkx", "scipy": "prplugin.Graph.from_csr", "pandas": "prplugin.Graph"}


def without_compression(path: str) -> tuple[Path, str | None]:
    """Return a path without the suffix of a compression, and the compression, or None.

    A zip archive of one file is recognized by the name of that file, unless its own name has two suffixes.
    """
    name = Path(path)
    compression = COMPRESSIONS.get(name.suffix.lower())
    if compression == "zip" and not name.with_suffix("").suffix:
        from zipfile import BadZipFile, ZipFile  # a lazy import: few calls need it

        try:
            with ZipFile(path) as archive:
                members = archive.namelist()
        except (OSError, ValueError, BadZipFile):  # which the reader reports
            members = []
        if len(members) == 1:
            return name.with_suffix(Path(members[0]).suffix), compression
    return name.with_suffix("") if compression else name, compression


def recognized(path: str) -> tuple[Format | None, str | None]:
    """Return the first format that accepts a path, or None, and the compression by its suffix."""
    if path == STANDARD_STREAM:
        return DELIMITED, None
    name, compression = without_compression(path)
    found = next((known for known in FORMATS if known.accepts(name)), None)
    return found or (FORMATS[0] if _is_parquet(Path(path)) else None), compression


def input_format(path: str, given: str | None = None) -> tuple[Format, str | None]:
    """Return the format, by default as recognized, and the compression; raise InvalidEdgesError if it is unknown."""
    found, compression = recognized(path)
    if given is not None:
        if given not in NAMES:
            raise InvalidOptionError(f"format must be one of {', '.join(map(repr, NAMES))}, not {given!r}.")
        found = FORMATS[NAMES.index(given)]
    if (address := ADDRESS.match(path)) and (found != FORMATS[0] or address[1].lower() in ("http", "https", "ftp")):
        raise InvalidEdgesError(
            f"{path} is an address, and prplugin reads files of this machine: download it first, for instance with "
            f"curl -LO {path}"
        )
    if found is not None:
        return found, compression
    with path_errors(path):
        os.stat(path)
    suffix = without_compression(path)[0].suffix.lower()
    if is_saved(path):
        reason = "a saved graph, which is no file of edges: pass it alone."
    elif os.path.isdir(path):
        reason = "a folder in which there is no Parquet file. Pass the files of edges in it, as a list."
    elif function := FUNCTIONS.get(suffix):
        consumer = CONSUMERS[function.partition(".")[0]]
        reason = f"not read by prplugin, but by {function}: pass what that returns to {consumer}."
    elif ".tar" in map(str.lower, Path(path).suffixes) or suffix in (".tar", ".tgz", ".7z", ".rar"):
        reason = "an archive: unpack it, and pass the file of edges in it."
    else:
        suffixes = {known.name: known.suffixes for known in FORMATS}
        raise InvalidEdgesError(
            f"{path}: its name does not say what it holds. {_known(suffixes, COMPRESSIONS)} "
            "For any other name pass format='csv', or another."
        )
    raise InvalidEdgesError(f"{path} is {reason}")


# --- formats of ranks and of values by vertex -------------------------------------------------------------------------


def output_format(path: str) -> tuple[str, str | None]:
    """Return the format and the compression of a file of ranks; raise InvalidOptionError if they are unknown.

    Standard output is TSV, as are pipes and devices without a suffix.
    """
    if is_standard_output(path):
        return "tsv", None
    found, compression = by_suffix(path, OUTPUT_FORMATS)
    if compression is not None and compression not in WRITTEN.values():
        found = None
    target = Path(path)
    if not found and not target.suffix and target.exists() and not target.is_file():
        found = "tsv"
    if not found and target.name.endswith("-PR"):  # as LDBC Graphalytics names its output
        found = "snap"
    if not found:
        raise InvalidOptionError(f"{path}: its name does not say how to write it. {_known(OUTPUT_FORMATS, WRITTEN)}")
    return found, compression


def by_suffix(path: str, formats: Mapping[str, tuple[str, ...]]) -> tuple[str | None, str | None]:
    """Return the format and the compression of a file by its suffix, or None."""
    name, compression = without_compression(path)
    return next((known for known, suffixes in formats.items() if name.suffix.lower() in suffixes), None), compression


def _known(formats: Mapping[str, tuple[str, ...]], compressions: Mapping[str, str]) -> str:
    suffixes = ", ".join(suffix for suffixes in formats.values() for suffix in suffixes)
    return f"Known endings are {suffixes}, each with or without {' or '.join(compressions)} after it."


# --- property files ---------------------------------------------------------------------------------------------------

LARGEST = 1 << 20  # bytes of a property file, of which a few thousand are usual
MOST = 2**31 - 1, 2**62  # greatest parameter, and greatest number of vertices or arcs


@dataclass(frozen=True)
class Properties:
    """The items of a property file, as of Java: lines ``key=value``, and comments."""

    path: str
    items: dict[str, str]

    @classmethod
    def read(cls, path: str) -> Properties:
        """Read a file."""
        with path_errors(path), open(path, "rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise InvalidEdgesError(f"{path} has more than {LARGEST:,} bytes, so this is no property file.")
        lines = [line.strip() for line in text.decode("latin-1").splitlines()]
        pairs = [re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
        return cls(path, {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs})

    def refuse(self, what: str) -> NoReturn:
        """Raise InvalidEdgesError about this file."""
        raise InvalidEdgesError(f"{self.path}: {what}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return the value of a key; raise if it is absent and has no default."""
        value = self.items.get(key, default)
        if value is None:
            self.refuse(f"it has no {key}.")
        return value

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        text = self.text(key).lower()
        if text not in ("true", "false"):
            self.refuse(f"{key} is {text!r}, and must be true or false.")
        return text == "true"

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a non-negative integer."""
        text = self.text(key, None if default is None else str(default))
        most = MOST[default is None]
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) > most:
            self.refuse(f"{key} is {text[:60]!r}, and must be an integer of 0 to {most:,}.")
        return int(text)
