"""Graphs of other graph libraries: one module per library."""
