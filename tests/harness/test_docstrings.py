"""Docstrings of public objects pass the validation of numpydoc, as those of pandas do."""

from __future__ import annotations

import inspect
from functools import cached_property

import pytest

import prplugin

pytestmark = pytest.mark.slow  # numpydoc is installed with the extra `dev`, after the other tests have run

OPTIONAL = {"ES01", "EX01", "SA01"}
"""Checks for an extended summary, examples and "See Also", which not every object needs."""

CREATED_BY_PRPLUGIN = {"Estimate", "GroupRankings", "NotConvergedError", "Progress", "Ranking", "Rankings"}
"""Classes that users do not construct: they document attributes instead of parameters."""


def public_objects():
    for name in prplugin.__all__:
        yield name
        if inspect.isclass(found := getattr(prplugin, name)) and not issubclass(found, Exception):
            for member, value in inspect.getmembers(found):
                if not member.startswith("_") and (
                    inspect.isroutine(value) or isinstance(value, property | cached_property)
                ):
                    yield f"{name}.{member}"


@pytest.mark.parametrize("name", list(public_objects()))
def test_docstring_is_valid(name):
    validation = pytest.importorskip(
        "numpydoc.validate", reason="numpydoc is not installed: pip install 'prplugin[dev]'"
    )
    ignored = OPTIONAL | ({"PR01"} if name in CREATED_BY_PRPLUGIN else set())
    errors = validation.validate(f"prplugin.{name}")["errors"]
    assert [error for error in errors if error[0] not in ignored] == []
