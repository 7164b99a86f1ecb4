"""The iteration: loop, certificate, acceleration and top-k order."""
