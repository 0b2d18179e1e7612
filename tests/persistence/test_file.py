import hashlib
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from slatewise.core.errors import ModelFileError
from slatewise.persistence.file import (
    FORMAT_VERSION,
    ModelCard,
    ModelState,
    _canonical,
    _sealed,
    read_model,
    write_model,
)

CARD = ModelCard("slatewise 0.1.0", n_lists=3, n_rows=9, data_sha256="00", objective=2.5, lower_bound=2.4)


def some_state(**arrays):
    return ModelState("BestFeatureRanker", {"measure": "map"}, {"sign_": -1.0}, arrays, CARD)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    write_model(path, some_state(weights=np.arange(6.0).reshape(2, 3), names=np.array(["a", "été", ""])))
    return path


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "i1", "u1", "?", ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_arrays_come_back(tmp_path, dtype, shape, mmap):
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    write_model(tmp_path / "m", some_state(a=array, b=array.T))
    back = read_model(tmp_path / "m", mmap).arrays
    np.testing.assert_array_equal(back["a"], array)
    np.testing.assert_array_equal(back["b"], array.T)
    assert back["a"].dtype == array.dtype.newbyteorder("<")
    assert back["a"].shape == shape


@given(st.lists(st.text(st.characters(exclude_characters="\0")), max_size=5))
def test_strings_come_back(tmp_path_factory, texts):
    path = tmp_path_factory.getbasetemp() / "strings"
    write_model(path, some_state(ids=np.array(texts, dtype=object)))
    assert read_model(path).arrays["ids"].tolist() == texts


def test_the_rest_comes_back(model):
    state = read_model(model)
    assert state.estimator == "BestFeatureRanker"
    assert state.params == {"measure": "map"}
    assert state.values == {"sign_": -1.0}
    assert state.card == CARD
    assert state.estimator_version == 1


def test_the_safetensors_library_reads_the_same(model):
    theirs = load_file(model)
    np.testing.assert_array_equal(theirs["weights"], np.arange(6.0).reshape(2, 3))
    assert theirs["weights"].dtype == np.float64


def test_same_model_same_bytes(tmp_path, model):
    write_model(tmp_path / "again", read_model(model))
    assert (tmp_path / "again").read_bytes() == model.read_bytes()


@pytest.mark.parametrize("mmap", [False, True])
def test_every_flipped_byte_is_refused(tmp_path, model, mmap):
    whole = model.read_bytes()
    damaged = tmp_path / "damaged"
    for place in range(len(whole)):
        for flip in (0x01, 0x20, 0x80, 0xFF):
            damaged.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
            with pytest.raises(ModelFileError, match="damaged"):
                read_model(damaged, mmap)


@pytest.mark.parametrize("mmap", [False, True])
def test_every_truncation_and_extension_is_refused(tmp_path, model, mmap):
    whole = model.read_bytes()
    damaged = tmp_path / "damaged"
    for text in [whole[:length] for length in range(len(whole))] + [whole + b"\0", whole + whole]:
        damaged.write_bytes(text)
        with pytest.raises(ModelFileError, match="damaged"):
            read_model(damaged, mmap)


def hostile(path, entries, metadata=None, data=b""):
    """A file whose checksums are right and whose content is not."""
    inner = {
        "format": FORMAT_VERSION,
        "estimator": "X",
        "estimator_version": 1,
        "params": {},
        "values": {},
        "card": {},
        "sha256": {},
    }
    inner |= metadata or {}
    header = _sealed({**entries, "__metadata__": {"slatewise": _canonical(inner)}})
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 1 << 43]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]},
        {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [True], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [0] * 100, "data_offsets": [0, 0]},
        {"dtype": "F64", "shape": [0, 1 << 62], "data_offsets": [0, 0]},
        {"dtype": "F64", "shape": [1 << 70, 0], "data_offsets": [0, 0]},
        {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
        {"dtype": ["F64"], "shape": [1], "data_offsets": [0, 8]},
        {"shape": [1]},
        [],
        "text",
    ],
)
def test_impossible_tensors_are_refused(tmp_path, entry):
    with pytest.raises(ModelFileError):
        read_model(hostile(tmp_path / "h", {"a": entry}, data=b"\0" * 8))


