"""Integration with other graph libraries: the NetworkX backend."""
