"""Check the wheels of all platforms in the folder that is given: file types, exports and versions of glibc."""

import re
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

import lief

lief.logging.disable()  # of notes on Mach-O files without entries that executables have

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "prplugin" / "cpu"))
from build import LEVELS, TARGETS  # noqa: E402

FORMATS = {"linux": lief.ELF.Binary, "macos": lief.MachO.Binary, "windows": lief.PE.Binary}
MACHINES = {"x86_64": {"x86_64", "amd64"}, "aarch64": {"aarch64", "arm64"}}


def exported(library: Path, target: str) -> set[str]:
    """Return the names that a library exports, after a check that it is one of the target."""
    machine, system, *_ = target.split("-")
    system = system.partition(".")[0]
    found = lief.parse(library)
    assert isinstance(found, FORMATS[system]), f"{library} is no library of {system}"
    about = found.header
    kind = about.machine_type if system == "linux" else about.cpu_type if system == "macos" else about.machine
    assert kind.name.lower() in MACHINES[machine], f"{library} is of {kind.name}, not of {machine}"
    if system == "linux":
        most = tuple(map(int, target.rpartition("gnu.")[2].split(".")))
        versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())
        asked = {(int(major), int(minor)) for major, minor in versions}
        assert max(asked) <= most, f"{library} asks for glibc {max(asked)}, above {most}"
        needed = {name.split(".")[0] for name in found.libraries}
        assert needed <= {"libc", "libm", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}, needed
    if system == "windows":
        return {entry.name for entry in found.get_export().entries}
    names = {symbol.name.removeprefix("_" if system == "macos" else "") for symbol in found.exported_symbols}
    return {name for name in names if not name.startswith("_")}


folder = Path(sys.argv[1])
exports: dict[Path, set[str]] = {}
for tag, target in TARGETS.items():
    (wheel,) = folder.glob(f"*-py3-none-{tag}.whl")
    with tempfile.TemporaryDirectory() as unpacked:
        ZipFile(wheel).extractall(unpacked)
        libraries = sorted((Path(unpacked) / "prplugin" / "cpu" / "lib").iterdir())
        assert len(libraries) == (len(LEVELS) if "x86_64" in target else 1), libraries
        exports |= {Path(tag) / library.name: exported(library, target) for library in libraries}

# The tests call every export of the first library, which has all; those of higher levels have some of them.
(first, every), *_ = exports.items()
for library, names in exports.items():
    likes = next(path for path in exports if path.stem == library.stem)
    differing = names ^ exports[likes]
    assert not differing, f"{library} and {likes} differ in {sorted(differing)}"
    assert names <= every, f"{library} has what {first} has not: {sorted(names - every)}"
print(f"{len(exports)} libraries of {len(TARGETS)} platforms, with up to {len(every)} exports each")
