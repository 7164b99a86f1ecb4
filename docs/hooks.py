"""What `mkdocs.yml` cannot say: the repository's own layout for the site, lists of pages, and the papers' verdicts."""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

logger = logging.getLogger("mkdocs.hooks")

ROOT = Path(__file__).parents[1]
SHOWN = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
FOLDERS = ("docs", "benchmarks/results", "conformance/results")
SUFFIXES = {".md", ".ipynb", ".svg", ".png"}

FIRST = ["README.md", "docs/tutorial.ipynb", "docs/semantics.md", "docs/methods.md", "docs/papers.md", "docs/api.md"]
LISTS = {"Decisions": "docs/decisions", "Benchmarks": "benchmarks/results", "Conformance": "conformance/results"}
"""Folders whose pages are listed on a page of their own."""

CLAIMS = re.compile(r"<!-- claims: (\w+) -->")
PAGE_LINK = re.compile(r'(?<=href=")(?![a-z]+:)([^"#]+\.(?:md|ipynb))(?=["#])')
FILE_LINK = re.compile(r"\]\(([^)#:\s]+)")
FOLDER_LINK = re.compile(r"(\]\((?!https?:)[^)#\s]*/)\)")


def _in(folder: str) -> list[str]:
    files = sorted((ROOT / folder).rglob("*"), key=lambda file: (len(file.parts), file))
    return [file.relative_to(ROOT).as_posix() for file in files if file.suffix in SUFFIXES]


def _linked(pages: list[str]) -> set[str]:
    """Find the files, such as sources, that pages link to."""
    links = {
        posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        for page in pages
        for link in FILE_LINK.findall((ROOT / page).read_text())
    }
    return {link for link in links if not link.startswith("..") and (ROOT / link).is_file()}


def _title(path: str) -> str:
    """Give the heading of a numbered page; of a report its name first, and not the command that ends its heading."""
    heading = re.search(r"^# (.+)", (ROOT / path).read_text(), re.MULTILINE)
    assert heading, f"{path} has no heading"
    words, name = re.sub(r":? ``python.*", "", heading[1]).replace("``", "`"), Path(path).stem
    return words if name[:4].isdigit() else f"{name}: {words}"


@event_priority(100)  # before notebooks are looked for
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take pages from the whole repository, and make those that list a folder."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    paths = [*SHOWN, *(path for folder in FOLDERS for path in _in(folder))]
    pages = [path for path in paths if path.endswith((".md", ".ipynb"))]
    for path in sorted({*paths, *_linked(pages)}):
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    nav: list[Any] = [*FIRST, *(page for page in pages if Path(page).parent == Path("docs") and page not in FIRST)]
    for name, folder in LISTS.items():
        listed = [page for page in pages if page.startswith(f"{folder}/")]
        lines = [f"- [{_title(page)}]({page.removeprefix(f'{folder}/')})" for page in listed]
        index = f"{folder}/index.md"
        files.append(File.generated(config, index, content="\n".join([f"# {name}", "", *lines])))
        nav.append({name: [index, *({_title(page): page} for page in listed)]})
    config.nav = [*nav, "CONTRIBUTING.md", "CHANGELOG.md"]
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links to a folder to its list, and put the verdicts of a paper's report where they are asked for."""
    return FOLDER_LINK.sub(r"\1index.md)", CLAIMS.sub(lambda found: _claims(found[1]), markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of notebooks to pages, as MkDocs does for all others."""

    def found(link: re.Match[str]) -> str:
        target = files.get_file_from_path(
            posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[1]))
        )
        if target is None:
            logger.warning("%s has a link to %s, which is not there.", page.file.src_uri, link[1])
            return link[1]
        return target.url_relative_to(page.file)

    return PAGE_LINK.sub(found, html) if page.file.src_uri.endswith(".ipynb") else html


def _claims(paper: str) -> str:
    report = f"benchmarks/results/h100/{paper}.md"
    if not (ROOT / report).exists():
        return f"No report is in the repository; `python -m benchmarks {paper}` makes one."
    found = re.search(
        r"^(Of the paper's|None of the paper's).*?^\| the claim .*?\n\n", (ROOT / report).read_text(), re.M | re.S
    )
    assert found, f"{report} has no table of claims"
    words, table = found[0].split("\n\n")[0], found[0][found[0].index("| the claim") :]
    return f"{words} On one H100; the whole [report](../{report}).\n\n{table}"
