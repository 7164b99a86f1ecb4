"""What a ranking returns: ranks, error bound, explanation and plots."""
