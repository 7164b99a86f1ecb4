"""Compilation of every kernel with every pair of its macros' values by NVRTC, which needs no GPU."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path

import pytest
from listings import OURS, PAPERS

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
    "distance_t": ("unsigned short", "unsigned int"),
    "id_t": ("int", "unsigned int", "long long", "unsigned long long"),
    "WEIGHTED": ("0", "1"),
}
"""Values of the macros that specialize kernels, the default first. A file may declare more in its header comment."""

ARCHITECTURES = ("sm_90", "sm_75", "sm_80", "sm_86", "sm_89", "sm_100", "sm_120")
OF_CUDA_12 = ("sm_70", *ARCHITECTURES)
"""Architectures that RAPIDS supports with CUDA 12; CUDA 13 has no Volta."""

HEADINGS = ("Mapping:", "Memory:", "Wins:")

KERNEL = r"__global__\s+void\s+(?:(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)|[A-Z_]+)\s+)*(\w+)\("
ONE_LINE = (
    "its result is one line of NumPy or pandas, as of the same module for the host: only its threads can be wrong"
)
PIECES = "sums of pieces that rows cross; test_expanded.py checks the pieces, and the sums are those of any method"
MERGE = "sums over pieces of the merge path, in the order of the threads; `numpy` makes the same steps"
LAYOUTS = "cells of edges in the order in which blocks reserve room; test_propagation_blocking.py checks their sizes"
FORMAT = "the format is that of cpu/packing.cpp, whose pieces test_streamed.py decodes"
ONLY_ON_A_GPU = {
    "gpu/batch.cu": ("batch_begin batch_step batch_cross batch_total", MERGE),
    "gpu/binned_sizes.cu": ("bin_rows binned_sizes", ONE_LINE),
    "gpu/blocks.cu": (
        "count_tiles by_tile count_cells cell_chunks place_cells by_piece finish_cells mark_all in_degrees arrange_normalized_weights endpoints",
        LAYOUTS,
    ),
    "gpu/cut.cu": ("cut", MERGE),
    "gpu/dense_ids.cu": ("extremes mark count_marks encode", ONE_LINE),
    "gpu/grouped.cu": ("mark_endpoints compact compact_codes", ONE_LINE),
    "gpu/merge_start.cu": ("merge_start", MERGE),
    "gpu/offsets.cu": ("offsets group_sizes group_of_rows", ONE_LINE),
    "gpu/one_block.cu": ("factorize_one_block group_one_block", ONE_LINE),
    "gpu/run_sums.cu": ("run_sums crossing_sums", ONE_LINE),
    "gpu/sort.cu": ("digit_counts sort_pass", ONE_LINE),
    "gpu/sparse_ids.cu": ("sketch insert collect place recode", ONE_LINE),
    "gpu/strings.cu": ("hash_strings insert collect place recode copy_strings", ONE_LINE),
    "methods/packed.cu": ("pack", FORMAT),
    "methods/persistent.cu": ("persist", MERGE),
    "methods/propagation_blocking.cu": ("scatter_row_spans propagate", LAYOUTS),
    "methods/streamed.cu": ("sum_pieces collect", FORMAT),
    "papers/expanded.cu": ("expand sum_expanded collect", PIECES),
}
"""Kernels of the package by file that no function of tests/helpers/listings.py stands for, and why: only a GPU runs them."""


def macros(path: str) -> dict[str, tuple[str, ...]]:
    text = runtime.source(path)
    found = {name: values for name, values in VARIANTS.items() if re.search(rf"\b{name}\b", _code(text))}
    declared = re.findall(r"^//   ([A-Z]+)  ([\d ]+)$", text, re.MULTILINE)
    return found | {name: tuple(values.split()) for name, values in declared}


def every_variant(path: str) -> list[dict[str, str]]:
    names = macros(path)
    return [dict(zip(names, values, strict=True)) for values in product(*names.values())]


def pairs(variant: dict[str, str]) -> set[tuple[tuple[str, str], ...]]:
    """Return all pairs of macros with their values, and of one macro itself."""
    return set(combinations(variant.items(), min(2, len(variant))))


@cache
def variants(path: str) -> list[dict[str, str]]:
    """Return variants that together have every pair of values of two macros: each time the one with most new pairs."""
    every = every_variant(path)
    missing = set().union(*map(pairs, every))
    chosen = every[:1]
    while missing := missing - pairs(chosen[-1]):
        chosen.append(max(every, key=lambda variant: len(missing & pairs(variant))))
    return chosen


def _code(text: str) -> str:
    return re.sub(r"//.*", "", text)


def compilations() -> list[tuple[str, dict[str, str], str, bool]]:
    """Return the variants of each file, at least two, each with one architecture; the first is to be optimized.

    No file branches on the architecture, so they alternate instead of being multiplied by the variants. Without
    optimization NVRTC reports the same errors, down to those of inline assembly, in a quarter of the time.
    """
    listed = [
        (path, variant, i == 0)
        for path in FILES
        for i, variant in enumerate((variants(path) * 2)[: max(2, len(variants(path)))])
    ]
    return [
        (path, variant, ARCHITECTURES[i % len(ARCHITECTURES)], optimized)
        for i, (path, variant, optimized) in enumerate(listed)
    ]


def shown(value: str | dict[str, str] | bool) -> str:
    """Return a file, a variant, an architecture or whether it is optimized as a part of the name of a test."""
    if isinstance(value, bool):
        return "optimized" if value else "debug"
    return value if isinstance(value, str) else ",".join(f"{name}={macro}" for name, macro in value.items())


@pytest.mark.slow
@pytest.mark.parametrize(("path", "variant", "arch", "optimized"), compilations(), ids=shown)
def test_every_variant_compiles(path, variant, arch, optimized):
    core = pytest.importorskip("cuda.core", reason="NVRTC is not installed: pip install 'prplugin[dev]'")
    options = core.ProgramOptions(
        std="c++17", arch=arch, define_macro=list(variant.items()) or None, debug=not optimized
    )
    assert core.Program(runtime.source(path), "c++", options).compile("cubin").code


def compile_by_cuda_12(path: str, variant: dict[str, str], arch: str) -> str:
    """Compile a file with NVRTC of CUDA 12; return what the compiler says. cuda-core has only one version in a process."""
    try:
        folder = find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        folder = None
    if folder is None:
        pytest.skip("NVRTC of CUDA 12 is not installed: pip install 'prplugin[dev]'")
    nvrtc = ctypes.CDLL(str(Path(next(iter(folder.submodule_search_locations)), "lib", "libnvrtc.so.12")))
    options = [f"-arch={arch}", "-std=c++17", "-G", *(f"-D{name}={value}" for name, value in variant.items())]
    program, source = ctypes.c_void_p(), runtime.source(path).encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, path.encode(), 0, None, None) == 0
    encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status, size = nvrtc.nvrtcCompileProgram(program, len(options), encoded), ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if status else ""


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES)
def test_every_file_compiles_with_cuda_12(path):
    variant = variants(path)[-1]
    assert compile_by_cuda_12(path, variant, OF_CUDA_12[FILES.index(path) % len(OF_CUDA_12)]) == ""


def test_kernels_that_only_a_gpu_runs_are_listed():
    found = {path: re.findall(KERNEL, _code(runtime.source(path))) for path in FILES if not path.startswith("..")}
    assert all(len(names) == _code(runtime.source(path)).count("__global__") for path, names in found.items())
    left = {path: " ".join(name for name in names if name not in PAPERS | OURS) for path, names in found.items()}
    listed = {path: names for path, (names, _) in ONLY_ON_A_GPU.items()}
    assert {path: names for path, names in left.items() if names} == listed
    assert set(PAPERS | OURS) <= {name for names in found.values() for name in names}


@pytest.mark.parametrize("path", FILES)
def test_every_pair_of_values_is_compiled(path):
    compiled = [(variant, arch) for name, variant, arch, _ in compilations() if name == path]
    assert set().union(*(pairs(variant) for variant, _ in compiled)) == set().union(*map(pairs, every_variant(path)))
    assert len({arch for _, arch in compiled}) >= 2
    assert "__CUDA_ARCH__" not in runtime.source(path)


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


def test_kernels_of_another_package_include_our_headers(tmp_path):
    (tmp_path / "own.cuh").write_text('#include "gpu/totals.cuh"\n#define OWN 1\n')
    (tmp_path / "kernel.cu").write_text('#include "own.cuh"\n#include "gpu/sums.cuh"\nint last;\n')
    text = runtime.source(str(tmp_path / "kernel.cu"))
    assert re.findall(r"#define (OWN|WARP)|struct (Sum|Totals) |int (last);", text) == [
        ("WARP", "", ""), ("", "Sum", ""), ("", "Totals", ""), ("OWN", "", ""), ("", "", "last")
    ]  # fmt: skip
