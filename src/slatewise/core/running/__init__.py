"""How work is run, in reading order.

executor    threads over blocks with results in block order, or the workers of a cluster
block_sums  one sum over blocks, added in the shape of one tree, so that the bits do not depend on the workers
blas        BLAS and LAPACK on one thread while a fit runs
kernel      the decorators of compiled functions, and the notice that they compile
devices     where tensors are computed
progress    progress of long loops, for listeners, and bars
"""
