"""Suggestions for unknown names: the "did you mean" of messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

__all__ = ["close_name", "meant_argument", "plain"]

SYNONYMS = {
    "alpha": "damping damping_factor damp damping_coefficient d",
    "certified": "certify exact",
    "dangling": "dangling_nodes sinks",
    "destination": "target dst dest targets to to_col target_col sink",
    "duplicates": "multigraph multi_edges duplicate_edges drop_duplicates",
    "max_iter": "max_iterations niter n_iter num_iter num_iterations iterations max_steps",
    "method": "solver implementation algorithm algo backend engine",
    "among": "subset node_subset target_nodes",
    "nstart": "start init initial initial_guess x0 warm_start initial_pagerank",
    "personalization": "personalisation reset reset_vertices pers restart teleport_vector",
    "progress": "verbose show_progress progress_bar disp",
    "scale": "scaler normalize normalized normalise",
    "seeds": "source_nodes seed source_ids personalizations",
    "source": "src sources from from_ from_col source_col",
    "stop": "stopping stopping_rule criterion",
    "threads": "n_jobs num_threads n_threads workers concurrency cores",
    "tol": "tolerance eps epsilon precision threshold",
    "top": "k top_k n_top limit",
    "vertices": "nodes node_list nodelist",
    "weight": "weights edge_weight edge_weights edge_attr relationship_weight_property weight_col weight_attr",
}
"""Arguments, and what NetworkX, igraph, cuGraph, scikit-network, graph-tool, NetworKit, GDS and others call them."""

REMARKS = {
    "undirected": ("directed", "It is directed=False."),
    "reset_probability": ("alpha", "It is 1 - alpha."),
    "reset_prob": ("alpha", "It is 1 - alpha."),
    "teleport_probability": ("alpha", "It is 1 - alpha."),
    "restart_probability": ("alpha", "It is 1 - alpha."),
}
"""Names of what is not the argument itself but can be said by it."""


def plain(name: str) -> str:
    """Return a name without regard to case and punctuation: ``dampingFactor`` and ``damping_factor`` are one."""
    return re.sub(r"[\W_]", "", name).casefold()


MEANT = {plain(name): (argument, "") for argument, names in SYNONYMS.items() for name in names.split()}
MEANT |= {plain(name): meant for name, meant in REMARKS.items()}


def meant_argument(name: str, own: Collection[str], elsewhere: Mapping[str, Collection[str]]) -> str:
    """Return the end of a message on an unknown argument: the one that is meant, or "" if none is like it.

    `own`: Arguments of the function that was called.
    `elsewhere`: Arguments of other functions, by what these are called.
    """
    everywhere = [*own, *(argument for arguments in elsewhere.values() for argument in arguments)]
    argument, remark = MEANT.get(plain(name), ("", ""))
    if argument not in everywhere:
        argument, remark = close_name(name, everywhere) or "", ""
    if not argument:
        return ""
    if argument in own:
        return f" Did you mean {argument}=? {remark}".rstrip()
    owner = next(owner for owner, arguments in elsewhere.items() if argument in arguments)
    return f" Did you mean {argument}=, an argument of {owner}? {remark}".rstrip()


def close_name(name: str, known: Collection[str]) -> str | None:
    """Return the one of the known names that is spelled most like a name, if any is."""
    if alike := [one for one in known if plain(one) == plain(name)]:
        return alike[0] if len(alike) == 1 else None
    return next(iter(get_close_matches(name, known, 1, 0.7)), None)
