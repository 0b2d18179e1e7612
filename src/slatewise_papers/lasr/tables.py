"""Weston and Blitzer (2012), latent structured ranking: music (Tables 1 to 3) and annotation (Tables 4 and 5).

The default data are next artists of the very listeners the paper learned from, as far as they can be had. ``--data``
names other sessions, a file of sessions, the original listening log (``.tsv``, one day in five for testing), rows with
labels for the annotation tables (omniglot901, mulan_delicious, corel5k_tagprop, hetrec2011_lastfm_2k, an npz or ARFF
file), or ``generated``: sessions of the paper's size, with seconds and peak memory. Figures are percentages except MAP,
mean rank, p values, seconds and counts.
"""

from __future__ import annotations

from slatewise_papers.framework.reproduction import Reproduction
from slatewise_papers.lasr import annotation, music
from slatewise_papers.lasr.data import GENERATED, GENERATED_ARTISTS, GENERATED_SESSIONS, generated_music, load_music
from slatewise_papers.lasr.labels import is_annotation, load_annotation

MAIN = "lastfm1k_artist_sessions"
SEED = 2012
QUICK_SESSIONS, QUICK_ARTISTS = 1500, 120
NEGATIVES, EPOCHS = 2048, 4
"""At the paper's size: drawn a step beside the lists, and epochs a stage."""


def run(data: str | None = None, quick: bool = False, seed: int = SEED) -> Reproduction:
    """Run the tables; ``quick``: few generated sessions, few pairs or few rows, and one setting of all."""
    if data is not None and is_annotation(data):
        effort = annotation.QUICK if quick else annotation.FULL
        rows = annotation.table_5(load_annotation(data, effort.features, quick, seed), effort, seed)
        return Reproduction("latent structured ranking, Tables 4 and 5", data, rows)
    if data == GENERATED and not quick:
        problem = generated_music(GENERATED_SESSIONS, GENERATED_ARTISTS, seed)
        rows = music.at_scale(problem, music.FULL.n_components, NEGATIVES, EPOCHS, seed)
        return Reproduction("latent structured ranking, Table 1 at its size", problem.name, rows)
    if quick and data in (None, GENERATED):
        problem = generated_music(QUICK_SESSIONS, QUICK_ARTISTS, seed)
    else:
        problem = load_music(data or MAIN, seed)
        problem = problem.smaller() if quick else problem
    rows = music.tables(problem, music.QUICK if quick else music.FULL, seed)
    return Reproduction(f"latent structured ranking, Tables 1 to 3 (split by seed {seed})", problem.name, rows)
