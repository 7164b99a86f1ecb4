"""Small formulas without arrays of the graph: rounding depths and extrapolation weights."""
