"""Results of a ranking: ranks, error bound, explanation and plots."""
