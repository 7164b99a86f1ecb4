"""Folders of files with a manifest: written to a temporary name and renamed, and checked before they are read."""

from __future__ import annotations

import json
import mmap
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError
from prplugin.machine import this_machine

MANIFEST = "manifest.json"
FORMAT, VERSION, PACKED_VERSION = "prplugin.Graph", 1, 2
"""Format and version of a manifest; a graph of packed edges has a version of its own."""

MAX_MANIFEST = 1 << 26  # bytes of a manifest beyond which it is not read; the largest part are the labels of columns

MAX_HEADER = 1 << 14  # bytes at the beginning of a file that hold the type and the size of its array; 128 suffice


def is_saved(path: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether an object is the path of a folder with the manifest of a saved graph, perhaps a damaged one."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    try:
        with (Path(path) / MANIFEST).open("rb") as file:
            return f'"format": "{FORMAT}"'.encode() in file.read(1 << 10)
    except (OSError, ValueError):  # ValueError: a null character in the path
        return False


def write(path: str | os.PathLike[str], fill: Callable[[Path], dict[str, Any]]) -> None:
    """Write a folder; `fill` writes its files to a temporary folder and returns the manifest.

    A saved graph at `path` is replaced by two renames: between them there is none, and on an error it stays.

    Raises InvalidOptionError: if `path` is anything else than a saved graph or an empty folder.
    """
    target = check_target(path)
    token = secrets.token_hex(4)
    temporary, replaced = (target.with_name(f".{target.name}.{token}.{end}") for end in ("new", "old"))
    temporary.mkdir()
    try:
        facts = fill(temporary)
        files = {name: _described(temporary / name) for name in sorted(os.listdir(temporary))}
        manifest = {"format": FORMAT, "version": VERSION, **facts, "files": files}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        check_target(path)  # again, since writing takes long
        if target.exists():
            target.rename(replaced)
        try:
            temporary.rename(target)
        except OSError:
            if replaced.exists():
                replaced.rename(target)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if target.exists():
            shutil.rmtree(replaced, ignore_errors=True)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the path without links; raise InvalidOptionError if something else than a saved graph is there."""
    target = Path(os.path.realpath(path))
    if not target.exists() or is_saved(target) or (target.is_dir() and not os.listdir(target)):
        return target
    kind = "a folder with other files" if target.is_dir() else "a file"
    raise InvalidOptionError(
        f"{os.fspath(path)} is {kind}: a graph is saved to a new folder, or replaces a saved graph. Pass another path, "
        "or remove it first."
    )


class Folder:
    """A folder that `write` wrote, its files mapped to memory: they are read when, and as far as, they are used.

    `name`: The path as the user gave it, for messages.

    Raises InvalidEdgesError: unless the folder is complete and of a known version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self._path = Path(path)
        self._buffers: dict[str, mmap.mmap] = {}
        try:
            self.manifest: dict[str, Any] = _manifest(self._path)
        except (FileNotFoundError, NotADirectoryError):
            there = "is a file" if self._path.is_file() else f"has no {MANIFEST}"
            raise InvalidEdgesError(
                f"{self.name} is no saved graph, it {there}: Graph.load reads the folders of Graph.save, "
                "Graph.from_file reads files of edges."
            ) from None
        except ValueError as error:
            raise self.damaged(f"{MANIFEST} is not what Graph.save wrote ({error})") from error
        found, version = (self.manifest.get(key) for key in ("format", "version"))
        if found != FORMAT:
            raise InvalidEdgesError(f"{self.name} is no saved graph: its {MANIFEST} has the format {found!r}.")
        if version not in (VERSION, PACKED_VERSION):
            newer = isinstance(version, int) and version > PACKED_VERSION
            raise InvalidEdgesError(
                f"{self.name} is a saved graph of version {version!r}, and this prplugin reads versions {VERSION} "
                f"and {PACKED_VERSION}. "
                f"{'Update prplugin, or save' if newer else 'Save'} the graph again."
            )
        self._check_files()

    def _check_files(self) -> None:
        files = self.manifest.get("files")
        if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
            raise self.damaged(f"{MANIFEST} lists no files")
        for file, entry in files.items():
            if os.path.basename(file) != file or not re.fullmatch(r"\w[\w.-]*", file, re.ASCII):
                raise self.damaged(f"{MANIFEST} names {file!r}, which is no file of a saved graph")
            try:
                size = (self._path / file).stat().st_size
            except OSError:
                raise self.damaged(f"it lacks {file}") from None
            if size != entry.get("bytes"):
                raise self.damaged(f"{file} has {size:,} bytes instead of {entry.get('bytes')}")

    def damaged(self, fault: object) -> InvalidEdgesError:
        """Return the error for a saved graph that cannot be used."""
        return InvalidEdgesError(f"{self.name} is a damaged saved graph: {fault}. Save the graph again.")

    def buffer(self, file: str) -> mmap.mmap:
        """Map a file to memory; raise ValueError if the manifest does not list it."""
        if file not in self.manifest["files"]:
            raise ValueError(f"it lacks {file}")
        if (known := self._buffers.get(file)) is not None:
            return known
        with (self._path / file).open("rb") as opened:
            buffer = self._buffers[file] = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        return buffer

    def array(self, name: str, dtypes: Collection[np.dtype[Any]], size: int) -> Any:
        """Map an array of one dimension; raise ValueError unless it has one of these types and this size."""
        file = f"{name}.npy"
        buffer = self.buffer(file)
        stream = BytesIO(buffer[:MAX_HEADER])
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{file} is of another version of the format .npy")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if shape != (size,) or dtype not in dtypes:
            raise ValueError(f"{file} holds {dtype} of shape {shape}, not {size:,} {' or '.join(map(str, dtypes))}")
        return np.frombuffer(buffer, dtype, size, stream.tell())

    def verify(self, files: Collection[str]) -> None:
        """Compare the checksums of files with those in the manifest; raise ValueError if one differs."""
        with ThreadPoolExecutor(this_machine().threads, "prplugin") as pool:
            found = list(pool.map(lambda file: zlib.crc32(self.buffer(file)), files))
        for file, checksum in zip(files, found, strict=True):
            if checksum != self.manifest["files"][file].get("crc32"):
                raise ValueError(f"{file} has changed since it was saved")


def _described(path: Path) -> dict[str, int]:
    """Return what the manifest has of a file."""
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
        return {"bytes": len(buffer), "crc32": zlib.crc32(buffer)}


def _manifest(folder: Path) -> dict[str, Any]:
    with (folder / MANIFEST).open(encoding="utf-8") as file:
        text = file.read(MAX_MANIFEST + 1)
    if len(text) > MAX_MANIFEST:
        raise ValueError("it is too long")
    try:
        manifest = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(manifest, dict):
        raise ValueError("it is no object")
    return manifest


def save_array(path: Path, array: object) -> None:
    """Write an array of numbers as .npy."""
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
