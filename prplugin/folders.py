"""Folders of files with a manifest: written to a temporary name and renamed, and checked before they are read."""

from __future__ import annotations

import errno
import json
import mmap
import os
import re
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, system_error
from prplugin.machine import mapping_on, this_machine

MANIFEST = "manifest.json"
FORMAT, VERSION, PACKED_VERSION = "prplugin.Graph", 1, 2
"""Format and version of a manifest; a graph of packed edges has a version of its own."""

MAX_MANIFEST = 1 << 26  # bytes of a manifest beyond which it is not read; the largest part are the labels of columns

MAX_HEADER = 1 << 14  # bytes at the beginning of a file that hold the type and the size of its array; 128 suffice

CHECKSUM = "crc32"  # key of the manifest: the checksum of the rest of it

WAIT_SECONDS = 1.0  # most time for which `Folder` waits for other processes that replace the folder


def is_saved(path: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether an object is the path of a folder with the manifest of a saved graph, perhaps a damaged one."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    try:
        place = Path(os.path.realpath(os.fsdecode(path)))
        with _open(place / MANIFEST) as file:
            return f'"format": "{FORMAT}"'.encode() in file.read(1 << 10)
    except FileNotFoundError:
        return not place.exists() and any(_left(place))  # `Folder` waits until it is replaced
    except (OSError, ValueError):  # ValueError: a null character in the path
        return False


def write(path: str | os.PathLike[str], fill: Callable[[Path], dict[str, Any]]) -> None:
    """Write a folder; `fill` writes its files to a temporary folder and returns the manifest.

    A saved graph at `path` is replaced by two renames: between them there is none, and on an error it stays. Of several
    threads and processes that write to one path, the last one to finish leaves its graph there.

    Raises InvalidOptionError: if `path` is anything else than a saved graph or an empty folder.
    Raises an error that is also an OSError if the files cannot be written, for instance on a full disk.
    """
    target = check_target(path)
    temporary = _beside(target, "new")
    try:
        temporary.mkdir()
        facts = fill(temporary)
        files = {name: _described(temporary / name) for name in sorted(os.listdir(temporary))}
        manifest = signed({"format": FORMAT, "version": VERSION, **facts, "files": files})
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        _replace(target, temporary)
    except OSError as error:
        raise system_error(f"the graph cannot be saved to {os.fsdecode(path)}", error, InvalidOptionError) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace(target: Path, temporary: Path) -> None:
    """Rename a folder to `target`; remove the saved graph, or the empty folder, that is there."""
    replaced: list[Path] = []
    try:
        while True:
            try:
                temporary.rename(target)
                return
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            check_target(target)  # again, since writing takes long
            with suppress(FileNotFoundError):  # another process has renamed it
                target.rename(other := _beside(target, "old"))
                replaced.append(other)
    finally:
        for other in reversed(replaced):
            if not target.exists():
                with suppress(OSError):  # another process has written there
                    other.rename(target)
            shutil.rmtree(other, ignore_errors=True)


def _beside(target: Path, end: str) -> Path:
    """Return a new path beside a folder; its name has the beginning of the folder's, which may be of full length."""
    return target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}.{end}")


def _left(target: Path) -> Iterator[Path]:
    """Yield what `write` has renamed to replace it; it stays there if the process was killed before it renamed more."""
    begin = f".{target.name[:60]}."
    with suppress(OSError):
        yield from (each for each in target.parent.iterdir() if each.name.startswith(begin) and each.suffix == ".old")


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the path without links; raise InvalidOptionError if something else than a saved graph is there."""
    try:
        target = Path(os.path.realpath(os.fsdecode(path)))
    except (TypeError, ValueError) as error:
        raise InvalidOptionError(f"path must be the path of a folder, not {path!r}: {error}.") from error
    kind = "a folder with other files"
    for _ in range(9):  # another process may replace it in between
        try:
            if is_saved(target) or not os.listdir(target):
                return target
        except FileNotFoundError:
            return target
        except NotADirectoryError:
            kind = "a file"
        except OSError as error:
            raise system_error(
                f"the graph cannot be saved to {os.fsdecode(path)}", error, InvalidOptionError
            ) from error
    raise InvalidOptionError(
        f"{os.fsdecode(path)} is {kind}: a graph is saved to a new folder, or replaces a saved graph. Pass another "
        "path, or remove it first."
    )


def signed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest with the checksum of its content, whatever its layout as text."""
    rest = {key: value for key, value in manifest.items() if key != CHECKSUM}
    return {**rest, CHECKSUM: zlib.crc32(json.dumps(rest).encode())}


