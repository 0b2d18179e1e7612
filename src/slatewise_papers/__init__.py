"""Reproductions of papers and benchmarks against peers: in a clone, not in the wheel.

In reading order:

framework/   what all of them are made of: loops over sets and splits, statistics, timing, tables; see its map
cstar/       c-star ranking, Table 1                          ``reproduce cstar``
tags/        tags with default settings, and when to stop     ``reproduce tags``, ``reproduce stopping``
mlr/         metric learning to rank                          ``reproduce mlr``
rankmatch/   ranking and image matching                       ``reproduce rankmatch``
lasr/        latent structured ranking                        ``reproduce lasr``
sessions/    next items of sessions                           ``reproduce sessions``
defaults/    estimators without arguments                     ``reproduce defaults``
letor.py     LETOR's own runs                                 ``reproduce letor``
learners/    AdaRank, ListNet and MLCC, with which others are compared
bench/       benchmarks, one module each                      ``bench NAME``
scale.py     predicted rounds of many workers                 ``python -m slatewise_papers.scale``
label_page.py  the labeling page as a process, and its users, for ``bench label`` and long tests

Each reproduction has ``run(data, quick) -> Reproduction`` and is listed in ``PAPERS``; one that cuts folds at random
takes their seed as well and is listed in ``SEEDED``.
"""

from slatewise_papers.framework.reproduction import PAPERS, Reproduction, Row, reproduce

__all__ = ["PAPERS", "Reproduction", "Row", "reproduce"]
