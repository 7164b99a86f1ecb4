"""Plugin of pytest (`-p no_posix`) which hides from the package what Windows does not have.

These are the names and modules of the standard library that only POSIX has, according to the stubs of mypy, and the files
of /proc and /sys. Tests, pytest and other libraries keep them, except named pipes.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

HIDDEN_FOLDERS = ("/proc", "/sys")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Hide them, before a conftest imports the package."""
    assert "prplugin" not in sys.modules
    assert {"sysconf", "sched_getaffinity"} <= posix_only("os")
    assert "getcwd" not in posix_only("os")
    import_module = builtins.__import__

    def import_as_on_windows(name: str, *arguments: Any, **named: Any) -> ModuleType:
        module = import_module(name, *arguments, **named)
        importing = named.get("globals") or next(iter(arguments), None) or {}
        if not _of_package(importing.get("__name__", "")):
            return module
        if module is ctypes:
            return WindowsModule(module, windll=SimpleNamespace(kernel32=Kernel32))
        if not posix_only(module.__name__):
            return module
        if not any(hasattr(module, name) for name in stub_names(module.__name__, "win32")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return WindowsModule(module)

    def hide_files(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, Path)) and str(arguments[0]).startswith(HIDDEN_FOLDERS):
            frame = sys._getframe(1)
            while frame.f_back and frame.f_globals.get("__name__", "").startswith("pathlib"):
                frame = frame.f_back
            if _of_package(frame.f_globals.get("__name__", "")):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(arguments[0]))

    del os.mkfifo  # tests of named pipes, which Windows does not have, would wait for ever
    builtins.__import__ = import_as_on_windows
    sys.addaudithook(hide_files)


class Kernel32:
    """The function of Windows that the package calls: it tells that half of the memory is available."""

    @staticmethod
    def GlobalMemoryStatusEx(status: Any) -> int:  # noqa: N802
        """Write sizes as Windows does."""
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        status[1:3] = [total, total // 2]
        return 1


class WindowsModule(ModuleType):
    """A module without the names that only POSIX has, and with those that only Windows has."""

    def __init__(self, module: ModuleType, **names: Any) -> None:
        super().__init__(module.__name__)
        self._module = module
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        if name in posix_only(self.__name__):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._module, name)


def _of_package(module: str) -> bool:
    return module.partition(".")[0] in ("prplugin", "_prplugin_networkx")


@cache
def posix_only(module: str) -> frozenset[str]:
    """Return the names of a module of the standard library that Linux has and Windows has not."""
    return stub_names(module, "linux") - stub_names(module, "win32")


@cache
def stub_names(module: str, platform: str) -> frozenset[str]:
    """Return the names that a module of the standard library has on a platform; none for other modules."""
    import mypy

    path = Path(mypy.__file__).parent / "typeshed" / "stdlib" / module.replace(".", "/")
    stub = next((file for file in (path / "__init__.pyi", path.with_suffix(".pyi")) if file.exists()), None)
    if module.partition(".")[0] not in sys.stdlib_module_names or stub is None:
        return frozenset()
    return frozenset(_names(ast.parse(stub.read_text(encoding="utf-8")).body, platform))


def _names(body: list[ast.stmt], platform: str) -> set[str]:
    """Return the names that statements of a stub define on a platform."""
    system = SimpleNamespace(platform=platform, version_info=sys.version_info)
    found = set()
    for node in body:
        if isinstance(node, ast.If):
            test = eval(
                compile(ast.Expression(node.test), "stub", "eval"), {"sys": system}
            )  # of versions and platforms
            found |= _names(node.body if test else node.orelse, platform)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found
