"""One function per data set of the table: files of a folder become a record."""

from __future__ import annotations

import csv
import lzma
import re
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats, Ints
from slatewise.data.npz import read_npz
from slatewise.data.pairs import read_pairs
from slatewise.data.reading import open_source
from slatewise.data.records import Pairs
from slatewise.data.sessions import read_sessions
from slatewise.datasets.records import (
    About,
    ImageSet,
    LabelledSet,
    MatchingSet,
    MeetingSet,
    MultiLabelSet,
    MultiViewSet,
    OutlineSet,
    PairSet,
    QapInstance,
    QapSet,
    SessionSet,
    TaggedListeningSet,
    TaggedPairSet,
)
from slatewise.datasets.splits import Split


def load_sessions(
    about: About, folder: Path, train: str = "train_sessions.txt.gz", test: str = "test_sessions.txt.gz"
) -> SessionSet:
    """Load sessions, one a line."""
    read = (read_sessions(folder / name, delimiter=",") for name in (train, test))
    return SessionSet(about, *read)


def load_bigrams(about: About, folder: Path) -> PairSet:
    """Load pairs of a song and the one that follows it in a playlist."""
    return PairSet(about, read_pairs(folder / "aotm-bigrams.csv.gz", delimiter=",", header=False))


def load_citeulike(about: About, folder: Path) -> TaggedPairSet:
    """Load readers and articles: a line is a set of numbers after their count, of articles or of tags."""
    users, items = _counted_sets(folder / "users.dat.gz")
    articles, tags = _counted_sets(folder / "item-tag.dat.gz")
    item_tags = csr_array((np.ones(len(tags), dtype=np.float64), (articles, tags)))
    return TaggedPairSet(about, Pairs(users, items), item_tags)


def _counted_sets(path: Path) -> tuple[Ints, Ints]:
    with open_source(path) as source:
        sets = [np.array(line.split()[1:], dtype=np.int64) for _, line in source.lines()]
    return np.repeat(np.arange(len(sets)), [len(one) for one in sets]), np.concatenate(sets)


def load_hetrec(about: About, folder: Path) -> TaggedListeningSet:
    """Load the five tables; artists are in UTF-8, tags in Latin-1."""
    listens = read_pairs(
        folder / "user_artists.dat.gz", columns=("userID", "artistID"), weight="weight", delimiter="\t", header=True
    )
    return TaggedListeningSet(
        about,
        listens,
        _numbers(folder / "user_taggedartists.dat.gz"),
        _numbers(folder / "user_friends.dat.gz"),
        _names(folder / "artists.dat.gz", "utf-8"),
        _names(folder / "tags.dat.gz", "latin-1"),
    )


def _numbers(path: Path) -> Ints:
    with open_source(path) as source:
        lines = [line for number, line in source.text_lines() if number > 1]
    return np.loadtxt(lines, delimiter="\t", dtype=np.int64, ndmin=2)


def _names(path: Path, encoding: str) -> dict[int, str]:
    names: dict[int, str] = {}
    with open_source(path) as source:
        for number, line in source.lines():
            if number > 1:
                key, _, name = line.partition(b"\t")
                names[int(key)] = name.decode(encoding)
    return names


def load_wine(about: About, folder: Path) -> LabelledSet:
    """Load 13 measurements of wines; class 1, 2 or 3 in the last column."""
    table = _table(folder / "wine.csv")
    return LabelledSet(about, table[:, :-1], table[:, -1].astype(np.int64) - 1, np.array(["1", "2", "3"]))


def load_wdbc(about: About, folder: Path) -> LabelledSet:
    """Load 30 measurements of tumours; the first line has the class names, the last column the class."""
    table = _table(folder / "wdbc.csv.xz", skip=1)
    return LabelledSet(about, table[:, :-1], table[:, -1].astype(np.int64), np.array(["malignant", "benign"]))


def load_balance(about: About, folder: Path) -> LabelledSet:
    """Load weights and distances on a scale; the first column says where it tips."""
    table = _table(folder / "balance-scale.csv")
    return LabelledSet(about, table[:, 1:], table[:, 0].astype(np.int64), np.array(["balanced", "right", "left"]))


def load_isolet(about: About, folder: Path) -> LabelledSet:
    """Load spoken letters: speaker group 1 is for training, group 5 (UCI's test file) for testing."""
    train, test = _table(folder / "isolet1.csv.xz"), _table(folder / "isolet5.csv.xz")
    table = np.vstack([train, test])
    is_train = np.arange(len(table)) < len(train)
    letters = np.array([chr(ord("A") + letter) for letter in range(26)])
    return LabelledSet(about, table[:, :-1], table[:, -1].astype(np.int64) - 1, letters, is_train)


def load_omniglot(about: About, folder: Path) -> ImageSet:
    """Load handwritten characters: 20 drawings of each, one a drawer."""
    with np.load(folder / "omniglot901.npz", allow_pickle=False) as parts:
        y, drawer = parts["y"].astype(np.int64), parts["drawer"].astype(np.int64)
        return ImageSet(about, parts["packed"], (105, 105), y, parts["class_names"], drawer, parts["from_evaluation"])


def from_sklearn(loader: str, class_names: list[str], about: About) -> LabelledSet:
    """Return the copy of a data set that comes with scikit-learn."""
    from sklearn import datasets

    X, y = getattr(datasets, loader)(return_X_y=True)
    return LabelledSet(about, X, y.astype(np.int64), np.array(class_names))


