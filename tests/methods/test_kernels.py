"""Compilation of every kernel in every variant by NVRTC, which needs no GPU."""

from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path

import pytest

from prplugin.gpu import runtime

PACKAGE = runtime.ROOT
BASELINES = Path(__file__).parents[2] / "benchmarks"
FILES = sorted(os.path.relpath(path, PACKAGE) for folder in (PACKAGE, BASELINES) for path in folder.rglob("*.cu"))
VARIANTS = {
    "real_t": ("double", "float"),
    "index_t": ("int", "long long"),
    "offset_t": ("int", "long long"),
    "entry_t": ("int", "float", "double"),
    "key_t": ("unsigned int", "unsigned long long"),
    "value_t": ("int", "long long"),
    "state_t": ("unsigned int", "unsigned long long"),
    "order_t": ("int", "long long"),
    "id_t": ("int", "unsigned int", "long long", "unsigned long long"),
    "WEIGHTED": ("0", "1"),
}
"""Values of the macros that specialize kernels, the default first. A file may declare more in its header comment."""

OTHER_ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_100", "sm_120")
HEADINGS = ("Mapping:", "Memory:", "Wins:")


def macros(path: str) -> dict[str, tuple[str, ...]]:
    text = runtime.source(path)
    found = {name: values for name, values in VARIANTS.items() if re.search(rf"\b{name}\b", _code(text))}
    declared = re.findall(r"^//   ([A-Z]+)  ([\d ]+)$", text, re.MULTILINE)
    return found | {name: tuple(values.split()) for name, values in declared}


def variants(path: str) -> list[dict[str, str]]:
    names = macros(path)
    return [dict(zip(names, values, strict=True)) for values in product(*names.values())]


def _code(text: str) -> str:
    return re.sub(r"//.*", "", text)


def compile_kernel(path: str, variant: dict[str, str], arch: str) -> None:
    core = pytest.importorskip("cuda.core", reason="NVRTC is not installed: pip install 'prplugin[dev]'")
    options = core.ProgramOptions(std="c++17", arch=arch, define_macro=list(variant.items()))
    assert core.Program(runtime.source(path), "c++", options).compile("cubin").code


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES)
def test_every_variant_compiles_for_sm_90(path):
    for variant in variants(path):
        compile_kernel(path, variant, "sm_90")


@pytest.mark.slow
@pytest.mark.parametrize("arch", OTHER_ARCHITECTURES)
@pytest.mark.parametrize("path", FILES)
def test_default_variant_compiles_for_other_architectures(path, arch):
    compile_kernel(path, variants(path)[0], arch)


@pytest.mark.parametrize("path", FILES)
def test_header_has_every_heading(path):
    header = (PACKAGE / path).read_text(encoding="utf-8").split("\n\n")[0]
    assert all(line.startswith("//") for line in header.splitlines())
    for heading in HEADINGS:
        assert heading in header


def test_includes_are_resolved():
    assert len(FILES) >= 4
    for path in FILES:
        assert "#include" not in runtime.source(path)
