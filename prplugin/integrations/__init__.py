"""Backends and dispatch of other graph libraries."""
