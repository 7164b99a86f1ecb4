"""Build hook of hatchling: compile the CPU kernels into the wheel, or for an editable installation into the package."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# By its path: importing the package needs its dependencies, which are not there when it is built.
spec = spec_from_file_location("kernels", Path(__file__).parent / "prplugin" / "cpu" / "build.py")
kernels = module_from_spec(spec)
spec.loader.exec_module(kernels)


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
