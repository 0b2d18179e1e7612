"""What every reproduction and benchmark is made of: a data set, its splits, methods, measures and one table.

In reading order:

reproduction.py  ``Row`` and ``Reproduction``, a published table beside ours; ``Published``, what a paper printed;
                 ``reproduce``, which runs one by name
running.py       the loops: over data sets, and over splits and the methods fitted on each; finished parts as files
statistics.py    a mean and its error over splits; differences of two methods, with p values or intervals
arrays.py        what methods do to rows: standardized columns, log-odds, out-of-fold scores
benchmark.py     ``Row`` and ``Table`` of a benchmark: ours, the peer's, and the bar
timing.py        seconds and quantiles of calls, in this process or in a new one

A reproduction loads a data set, cuts it (``running.over_splits``), fits each method on each part, measures every list,
and returns rows of means and differences. A benchmark times calls of ours and of a peer and returns rows of both.
"""
