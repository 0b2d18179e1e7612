"""What :func:`slatewise.datasets.load` returns: one frozen record a kind of data, each with its name and terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.data.records import Ids, MultiLabel, Pairs, Sessions, Strings
from slatewise.datasets.splits import Split


@dataclass(frozen=True)
class About:
    """Which data, from where, under which terms."""

    name: str
    kind: str
    size: str
    terms: str
    source: str


@dataclass(frozen=True)
class Download:
    """A file at an address that keeps its content, with the SHA-256 of that content after decompression."""

    url: str
    file: str
    sha256: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """What every kind has."""

    about: About

    @property
    def name(self) -> str:
        """The name it was loaded by."""
        return self.about.name

    @property
    def terms(self) -> str:
        """Licence or terms of use, in a line."""
        return self.about.terms

    @property
    def source(self) -> str:
        """Where it comes from."""
        return self.about.source


@dataclass(frozen=True, eq=False)
class Published:
    """Figures that others published: ``figures["NDCG@10"]`` of a method on the test part of a fold (from 1)."""

    name: str
    data: str
    fold: int
    figures: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class OfficialRun(Published):
    """Published scores for the rows of a fold's test part, in the order of the rows, with the published figures."""

    relevance: Floats
    scores: Floats
    qid: Ids


@dataclass(frozen=True, eq=False)
class RankingSet(Dataset):
    """Rows to rank: row i belongs to list ``qid[i]``, has features ``X[i]`` and relevance ``y[i]``."""

    X: Floats
    y: Floats
    qid: Ids
    doc_ids: Strings | None
    folds: tuple[Split, ...]
    """The source's own folds."""
    published: tuple[Published, ...] = ()
    runs: tuple[OfficialRun, ...] = ()


@dataclass(frozen=True, eq=False)
class FigureSet(Dataset):
    """Published figures without the data: per fold, and the source's spreadsheets as rows of cells."""

    published: tuple[Published, ...]
    tables: Mapping[str, tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, eq=False)
class LabelledSet(Dataset):
    """Rows with one class each: row i has features ``X[i]`` and class ``class_names[y[i]]``."""

    X: Floats
    y: Ints
    class_names: Strings
    is_train: Bools | None = None
    """The source's split, where it has one."""


@dataclass(frozen=True, eq=False)
class ImageSet(Dataset):
    """Black and white images, eight pixels a byte, with one class each."""

    packed: NDArray[np.uint8]
    shape: tuple[int, int]
    y: Ints
    class_names: Strings
    drawer: Ints
    from_evaluation: Bools

    def images(self, rows: Any = slice(None)) -> NDArray[np.uint8]:
        """Unpack some of the images, (rows, height, width), 1 where there is ink."""
        height, width = self.shape
        return np.unpackbits(self.packed[rows], axis=1, count=height * width).reshape(-1, height, width)


@dataclass(frozen=True, eq=False)
class MultiLabelSet(Dataset):
    """Rows with sets of labels: ``Y[i, l]`` is 1 where row i has label l."""

    X: csr_array | Floats
    Y: csr_array
    label_names: Strings
    feature_names: Strings | None
    is_train: Bools | None
    """The source's split, where it has one."""


@dataclass(frozen=True, eq=False)
class MultiViewSet(Dataset):
    """Images with sets of labels, described by several histograms: ``views[name]`` has a row an image."""

    views: Mapping[str, csr_array]
    Y: csr_array
    label_names: Strings
    image_ids: Strings
    is_train: Bools


@dataclass(frozen=True, eq=False)
class SessionSet(Dataset):
    """Sessions of item numbers; ``test`` is later than ``train``."""

    train: Sessions
    test: Sessions


@dataclass(frozen=True, eq=False)
class PairSet(Dataset):
    """Observed (query, item) pairs."""

    pairs: Pairs


@dataclass(frozen=True, eq=False)
class TaggedPairSet(Dataset):
    """Observed (user, item) pairs without order, and items with tags: ``item_tags[i, t]`` is 1 where item i has tag t.

    Items are numbers from 0; items without a user are rows of ``item_tags`` too.
    """

    pairs: Pairs
    item_tags: csr_array


@dataclass(frozen=True, eq=False)
class TaggedListeningSet(Dataset):
    """Listening counts of users and artists, tags that users gave to artists, and friendships of users."""

    listens: Pairs
    """User numbers, artist numbers, listening counts."""
    taggings: Ints
    """Rows of user, artist, tag, day, month, year."""
    friends: Ints
    """Rows of user, friend; every friendship stands twice."""
    artist_names: Mapping[int, str]
    tag_names: Mapping[int, str]

    def annotation(self) -> MultiLabel:
        """Return artists (rows) with their tags; features are listening counts by user, all zero for some artists.

        Rows are the tagged artists and columns of Y the tags in use, both by ascending number; columns of X are the
        users who listen to anything.
        """
        artists, row = np.unique(self.taggings[:, 1], return_inverse=True)
        tags, label = np.unique(self.taggings[:, 2], return_inverse=True)
        Y = csr_array((np.ones(len(row)), (row, label)), shape=(len(artists), len(tags)))
        Y.data[:] = 1
        users, column = np.unique(self.listens.queries, return_inverse=True)
        tagged = np.isin(self.listens.items, artists)
        weights = np.ones(len(tagged)) if self.listens.weights is None else self.listens.weights
        place = (np.searchsorted(artists, self.listens.items[tagged]), column[tagged])
        X = csr_array((weights[tagged], place), shape=(len(artists), len(users)))
        return MultiLabel(X, Y, np.array([self.tag_names[tag] for tag in tags.tolist()]))


@dataclass(frozen=True, eq=False)
class MeetingSet(Dataset):
    """People who met in pairs and answered yes or no: query by example, with the partners met as the list.

    Row i is a date seen by person ``subject[i]``; numbers index ``people``, with columns from before the dates
    (NaN: no answer). ``partner`` is -1 where the source does not have it.
    """

    people: Floats
    feature_names: Strings
    person_ids: Ints
    subject: Ints
    partner: Ints
    wave: Ints
    decision: Ints
    """1 where the answer of the subject is yes."""
    match: Ints
    """1 where both answers are yes."""


@dataclass(frozen=True, eq=False)
class OutlineSet(Dataset):
    """Closed outlines, (outlines, points, 2), the last point not repeated, with one class each."""

    outlines: Floats
    y: Ints
    class_names: Strings


@dataclass(frozen=True, eq=False)
class MatchingSet(Dataset):
    """Frames of the same landmarks: point i of one frame matches point i of every other."""

    points: Floats
    shape_context: NDArray[np.uint8]
    adjacency: Bools
    frames: Split
    pairs: Mapping[int, Split]
    """Pairs of frames by their distance in time: rows of two frame numbers in each part."""


@dataclass(frozen=True, eq=False)
class QapInstance:
    """min over permutations p of sum_ij A[i, j] B[p[i], p[j]]; ``permutation`` attains ``best_value``."""

    name: str
    A: Ints
    B: Ints
    best_value: int
    permutation: Ints | None
    """None where the source's permutation does not attain the value."""

    def value(self, permutation: Ints) -> int:
        """Return the objective, to be made small."""
        return int((self.A * self.B[np.ix_(permutation, permutation)]).sum())


@dataclass(frozen=True, eq=False)
class QapSet(Dataset):
    """Quadratic assignment problems with the best values known."""

    instances: Mapping[str, QapInstance]
