"""Strategies that replace an iterate by one nearer to the solution, one file each with its mathematics."""
