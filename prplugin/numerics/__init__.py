"""Formulas that do not depend on the graph: rounding depths and extrapolation weights."""
