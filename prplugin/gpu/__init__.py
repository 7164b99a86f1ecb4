"""Graph building, memory and kernels for arrays in device memory; the same function names as in `prplugin.cpu`."""
