"""Draw how the claims of each paper came out on a GPU, from the committed pages: ``python docs/pictures/papers.py``."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PAPERS = {"wu": "Wu 2010", "kumar": "Kumar 2012", "kim": "Kim 2013", "swaroop": "Swaroop 2021", "bowen": "Bowen 2022"}
GROUPS = {
    "reached or confirmed": ("#66bb6a", ("reached", "confirmed")),
    "direction only": ("#c8e6c9", ("direction only",)),
    "other way, hardware": ("#ffb74d", ("hardware",)),
    "other way": ("#e57373", ("reversed",)),
    "not measured, not testable": ("#cfd8dc", ("other data", "not measured yet", "not testable here")),
}
WIDTH, HEIGHT, LEFT, UNIT = 720, 190, 110, 14


def drawn() -> str:
    """Return the picture: one bar per paper, one rectangle per group of verdicts."""
    parts = []
    for row, (name, label) in enumerate(PAPERS.items()):
        page = (ROOT / "benchmarks" / "results" / "gpu" / f"{name}.md").read_text()
        verdicts = [cells[6] for line in page.splitlines() if len(cells := line.split(" | ")) == 8]
        x, y = LEFT, 8 + 28 * row
        parts.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{label}</text>')
        for colour, of_group in GROUPS.values():
            if count := sum(map(verdicts.count, of_group)):
                parts.append(f'<rect x="{x}" y="{y}" width="{UNIT * count}" height="20" fill="{colour}"/>')
                parts.append(f'<text x="{x + UNIT * count / 2:g}" y="{y + 15}" text-anchor="middle">{count}</text>')
                x += UNIT * count
    x = 8
    for label, (colour, _) in GROUPS.items():
        parts.append(f'<rect x="{x}" y="{HEIGHT - 24}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="{HEIGHT - 13}">{label}</text>')
        x += 34 + 6 * len(label)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    title = "<title>Claims of each paper by how they came out</title>"
    return "\n".join(
        [f'{head} role="img" font-family="Helvetica, Arial, sans-serif" font-size="12">', title, *parts, "</svg>", ""]
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(drawn())
