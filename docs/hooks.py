"""Hook of MkDocs: pages of the site have their paths of the repository, so that links work in both."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
FILES = ("*.md", "LICENSE", *(f"{folder}/**/*" for folder in ("docs", "benchmarks/results", "conformance/results")))
SUFFIXES = {".md", ".ipynb", ".svg", ".png", ".css", ""}


@event_priority(100)  # before the notebook plugin
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of `docs_dir` by those of the repository that belong to the site; keep the theme's files."""
    paths = sorted({path for pattern in FILES for path in ROOT.glob(pattern) if path.is_file()})
    return Files(
        [file for file in files if file.src_dir != config.docs_dir]
        + [
            File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, config.use_directory_urls)
            for path in paths
            if path.suffix in SUFFIXES
        ]
    )
