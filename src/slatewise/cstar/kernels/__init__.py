"""Compiled functions of this package: serial, ``nogil``, on contiguous arrays; they trust their input.

layout, instance    the records of a model, and one list reduced to its free items
enumerate           the best list, by walking all core settings
branch              the best list of a large core, over ``nodes``, ``bound`` and ``incumbent``
marginals, sums     max-marginals, and sums over all lists of k items
subset_layout, subsets   the records and the sums over sets of any size
subset_sizes, subset_information   decisions and sizes of sets; entropies
bcfw                the dual of the hinge
"""
