"""Comparison of a certified order with exact ranks."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["assert_order_is_exact"]


def assert_order_is_exact(ranking, exact, k):
    """Check the certified order and the ties of a ranking against exact ranks by position."""
    order = ranking._order
    k = min(k, len(exact))
    rows = order.rows.tolist()
    assert len(set(rows)) == k
    assert ranking.frame["vertex"].tolist() == rows
    for value, true in zip(ranking.ranks, exact, strict=True):
        assert abs(Fraction(float(value)) - true) <= Fraction(order.margin)
    tied = {}
    for index, (first, members, equal) in enumerate(order.ties):
        tied.update(dict.fromkeys(members.tolist(), index))
        assert members.tolist()[: k - first] == rows[first : first + members.size]
        # Vertices before the tie have strictly higher ranks.
        above = set(rows[:first])
        assert all(exact[i] > exact[j] for i in above for j in members.tolist())
        if equal:
            assert len({exact[i] for i in members.tolist()}) == 1
            assert members.tolist() == sorted(members.tolist())
    for position, i in enumerate(rows):
        below = set(range(len(exact))) - set(rows[: position + 1])
        for j in below:
            assert exact[i] > exact[j] or (i in tied and tied.get(j) == tied[i])
    assert ranking.certified == all(equal for _, _, equal in order.ties)
