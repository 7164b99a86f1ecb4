"""Structs of kernel arguments: what Python declares is what the .cu files declare."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from fake_gpu import Array, install

from prplugin.gpu import runtime, structs
from prplugin.gpu.structs import PIECES, Struct
from prplugin.methods import propagation_blocking

STRUCTS = {
    f"{value.path} {value.name}": value
    for module in (structs, propagation_blocking)
    for value in vars(module).values()
    if isinstance(value, Struct)
}
"""All structs that Python declares, by file and name."""

TYPES = {
    "real_t": "float", "index_t": "int", "offset_t": "int", "id_t": "int", "key_t": "unsigned int", "value_t": "int",
    "state_t": "unsigned int", "WEIGHTED": "0",
}  # fmt: skip


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
    source = kernels_with(struct)
    macros = TYPES | dict(re.findall(r"^//   ([A-Z]+)  (\d+)", source, re.MULTILINE))
    options = core.ProgramOptions(std="c++17", arch="sm_90", define_macro=list(macros.items()), debug=True)
    assert core.Program(source + asserted, "c++", options).compile("cubin").code


def test_all_structs_are_declared_here():
    calls = [line for path in runtime.ROOT.rglob("*.py") for line in re.findall(r"\bStruct\(", path.read_text())]
    assert len(calls) == len(STRUCTS) + 1  # and one of the module `struct`


def test_kernels_have_few_parameters():
    pattern = r"__(?:global|device)__[^;{}()]*?(?:\([^()]*\))?\s*(\w+)\(([^()]*)\)"
    for path in (*runtime.ROOT.rglob("*.cu"), *runtime.ROOT.rglob("*.cuh")):
        for name, parameters in re.findall(pattern, path.read_text()):
            assert parameters.count(",") < 12, (path, name)


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
