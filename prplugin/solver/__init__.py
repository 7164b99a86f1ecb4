"""Fixed-point iteration for PageRank: loop, error bound, stopping rules, acceleration and certified top-k order."""