def test_overlapping_tensors_are_refused(tmp_path):
    entry = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    with pytest.raises(ModelFileError, match="right after"):
        read_model(hostile(tmp_path / "h", {"a": entry, "b": entry}, data=b"\0" * 8))


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1, 99, "1", None, 1.0, True])
def test_unknown_versions_are_refused(tmp_path, version):
    with pytest.raises(ModelFileError, match="newer slatewise"):
        read_model(hostile(tmp_path / "h", {}, {"format": version}))


GOOD_CARD = {"library": "", "n_lists": 1, "n_rows": 1, "data_sha256": ""}


@pytest.mark.parametrize(
    "metadata",
    [
        *({"card": {"x": 1}}, {"card": []}, {"card": None}, {"card": {**GOOD_CARD, "n_lists": "1"}}),
        *({"estimator_version": version} for version in ("1", 1.0, True, None)),
        *({"format": 1}, {"sha256": []}, {"sha256": {"a#utf32": 3}}, {"sha256": {"a": ""}}, {"extra": 1}),
        *({"estimator": []}, {"estimator": None}, {"params": []}, {"params": None}, {"values": []}, {"values": "ab"}),
    ],
)
def test_metadata_of_the_wrong_type_is_refused(tmp_path, metadata):
    read_model(hostile(tmp_path / "h", {}, {"card": GOOD_CARD}))
    with pytest.raises(ModelFileError):
        read_model(hostile(tmp_path / "h", {}, {"card": GOOD_CARD, **metadata}))


@pytest.mark.parametrize(("names", "values"), [(["a", "a#utf32"], {}), (["a"], {"a": 1})])
def test_one_name_for_two_things_is_refused(tmp_path, names, values):
    nothing = {
        "a": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]},
        "a#utf32": {"dtype": "I32", "shape": [0, 1], "data_offsets": [0, 0]},
    }
    metadata = {"card": GOOD_CARD, "values": values, "sha256": dict.fromkeys(names, hashlib.sha256().hexdigest())}
    with pytest.raises(ModelFileError, match="'a' twice"):
        read_model(hostile(tmp_path / "h", {name: nothing[name] for name in names}, metadata))


def test_another_safetensors_file_is_refused(tmp_path):
    header = json.dumps({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "other").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    with pytest.raises(ModelFileError, match="not a slatewise model"):
        read_model(tmp_path / "other")


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 250_000,
        b'{"a":' * 40_000,
        b"[" + b"[]," * 80_000 + b"[]]",
        b'{"a":"' + b"x" * 250_000 + b'"}',
        b"[" + b"1e9," * 60_000 + b"1]",
        b"9" * 250_000,
    ],
)
def test_a_hostile_header_costs_little_memory(tmp_path, header):
    path = tmp_path / "h"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        read_model(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 2 * path.stat().st_size + (1 << 20)


@pytest.mark.parametrize(
    "array", [np.zeros(1 << 20), np.zeros((1 << 18, 2), np.int32).view("U2").ravel(), np.zeros(1 << 22, np.uint8)]
)
def test_reading_allocates_at_most_twice_the_file(tmp_path, array):
    write_model(tmp_path / "big", some_state(a=array))
    tracemalloc.start()
    read_model(tmp_path / "big")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 2 * (tmp_path / "big").stat().st_size


def test_a_mapped_file_takes_no_memory_and_cannot_be_written_to(tmp_path):
    path = tmp_path / "big"
    write_model(path, some_state(a=np.arange(1 << 19), b=np.array(["x", "yz"]), c=np.zeros(3, np.uint8), d=np.ones(2)))
    tracemalloc.start()
    back = read_model(path, mmap=True).arrays
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert not back["a"].flags.writeable
    assert back["b"].tolist() == ["x", "yz"]
    assert back["d"].flags.aligned  # three bytes stand before it in the file
    write_model(path, some_state(a=np.zeros(1)))
    assert back["a"][-1] == (1 << 19) - 1  # the file that was mapped, not the one that took its place


def test_failed_write_leaves_the_old_file(model):
    before = model.read_bytes()
    with pytest.raises(ModelFileError, match="'bad'"):
        write_model(model, some_state(bad=np.zeros(2, complex)))
    with pytest.raises(ModelFileError, match="modest size"):
        write_model(model, ModelState("X", {"a": ["x"] * 10_000}, {}, {}, CARD))
    assert model.read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == [model.name]


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_before_0_3_are_refused_in_one_sentence(tmp_path, version):
    with pytest.raises(ModelFileError, match=r"h: expected format version 3, found \d, which is of a slatewise before"):
        read_model(hostile(tmp_path / "h", {}, {"format": version}))