def _table(path: Path, skip: int = 0) -> Floats:
    with open_source(path) as source:
        lines = [line for number, line in source.text_lines() if number > skip and line]
    return np.loadtxt(lines, delimiter=",", dtype=np.float64, ndmin=2)


def load_mulan(about: About, folder: Path) -> MultiLabelSet:
    """Load one of Mulan's sets; a set whose rows are all for training has no split of its own."""
    read = read_npz(folder / f"{about.name.removeprefix('mulan_')}.npz")
    has_split = read.is_train is not None and not read.is_train.all()
    return MultiLabelSet(
        about, read.X, read.Y, read.label_names, read.feature_names, read.is_train if has_split else None
    )


def load_corel5k(about: About, folder: Path) -> MultiViewSet:
    """Load Corel5k: bag-of-words of SIFT and hue, and color histograms, as counts."""
    with np.load(folder / "corel5k_tagprop.npz", allow_pickle=False) as parts:
        views = {name: csr_array(parts[name].astype(np.float64)) for name in ("DenseSift", "DenseHue")}
        for name in ("Rgb", "Lab"):
            data, indices, indptr = (parts[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
            shape = tuple(parts[f"{name}_shape"].tolist())
            views[name] = csr_array((data.astype(np.float64), indices.astype(np.int32), indptr), shape=shape)
        Y = csr_array(parts["Y"].astype(np.float64))
        return MultiViewSet(about, views, Y, parts["label_names"], parts["image_id"], parts["is_train"])


_FIRST, _LAST = "age", "amb5_1"
_TEXT = {"field", "undergra", "from", "zipcode", "career"}
"""Columns between the first and the last that are words (a postal code is no number)."""


def load_speed_dating(about: About, folder: Path) -> MeetingSet:
    """Load the dates, with the answers of people when they signed up.

    Ratings made during or after the dates are left out: they give the answer away.
    """
    with lzma.open(folder / "speed_dating.csv.xz", "rt", encoding="latin-1", newline="") as lines:
        header, *rows = csv.reader(lines)
    column = {name: index for index, name in enumerate(header)}
    before = header[column[_FIRST] : column[_LAST] + 1]
    features = ["gender", *(name for name in before if name not in _TEXT)]

    def numbers(name: str) -> Floats:
        return np.array([float(row[column[name]].replace(",", "") or "nan") for row in rows])

    def whole(name: str) -> Ints:
        return numbers(name).astype(np.int64)

    person_ids, first_row, subject = np.unique(whole("iid"), return_index=True, return_inverse=True)
    answers = np.column_stack([numbers(name) for name in features])
    met = numbers("pid")
    known = np.isfinite(met)
    partner = np.full(len(rows), -1, dtype=np.int64)
    partner[known] = np.searchsorted(person_ids, met[known].astype(np.int64))
    return MeetingSet(
        about,
        answers[first_row],
        np.array(features),
        person_ids,
        subject,
        partner,
        whole("wave"),
        whole("dec"),
        whole("match"),
    )


def load_qaplib(about: About, folder: Path) -> QapSet:
    """Load every ``name.txt`` with its ``name.sln.txt``."""
    names = sorted(path.name.removesuffix(".sln.txt") for path in folder.glob("*.sln.txt"))
    return QapSet(about, {name: _instance(folder, name) for name in names})


def _instance(folder: Path, name: str) -> QapInstance:
    n, *entries = (int(word) for word in (folder / f"{name}.txt").read_text().split())
    if len(entries) != 2 * n * n:
        raise ValueError(f"{folder / name}.txt: expected two matrices of {n} x {n} numbers, found {len(entries)}")
    A, B = np.array(entries, dtype=np.int64).reshape(2, n, n)
    _, best_value, *places = (
        int(word) for word in re.split(r"[\s,]+", (folder / f"{name}.sln.txt").read_text().strip())
    )
    plain = QapInstance(name, A, B, best_value, None)
    # Solution files count from 1 or from 0, and some state the permutation of B's rows: its inverse.
    permutation = np.array(places, dtype=np.int64) - min(places)
    for candidate in (permutation, np.argsort(permutation)):
        if plain.value(candidate) == best_value:
            return QapInstance(name, A, B, best_value, candidate)
    return plain


def load_outlines(about: About, folder: Path) -> OutlineSet:
    """Load MPEG-7's silhouettes: 65 classes of 20 outlines, class after class."""
    with np.load(folder / "mpeg7_contours.npz", allow_pickle=False) as parts:
        curves = parts["curves"].astype(np.float64)
        classes, instances, two, points = curves.shape
        outlines = curves.reshape(classes * instances, two, points).transpose(0, 2, 1)
        y = np.repeat(np.arange(classes, dtype=np.int64), instances)
        return OutlineSet(about, np.ascontiguousarray(outlines), y, parts["class_names"])


def load_house(about: About, folder: Path) -> MatchingSet:
    """Load the CMU house: 30 landmarks in 111 frames, and the source's pairs of frames."""
    with np.load(folder / "cmu_house.npz", allow_pickle=False) as parts:
        which = ("train", "validate", "test")
        separations = range(0, 100, 10)
        pairs = {
            gap: Split(*(parts[f"pairs_sep{gap:02d}_{part}"].astype(np.int64) for part in which)) for gap in separations
        }
        frames = Split(*(parts[f"split_{part}"].astype(np.int64) for part in which))
        return MatchingSet(
            about, parts["points"], parts["shape_context"], parts["delaunay_adj"].astype(bool), frames, pairs
        )
