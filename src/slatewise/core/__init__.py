"""What every system stands on, in reading order.

arrays        types of arrays, and rows that are read only where they are needed
errors        errors and warnings, whose messages name the place and what was expected
checks        arguments become arrays that kernels can trust, dense or sparse
ids, groups   ids of queries and items; rows grouped by list, and rows cut into blocks
rules         allowed values of parameters and learned attributes
declarations  parameters, learned attributes and settings objects, each declared once
seeds         the one seed that a fit takes from ``random_state``
rankings      the answer of every ``rank``: for every query its list, best first
files         outputs appear whole or not at all
numerics/     solvers with certificates, and their replay
running/      threads, workers, BLAS, compiled kernels, devices, progress
kernels/      compiled functions that several packages use

The path of data: arguments pass ``checks`` and ``rules``, rows become ``groups`` and blocks, ``running.executor`` runs
a ``running.block_sums`` over the blocks inside a solver of ``numerics``, and answers leave as ``rankings``.
"""
