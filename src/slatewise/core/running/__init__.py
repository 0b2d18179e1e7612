"""How work is run: threads over blocks, one BLAS thread, compiled kernels, devices, progress."""
