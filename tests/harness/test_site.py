"""The site in a browser: headless Chromium loads every page in a frame, at two widths, in light and dark."""

from __future__ import annotations

import http.server
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from functools import partial

import pytest
from code_blocks import ROOT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.slow

MEASURE = """
<!doctype html><body><script>
const frame = document.body.appendChild(document.createElement("iframe"));
frame.style.height = "900px";
const drawn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)));
const isClipped = (element, box) => {  // true if an element between the two scrolls or clips
  for (let up = element.parentElement; up && up !== box; up = up.parentElement)
    if (getComputedStyle(up).overflowX !== "visible") return true;
  return false;
};
const name = element => element.tagName + "." + element.className + ": " + element.textContent.trim().slice(0, 60);
async function measured(page) {
  const found = [];
  frame.style.width = "1280px";
  await new Promise(done => { frame.onload = done; frame.src = page; });
  const view = frame.contentWindow, doc = frame.contentDocument, report = problem => found.push(`${page}: ${problem}`);
  doc.head.appendChild(doc.createElement("style")).textContent = "* {transition: none !important}";
  await doc.fonts.ready;
  for (const image of doc.images) {
    image.loading = "eager";
    try { await image.decode(); } catch { report(`picture ${image.src} is missing`); }
  }
  for (const heading of doc.querySelectorAll("h1, h2, h3, h4"))
    if (/python -m|^\\W*(prplugin (rank|verify|methods|demo)|pip install|mkdocs build)/.test(heading.textContent)) report(`heading ${heading.textContent}`);
  for (const title of doc.querySelectorAll(".highlight .filename"))
    if (/CI/.test(title.textContent)) report(`block titled ${title.textContent}`);
  for (const width of [1280, 400]) {
    frame.style.width = width + "px";
    for (const scheme of ["default", "slate"]) {
      doc.body.dataset.mdColorScheme = scheme;
      await drawn();
      const at = `at ${width} pixels, ${scheme}: `, root = doc.documentElement;
      if (view.getComputedStyle(doc.body).backgroundColor === "rgba(0, 0, 0, 0)") report(at + "there is no background");
      for (const image of doc.querySelectorAll("article img")) {
        const box = image.getBoundingClientRect();
        if (box.width < 16 || box.height < 16) report(at + `picture ${image.src} is ${box.width} x ${box.height}`);
        if (scheme === "slate" && view.getComputedStyle(image).backgroundColor === "rgba(0, 0, 0, 0)")
          report(at + `picture ${image.src} has no light background`);
      }
      if (scheme !== "default") continue;
      if (root.scrollWidth > root.clientWidth) {
        const wide = [...doc.querySelectorAll("article *")].filter(
          each => each.getBoundingClientRect().right > root.clientWidth + 1 && !isClipped(each, root));
        report(at + `scrolls sideways by ${root.scrollWidth - root.clientWidth}: ${wide.slice(0, 3).map(name).join(" | ")}`);
      }
      for (const code of doc.querySelectorAll("article pre, article pre > code"))
        if (!code.closest(".jp-OutputArea") && code.scrollWidth > code.clientWidth + 1) report(at + `code is cut: ${name(code)}`);
      for (const table of doc.querySelectorAll("article table")) {
        if (table.closest(".highlighttable")) continue;
        if (table.getBoundingClientRect().right > root.clientWidth + 1 && !isClipped(table, root))
          report(at + `a table cannot be scrolled: ${name(table)}`);
      }
    }
  }
  return found;
}
(async () => {
  const found = [];
  for (const page of PAGES)
    try { found.push(...await measured(page)); } catch (error) { found.push(`${page}: ${error}`); }
  await fetch("/found", {method: "POST", body: JSON.stringify(found)});
})();
</script>
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """A request handler that serves the site and the page that measures it, and receives the problems found."""

    found: queue.Queue
    measure: bytes

    def do_GET(self):
        if self.path.endswith("search_index.json"):  # each page would index the whole site for its search
            return self.send_error(404)
        if self.path != "/measure.html":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        return self.wfile.write(self.measure)

    def do_POST(self):
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site with the stored outputs of the tutorial, and return its folder."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)],
        cwd=ROOT, env=os.environ | {"SITE_EXECUTES": "false", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_builds(site):
    assert (site / "index.html").exists()
    page = next(site.rglob("api/index.html")).read_text()
    inherited = [
        "Graph.save",
        "Graph.load",
        "Graph.from_networkx",
        "Graph.from_csr",
        "Graph.from_file",
        "Ranking.to_dict",
    ]
    assert [name for name in inherited if f'id="prplugin.{name}"' not in page] == []


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.filterwarnings("default::ResourceWarning")
def test_pages_fit_the_width_and_show_all_pictures(site, tmp_path):
    pages = sorted("/" + page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    assert len(pages) > 20
    Handler.found, Handler.measure = queue.Queue(), MEASURE.replace("PAGES", json.dumps(pages)).encode()
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars --window-size=1400,1000"
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/measure.html"
        with subprocess.Popen(
            [CHROMIUM, *flags.split(), f"--user-data-dir={tmp_path}", url],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as browser:  # fmt: skip
            try:
                found = Handler.found.get(timeout=300)
            finally:
                browser.terminate()
                server.shutdown()
    assert not found, "\n".join(found)