class Folder:
    """A folder that `write` wrote, its files mapped to memory: they are read when, and as far as, they are used.

    All files are opened here, so that a graph that replaces this one later changes nothing.

    `name`: The path as the user gave it, for messages.
    `mapped`: Whether files are mapped. If not, they are read to memory, and may change or disappear afterwards.

    Raises InvalidEdgesError: unless the folder is complete, unaltered as far as its manifest says, and of a known
    version.
    Raises an error that is also an OSError if it cannot be read.
    """

    manifest: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str], *, mapped: bool = True) -> None:
        try:
            self.name = os.fsdecode(path)
            self._path = Path(os.path.realpath(self.name))
        except (TypeError, ValueError) as error:
            message = f"a saved graph is loaded by the path of its folder, not {path!r}: {error}."
            raise InvalidEdgesError(message) from error
        self._mapped = mapped
        until = time.monotonic() + WAIT_SECONDS
        while True:
            before, fault = self._identity(), None
            try:
                self._open()
            except InvalidEdgesError as error:
                fault = error
            # Files of two graphs may be mixed if another process has replaced the folder meanwhile.
            if self._identity() == before and (before or fault is None or not any(_left(self._path))):
                break
            if time.monotonic() > until:
                fault = fault or self.damaged("other processes replace it all the time")
                break
            time.sleep(1e-3)
        if fault is not None:
            raise fault

    def _identity(self) -> tuple[int, ...]:
        """Return numbers that differ for another folder at the path; none if there is no folder."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns

    def _open(self) -> None:
        try:
            self.manifest = _manifest(self._path)
        except (FileNotFoundError, NotADirectoryError):
            there = "is a file" if self._path.is_file() else f"has no {MANIFEST}"
            left = next(_left(self._path), None) if there != "is a file" and not self._path.exists() else None
            remedy = "" if left is None else f" A save that was interrupted has left one at {left}: rename it back."
            raise InvalidEdgesError(
                f"{self.name} is no saved graph, it {there}: Graph.load reads the folders of Graph.save, "
                f"Graph.from_file reads files of edges.{remedy}"
            ) from None
        except OSError as error:
            raise system_error(f"the saved graph {self.name} cannot be read", error) from error
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
        if self.manifest.get(CHECKSUM) != signed(self.manifest)[CHECKSUM]:
            raise self.damaged(f"{MANIFEST} has changed since it was saved")
        files = self.manifest.get("files")
        if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
            raise self.damaged(f"{MANIFEST} lists no files")
        self._buffers = {file: self._buffer(file, entry.get("bytes")) for file, entry in files.items()}

    def _buffer(self, file: str, size: object) -> mmap.mmap | bytes:
        """Map or read a file of this size."""
        if os.path.basename(file) != file or not re.fullmatch(r"\w[\w.-]*", file, re.ASCII):
            raise self.damaged(f"{MANIFEST} names {file!r}, which is no file of a saved graph")
        try:
            with _open(self._path / file) as opened:
                found = os.fstat(opened.fileno()).st_size
                if found != size or not found:
                    raise self.damaged(f"{file} has {found:,} bytes instead of {size}")
                buffer = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if self._mapped else opened.read()
        except FileNotFoundError:
            raise self.damaged(f"it lacks {file}") from None
        except OSError as error:
            raise system_error(f"{file} of the saved graph {self.name} cannot be read", error) from error
        if len(buffer) != size:
            raise self.damaged(f"{file} has {len(buffer):,} bytes instead of {size}")
        return buffer

    def damaged(self, fault: object) -> InvalidEdgesError:
        """Return the error for a saved graph that cannot be used."""
        return InvalidEdgesError(f"{self.name} is a damaged saved graph: {fault}. Save the graph again.")

    def buffer(self, file: str) -> mmap.mmap | bytes:
        """Return the content of a file; raise ValueError if the manifest does not list it."""
        if file not in self._buffers:
            raise ValueError(f"it lacks {file}")
        return self._buffers[file]

    def array(self, name: str, dtypes: Collection[np.dtype[np.generic]], size: int) -> Any:
        """Map an array of one dimension; raise ValueError unless it has one of these types and this size."""
        file = f"{name}.npy"
        buffer = self.buffer(file)
        stream = BytesIO(buffer[:MAX_HEADER])
        try:
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError(f"{file} is of another version of the format .npy")
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        except Exception as error:  # NumPy parses the header as text of Python, and raises what its tokenizer raises
            raise ValueError(f"{file} has a damaged header ({error})") from error
        if shape != (size,) or dtype not in dtypes:
            raise ValueError(f"{file} holds {dtype} of shape {shape}, not {size:,} {' or '.join(map(str, dtypes))}")
        return np.frombuffer(buffer, dtype, size, stream.tell())

    def verify(self, files: Collection[str]) -> None:
        """Compare the checksums of files with those in the manifest; raise ValueError if one differs."""
        with mapping_on(this_machine().threads) as run:
            found = list(run(lambda file: zlib.crc32(self.buffer(file)), files))
        for file, checksum in zip(files, found, strict=True):
            if checksum != self.manifest["files"][file].get("crc32"):
                raise ValueError(f"{file} has changed since it was saved")


def _described(path: Path) -> dict[str, int]:
    """Return what the manifest has of a file."""
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
        return {"bytes": len(buffer), "crc32": zlib.crc32(buffer)}


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _open(path: Path) -> BinaryIO:
    """Open a regular file to read it; raise OSError for others, such as a named pipe, for which `open` would wait."""
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return file


def _manifest(folder: Path) -> dict[str, Any]:
    with _open(folder / MANIFEST) as file:
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
    """Write an array of numbers of one dimension as .npy."""
    values = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(values))
        file.write(values.view(np.uint8).data)  # an error of `tofile` would not say what is wrong
