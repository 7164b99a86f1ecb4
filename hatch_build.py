"""Hooks of hatchling: the README for package indexes, and the CPU kernels.

The kernels are compiled into the wheel, or for an editable installation into the package.
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# By its path: importing the package needs its dependencies, which are not there when it is built.
spec = spec_from_file_location("kernels", Path(__file__).parent / "prplugin" / "cpu" / "build.py")
kernels = module_from_spec(spec)
spec.loader.exec_module(kernels)


class ReadmeHook(MetadataHookInterface):
    """Show the README on package indexes, where there are no files beside it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README, whose links to files lead to `Source` of `project.urls`, or are text if there is none."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, source)}


def for_index(text: str, source: str | None) -> str:
    """Return Markdown whose links and pictures do not need the files of the repository at the URL `source`."""

    def replaced(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if source is None:
            return "" if picture else words
        return f"{picture}[{words}]({source.rstrip('/')}/{'raw' if picture else 'blob'}/HEAD/{target})"

    return re.sub(r"(!?)\[([^]]*)\]\((?![a-z]+:|#)([^)\s]+)\)", replaced, text)


class KernelsHook(BuildHookInterface[Any]):
    """Compile the kernels; `PRPLUGIN_PLATFORM` names the platform tag of a wheel for another machine."""

    tag = os.environ.get("PRPLUGIN_PLATFORM")

    def dependencies(self) -> list[str]:
        """Return the requirement of a compiler where there is none, on platforms that have one in the package index."""
        needed = self.tag or (kernels.system_compiler() is None and kernels.this_platform())
        return ["ziglang>=0.15"] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the libraries to the wheel; without a compiler, install the package without them."""
        self.folder = tempfile.TemporaryDirectory()
        folder = kernels.LIBRARIES if version == "editable" else Path(self.folder.name)
        try:
            libraries = kernels.build(folder, tag=self.tag)
        except (OSError, subprocess.CalledProcessError) as error:
            if self.tag:
                raise
            self.app.display_warning(f"prplugin is built without its CPU kernels, and ranks by NumPy: {error}")
            return
        if version != "editable":
            platform = self.tag or sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"
            build_data["pure_python"] = False
            build_data["force_include"].update({str(file): f"prplugin/cpu/lib/{file.name}" for file in libraries})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the compiled files, which the wheel contains."""
        self.folder.cleanup()
