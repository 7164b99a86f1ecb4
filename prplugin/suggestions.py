"""Suggestions for unknown names, for messages such as "Did you mean alpha=?"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

SYNONYMS = {
    "alpha": "damping damping_factor damp damping_coefficient d",
    "certified": "certify exact",
    "comment": "comments comment_prefix",
    "dangling": "dangling_nodes sinks",
    "delimiter": "sep separator delim",
    "destination": "target dst dest targets to to_col target_col sink",
    "duplicates": "multigraph multi_edges duplicate_edges drop_duplicates",
    "exclude": "excluded exclude_nodes filter ignore omit",
    "max_iter": "max_iterations niter n_iter num_iter num_iterations iterations max_steps",
    "method": "solver implementation algorithm algo backend engine",
    "among": "subset node_subset target_nodes",
    "nstart": "start init initial initial_guess x0 warm_start initial_pagerank",
    "null": "na_values null_values nulls",
    "personalization": "personalisation reset reset_vertices pers restart teleport_vector source_nodes",
    "progress": "verbose show_progress progress_bar disp",
    "scale": "scaler normalize normalized normalise",
    "seeds": "seed source_ids personalizations",
    "skip": "skiprows skip_rows skip_lines",
    "source": "src sources from from_ from_col source_col",
    "stop": "stopping stopping_rule criterion",
    "threads": "n_jobs num_threads n_threads concurrency cores",
    "tol": "tolerance eps epsilon precision threshold",
    "top": "k top_k n_top limit",
    "vertices": "nodes node_list nodelist",
    "weight": "weights edge_weight edge_weights edge_attr relationship_weight_property weight_col weight_attr",
}
"""Names of each argument in NetworkX, igraph, cuGraph, scikit-network, graph-tool, NetworKit, GDS and others."""

REMARKS = {
    "undirected": ("directed", "It is directed=False."),
    "reset_probability": ("alpha", "It is 1 - alpha."),
    "reset_prob": ("alpha", "It is 1 - alpha."),
    "teleport_probability": ("alpha", "It is 1 - alpha."),
    "restart_probability": ("alpha", "It is 1 - alpha."),
}
"""Arguments of other libraries that correspond to another value of an argument here: the argument, and a remark."""


def plain(name: str) -> str:
    """Return a name in lower case without punctuation: ``dampingFactor`` and ``damping_factor`` become equal."""
    return re.sub(r"[\W_]", "", name).casefold()


MEANT = {plain(name): (argument, "") for argument, names in SYNONYMS.items() for name in names.split()}
MEANT |= {plain(name): meant for name, meant in REMARKS.items()}


def suggest_argument(name: str, own: Collection[str], elsewhere: Mapping[str, Collection[str]]) -> str:
    """Return a sentence that suggests an argument for an unknown one, to append to a message; "" if none is similar.

    `own`: Arguments of the called function.
    `elsewhere`: Arguments of other functions, by the names of these functions; the first that has one is named.
    """
    meant, remark = MEANT.get(plain(name), (name, ""))
    if same := [each for each in own if MEANT.get(plain(each), (each, ""))[0] == meant]:  # weight and weights
        return f" Did you mean {same[0]}=? {remark}".rstrip()
    owners = {argument: owner for owner, arguments in reversed([*elsewhere.items()]) for argument in arguments}
    if meant == name and name in owners:
        return f" It is an argument of {owners[name]}."
    if meant not in owners:
        meant, remark = close_name(name, [*own, *owners]) or "", ""
    if not meant:
        return ""
    return f" Did you mean {meant}={f', an argument of {owners[meant]}' * (meant not in own)}? {remark}".rstrip()


def close_name(name: str, known: Collection[str]) -> str | None:
    """Return the known name whose spelling is most similar, or None."""
    if equal := [other for other in known if plain(other) == plain(name)]:
        return equal[0] if len(equal) == 1 else None
    from difflib import get_close_matches  # lazy import: only errors need it

    return next(iter(get_close_matches(name, known, 1, 0.7)), None)
