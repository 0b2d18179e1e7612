"""Every data set by name: what it is, its terms, the files it needs, and the function that loads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from slatewise.datasets import letor, readers
from slatewise.datasets.records import About, Dataset, Download


@dataclass(frozen=True)
class Entry(About):
    """A line of the table."""

    files: tuple[str, ...] = ()
    load: Callable[[About, Path], Dataset] | None = None
    builtin: Callable[[About], Dataset] | None = None
    """Loads a copy that comes with scikit-learn."""
    folder: str = ""
    """The name of the folder, if it is not that of the data set."""
    download: Download | None = None

    @property
    def folder_name(self) -> str:
        """The folder of the files."""
        return self.folder or self.name

    @property
    def about(self) -> About:
        """What the loaded record knows of itself."""
        return About(self.name, self.kind, self.size, self.terms, self.source)


_MSR = "Microsoft Research licence, non-commercial use only"
_MSR_ASSUMED = f"{_MSR} (text of LETOR 1.0, assumed to hold for this release)"
_UCI = "UCI, CC BY 4.0 as far as known"
_MULAN = "distributed with Mulan (GPL repository); research data, cite the original paper"
_PARTS = tuple(f"part{part}.txt.xz" for part in range(1, 6))
_SESSION_FILES = ("train_sessions.txt.gz", "test_sessions.txt.gz")
_GCE_GNN = "GitHub CCIIPLab/GCE-GNN @212575302e42, datasets/"


def _mulan(name: str, size: str) -> Entry:
    source = f"GitHub tsoumakas/mulan @43f6389095ad, data/multi-label/{name}, as npz"
    return Entry(f"mulan_{name}", "multi-label", size, _MULAN, source, (f"{name}.npz",), readers.load_mulan)


_ENTRIES = (
    Entry(
        "aotm_bigrams",
        "pairs",
        "66,250 pairs, 26,752 songs",
        "published for research; cite McFee & Lanckriet, ISMIR 2011",
        "GitHub bmcfee/bmcfee.github.io @f7ad04e6d5ea, data/aotm-bigrams.csv.gz",
        ("aotm-bigrams.csv.gz",),
        readers.load_bigrams,
        download=Download(
            "https://raw.githubusercontent.com/bmcfee/bmcfee.github.io/08b5a3c8a5b00bd999ee608ec46e695aed2aaf49/data/"
            "aotm-bigrams.csv.gz",
            "aotm-bigrams.csv.gz",
            "66ff7ff161e9f656cbb5028a6d97ca8e65945acafc8592e1dc8cffaeb4e60492",
        ),
    ),
    Entry(
        "citeulike_a",
        "pairs with tags of items",
        "5,551 users, 16,980 articles, 204,986 pairs",
        "none stated; research data, cite Wang, Chen & Li, IJCAI 2013",
        "GitHub js05212/citeulike-a @91b603922d7f, users.dat and item-tag.dat, gzipped",
        ("users.dat.gz", "item-tag.dat.gz"),
        readers.load_citeulike,
    ),
    Entry(
        "cmu_house",
        "matching",
        "111 frames, 30 points",
        "free for research; cite Zhou & De la Torre 2012 and Caetano et al. 2009",
        "GitHub zhfe99/fgm @06ebf17787b3, data/cmum/house, as npz",
        ("cmu_house.npz",),
        readers.load_house,
    ),
    Entry(
        "corel5k_tagprop",
        "multi-view multi-label",
        "4,999 images, 4 histograms, 260 labels",
        "personal and academic use, not commercial",
        "GitHub EverFAITH/NAIM3L @e16421132e33, NAIM3L/data/corel5k_mat, as npz",
        ("corel5k_tagprop.npz",),
        readers.load_corel5k,
    ),
    Entry(
        "digits",
        "labelled",
        "1,797 rows, 64 features, 10 classes",
        f"{_UCI}; comes with scikit-learn",
        "scikit-learn",
        builtin=partial(readers.from_sklearn, "load_digits", [str(digit) for digit in range(10)]),
    ),
    Entry(
        "diginetica_sessions",
        "sessions",
        "202,633 sessions, 43,097 items",
        "CIKM Cup 2016 research data; the repository states no licence",
        f"{_GCE_GNN}diginetica, as text",
        _SESSION_FILES,
        readers.load_sessions,
    ),
    Entry(
        "hetrec2011_lastfm_2k",
        "tagged listening",
        "1,892 users, 17,632 artists, 11,946 tags",
        "non-commercial use only; cite Cantador et al., HetRec 2011, and Last.fm",
        "GitHub RecoHut-Datasets/lastfm @1096c64847c9, files gzipped",
        tuple(f"{table}.dat.gz" for table in ("artists", "tags", "user_artists", "user_friends", "user_taggedartists")),
        readers.load_hetrec,
    ),
    Entry(
        "lastfm1k_artist_sessions",
        "sessions",
        "90,532 sessions, 31,864 artists",
        "Last.fm data, non-commercial use only",
        "GitHub Ust-Waylon/MetricLearningSBR @921c962d6b0d, datasets/lastfm/{valid,test}.txt, gzipped",
        ("part_a_valid_sessions.txt.gz", "part_b_test_sessions.txt.gz"),
        partial(readers.load_sessions, train="part_a_valid_sessions.txt.gz", test="part_b_test_sessions.txt.gz"),
    ),
    Entry(
        "letor-baselines",
        "figures",
        "20 runs on TD2003 and TD2004, 6 spreadsheets",
        _MSR,
        "LETOR 1.0, GitHub sshivanshg/230054-midsem, data/letor",
        ("official_runs", "letor1_reference_OHSUMED.csv"),
        letor.load_figures,
    ),
    Entry(
        "lightgbm-rank",
        "ranking",
        "251 queries, 3,773 rows, 300 features",
        "MIT",
        "GitHub microsoft/LightGBM, examples/lambdarank, group sizes turned into qid",
        ("train.txt.xz", "test.txt.xz"),
        letor.load_lightgbm_example,
    ),
    Entry(
        "mpeg7_contours",
        "outlines",
        "1,300 outlines, 100 points, 65 classes",
        "MPEG-7 CE-Shape-1 research data",
        "GitHub jdtuck/fdasrsf_python @c3a1595918af, bin/MPEG7.npz, as plain npz",
        ("mpeg7_contours.npz",),
        readers.load_outlines,
    ),
    Entry(
        "mq2007-85pct",
        "ranking",
        "1,692 queries, 59,135 rows, 46 features",
        f"{_MSR_ASSUMED}; 85% of the rows of MQ2007: figures do not compare with published ones",
        "GitHub hurshprasad/active-learning-elo-letor, data/MQ2016, merged",
        (*_PARTS, "folds.json"),
        partial(letor.load_parts, n_features=46),
    ),
    _mulan("bibtex", "7,395 rows, 1,836 features, 159 labels"),
    _mulan("birds", "645 rows, 260 features, 19 labels"),
    _mulan("cal500", "502 rows, 68 features, 174 labels"),
    _mulan("corel5k", "5,000 rows, 499 features, 374 labels"),
    _mulan("delicious", "16,105 rows, 500 features, 983 labels"),
    _mulan("emotions", "593 rows, 72 features, 6 labels"),
    _mulan("enron", "1,702 rows, 1,001 features, 53 labels"),
    _mulan("scene", "2,407 rows, 294 features, 6 labels"),
    _mulan("yeast", "2,417 rows, 103 features, 14 labels"),
    Entry(
        "nowplaying_sessions",
        "sessions",
        "142,556 sessions, 60,416 tracks",
        "research use; the repository states no licence",
        f"{_GCE_GNN}Nowplaying, as text",
        _SESSION_FILES,
        readers.load_sessions,
    ),
    Entry(
        "ohsumed25",
        "ranking",
        "106 queries, 16,140 rows, 25 features",
        _MSR,
        "LETOR 1.0, GitHub sshivanshg/230054-midsem, data/letor/OHSUMED, in five parts",
        (*_PARTS, "folds.json"),
        partial(letor.load_parts, n_features=25),
    ),
    Entry(
        "ohsumed45",
        "ranking",
        "106 queries, 16,140 rows, 45 features",
        _MSR_ASSUMED,
        "LETOR 3.0 (QueryLevelNorm), GitHub JasonWyse/libfm_ranksvm, in five parts",
        (*(f"querylevelnorm/{part}" for part in _PARTS), "folds.json"),
        partial(letor.load_parts, n_features=45, parts="querylevelnorm"),
    ),
    Entry(
        "ohsumed45_raw",
        "ranking",
        "106 queries, 16,140 rows, 45 features",
        _MSR_ASSUMED,
        "LETOR 3.0 (Feature-min), GitHub XiaofengZhu/uRank_urRank, in five parts",
        (*(f"raw_min/{part}" for part in _PARTS), "folds.json"),
        partial(letor.load_parts, n_features=45, parts="raw_min"),
        folder="ohsumed45",
    ),
    Entry(
        "omniglot901",
        "images",
        "18,020 images, 901 characters",
        "MIT; cite Lake et al., Science 2015",
        "GitHub brendenlake/omniglot @057f034baf2e and Elubrazione/Omniglot_Classification @6033febc6903, as npz",
        ("omniglot901.npz",),
        readers.load_omniglot,
    ),
    Entry(
        "qaplib",
        "quadratic assignment",
        "20 instances, n from 12 to 50",
        "no licence stated; cite Burkard et al., J. Global Optimization 1997",
        "GitHub 0816keisuke/qaplib @9045465b65c25230d3235f81aced5cb090a03c62, instance/NAME/NAME.txt as NAME.txt "
        "and instance/NAME/solution.txt as NAME.sln.txt",
        ("nug12.txt", "nug12.sln.txt"),
        readers.load_qaplib,
    ),
    Entry(
        "speed-dating",
        "meetings",
        "8,378 dates, 551 people, 21 waves",
        "no licence stated; widely used for teaching and research",
        "GitHub SeanMKoh/Hackathon-Speed-Dating-Dataset, as csv.xz",
        ("speed_dating.csv.xz",),
        readers.load_speed_dating,
    ),
    Entry(
        "tmall_sessions",
        "sessions",
        "66,313 sessions, 40,727 items",
        "research data; the repository states no licence",
        f"{_GCE_GNN}Tmall, as text",
        _SESSION_FILES,
        readers.load_sessions,
    ),
    Entry(
        "uci-balance",
        "labelled",
        "625 rows, 4 features, 3 classes",
        _UCI,
        "GitHub lynnoak/submodular_metric, data/balance-scale.data",
        ("balance-scale.csv",),
        readers.load_balance,
    ),
    Entry(
        "uci-isolet",
        "labelled",
        "3,119 rows, 617 features, 26 classes",
        f"{_UCI}; two of five speaker groups: figures do not compare with published ones",
        "GitHub jundongl/scikit-feature (group 1) and jlsuarezdiaz/pyDML (group 5), as csv.xz",
        ("isolet1.csv.xz", "isolet5.csv.xz"),
        readers.load_isolet,
    ),
    Entry(
        "uci-wdbc",
        "labelled",
        "569 rows, 30 features, 2 classes",
        f"{_UCI}; comes with scikit-learn",
        "scikit-learn, sklearn/datasets/data/breast_cancer.csv",
        ("wdbc.csv.xz",),
        readers.load_wdbc,
        partial(readers.from_sklearn, "load_breast_cancer", ["malignant", "benign"]),
    ),
    Entry(
        "uci-wine",
        "labelled",
        "178 rows, 13 features, 3 classes",
        f"{_UCI}; comes with scikit-learn",
        "GitHub jbrownlee/Datasets, wine.csv",
        ("wine.csv",),
        readers.load_wine,
        partial(readers.from_sklearn, "load_wine", ["1", "2", "3"]),
    ),
)
TABLE = {entry.name: entry for entry in _ENTRIES}
