"""Structs of kernel arguments: what Python declares is what the .cu files declare."""

from __future__ import annotations

import ctypes
import importlib
import pkgutil
import re

import numpy as np
import pytest
from fake_gpu import Array, install

import prplugin
from prplugin.gpu import runtime
from prplugin.gpu.structs import Struct
from prplugin.methods.engines.gpu_merge import PIECES


def declared() -> dict[str, Struct]:
    """Return all structs that modules of the package declare, by file and name."""
    found = {}
    for module in pkgutil.walk_packages(prplugin.__path__, "prplugin."):
        if re.match(r"prplugin\.(gpu|methods|papers)\.", module.name):
            try:
                values = vars(importlib.import_module(module.name)).values()
            except ModuleNotFoundError:  # CuPy
                continue
            found |= {f"{value.path} {value.name}": value for value in values if isinstance(value, Struct)}
    return found


STRUCTS = declared()


def body(struct: Struct) -> str:
    """Return the members of a struct in its file, which functions may follow after an empty line."""
    text = (runtime.ROOT / struct.path).read_text()
    return re.search(rf"\bstruct {struct.name} {{(.*?)(?:\n\n|\n}};)", text, re.DOTALL)[1]


def members(struct: Struct) -> dict[str, str]:
    """Return the names of the members of a struct in its file, and their types in the notation of `Struct`."""
    codes = {ctype: code for code, ctype in runtime.CTYPES.items()} | {"unsigned": "u4"}
    found = {}
    for line in filter(str.strip, re.sub(r"//.*", "", body(struct)).split(";")):
        kind, names = re.fullmatch(r"\s*(?:const )?((?:unsigned |long )?\w+)\s+(.*)", line, re.DOTALL).groups()
        found |= {each.strip(" *"): codes.get(kind, kind) + "*" * each.count("*") for each in names.split(",")}
    return found


@pytest.mark.parametrize("name", STRUCTS)
def test_members_are_those_of_the_source(name):
    struct = STRUCTS[name]
    assert list(struct.kinds.items()) == list(members(struct).items())


def kernels_with(struct: Struct) -> str:
    """Return the source of the shortest .cu file that has a struct."""
    paths = [struct.path] if struct.path.endswith(".cu") else map(str, runtime.ROOT.rglob("*.cu"))
    return min((source for path in paths if body(struct) in (source := runtime.source(path))), key=len)


@pytest.mark.parametrize("name", STRUCTS)
def test_offsets_and_sizes_are_those_of_the_compiler(name):
    core = pytest.importorskip("cuda.core", reason="NVRTC is not installed: pip install 'prplugin[dev]'")
    struct = STRUCTS[name]
    checks = [f"sizeof({struct.name}) == {struct.size}", f"alignof({struct.name}) == {struct.alignment}"]
    checks += [f"__builtin_offsetof({struct.name}, {member}) == {offset}" for member, offset in struct.offsets.items()]
    asserted = "".join(f'static_assert({check}, "{name}");\n' for check in checks)
    macros = {"real_t": "float", "index_t": "int", "offset_t": "int", "WEIGHTED": "0"}
    options = core.ProgramOptions(std="c++17", arch="sm_90", define_macro=list(macros.items()), debug=True)
    assert core.Program(kernels_with(struct) + asserted, "c++", options).compile("cubin").code


def test_all_structs_are_found():
    assert len(STRUCTS) >= 7


def test_arguments_hold_the_bytes_of_their_values(monkeypatch):
    install(monkeypatch, {})
    cuts, offsets = np.arange(3, dtype=np.int32).view(Array), np.arange(4).view(Array)
    types = {"index_t": np.dtype(np.int32), "offset_t": np.dtype(np.int64)}
    values = {"n": 3, "m": np.int64(9), "size": 4, "count": 2, "cuts": cuts, "offsets": offsets, "fronts": None}
    argument = PIECES(types, **values, tails=None)
    argument.set(size=5)
    stored = np.frombuffer(ctypes.string_at(argument.address, PIECES.size), np.uint64)
    assert stored.tolist() == [3, 9, 5, 2, cuts.ctypes.data, offsets.ctypes.data, 0, 0]
    with pytest.raises(TypeError, match=r"Pieces\.cuts points to int32, not to int64"):
        PIECES(types, **values | {"cuts": offsets}, tails=None)
    with pytest.raises(TypeError, match=r"struct Pieces has the members n, .*, tails, not n, .*, tail"):
        PIECES(types, **values, tail=None)
