"""Graph building and kernels compiled from C++ or vectorized in NumPy, for arrays in host memory."""
