"""Graph building and kernels compiled by Numba or vectorized in NumPy, for arrays in host memory."""
