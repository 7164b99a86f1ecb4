"""Graphs whose edges change between rankings: updates, decay, and residuals that follow them."""
