"""Draw the picture of the README: `python docs/pictures/ranking.py` writes ranking.svg by `Ranking.plot`."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

import prplugin
from prplugin.cli.imports import imports

if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "ranking"
    figure = prplugin.Graph(imports()[0]).rank().plot()
    path = Path(__file__).with_suffix(".svg")
    figure.savefig(path, metadata={"Date": None})
    path.write_text(re.sub(r" +$", "", path.read_text(), flags=re.MULTILINE))
