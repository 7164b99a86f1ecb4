"""Data types without operations on graphs: arrays, edges, compressed rows, orders."""
