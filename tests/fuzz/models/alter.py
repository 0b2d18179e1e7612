"""Take a model file apart, alter it, and put it together with right checksums, without the library's own writer."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_CODES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}
_FLOATS = (
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    -1e308,
    1e150,
    1e99,
    -1e39,
    3e38,
    1e12,
    1e6,
    0.0,
    -1.0,
    -0.0,
    5e-324,
    1e-40,
    0.5,
)
_WHOLE = (-(2**63), 2**63 - 1, 2**40, 2**31, -1, 0, 1, 2, 7, 255, 0x10FFFF, 0xD800)
_JSON = (
    *(
        float("nan"),
        float("inf"),
        float("-inf"),
        -1,
        -2,
        0,
        1,
        2,
        3,
        4,
        5,
        20,
        0.5,
        -0.5,
        2.5,
        1.0,
        1e300,
        1e-300,
        5e-324,
    ),
    *(1e-31, 1e-29, 1e31, 1e29, 1e10, 1e11, 3e38, 2**31 - 1, 2**31, 2**40, 2**63, 10**30, 200_000_000),
    *(1 << 20, 65_536),
    *(True, False, None, "", "auto", "x" * 300, "\x00", "None", [], [1], [0.5, "x"], [[1, 2], [3, 4]], {}, {"a": 1}),
    *(
        [0.25] * 4,
        [3.0, 2.0, 1.0],
        [float("nan")] * 4,
        [1e300] * 3,
        [[[[[[]]]]]],
        list(range(50)),
        {"rules": {"k": []}},
    ),
    *("linear", "scores", "rbf", "chi2", "intersection", "precomputed", "likelihood", "max-margin", "relevant"),
    *("base", "svc"),
    *(
        "bcfw",
        "bundle",
        "subgradient",
        "gain",
        "exact",
        "bethe",
        "sample",
        "semidefinite",
        "bilinear",
        "both",
        "whole",
        "all",
        "rating",
    ),
    *(
        "marginal",
        "random",
        "warp",
        "sampled",
        "catalogue",
        "reciprocal",
        "ndcg@10",
        "map@99999999999",
        "mrr",
        "ignored",
    ),
    *(
        "CStarMarginRanker",
        "CStarRanker",
        "LatentRanker",
        "GraphMatcher",
        "MetricRanker",
        "SavedEstimator",
        "os.system",
        "LatentRanker checkpoint",
    ),
)


@dataclass
class Parts:
    """A model file in pieces."""

    metadata: dict[str, Any]
    tensors: dict[str, np.ndarray[Any, Any]]
    entries: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What the header shall say of a tensor instead of the truth."""


def taken_apart(data: bytes) -> Parts:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = json.loads(header.pop("__metadata__")["slatewise"])
    tensors = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        raw = data[8 + length + start : 8 + length + stop]
        tensors[name] = np.frombuffer(raw, _CODES[entry["dtype"]]).reshape(entry["shape"]).copy()
    return Parts(metadata, tensors)


def put_together(parts: Parts) -> bytes:
    codes = {np.dtype(dtype): code for code, dtype in _CODES.items()}
    header: dict[str, Any] = {}
    body, digests = b"", {}
    for name, tensor in sorted(parts.tensors.items()):
        raw = np.ascontiguousarray(tensor).tobytes()
        entry = {
            "dtype": codes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        header[name] = {**entry, **parts.entries.get(name, {})}
        body, digests[name] = body + raw, hashlib.sha256(raw).hexdigest()
    header["__metadata__"] = {"slatewise": _canonical({**parts.metadata, "sha256": digests})}
    header["__metadata__"]["sha256"] = hashlib.sha256(_canonical(header).encode()).hexdigest()
    text = _canonical(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def altered(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    """Return a file with one alteration, or a few, and what they were."""
    parts, done = taken_apart(data), list[str]()
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        done.append(rng.choice(_ALTERATIONS)(rng, parts))
    return put_together(parts), "; ".join(done)


# --- JSON ------------------------------------------------------------------------------------------------------------


def _place(rng: random.Random, parts: Parts) -> tuple[Any, Any, str]:
    """Choose a value anywhere, most often a parameter or a plain learned value; return holder, key and words."""
    version = parts.metadata.keys() & {"estimator_version"}  # since format 2
    key: Any = rng.choice(("params", "params", "values", "values", "values", "card", "format", "estimator", *version))
    holder: Any = parts.metadata
    holder.setdefault(key, None)  # an earlier alteration may have removed it
    words = str(key)
    while isinstance(holder[key], (dict, list)) and holder[key] and rng.random() > 0.03:
        holder = holder[key]
        key = rng.choice(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
        words += f".{key}"
    return holder, key, words


def _replace_value(rng: random.Random, parts: Parts) -> str:
    holder, key, words = _place(rng, parts)
    value = copy.deepcopy(rng.choice(_JSON))
    holder[key] = value
    return f"{words} = {str(value)[:60]!r}"


def _nudge_number(rng: random.Random, parts: Parts) -> str:
    holder, key, words = _place(rng, parts)
    old = holder[key]
    if not isinstance(old, (int, float)):
        return "nothing"
    value = rng.choice((old + 1, old - 1, -old, old * 1e9, float(old), old * 1e-9, old * 2))
    holder[key] = value
    return f"{words} = {value!r}"


def _remove_value(rng: random.Random, parts: Parts) -> str:
    holder, key, words = _place(rng, parts)
    del holder[key]
    return f"without {words}"


def _add_value(rng: random.Random, parts: Parts) -> str:
    holder = rng.choice([parts.metadata, *(part for part in parts.metadata.values() if isinstance(part, dict))])
    name = rng.choice(
        ("n_jobs", "callbacks", "checkpoint", "base", "__class__", "k_", "fit", "model_card_", "x", "sha256")
    )
    if isinstance(holder, dict):
        holder[name] = copy.deepcopy(rng.choice(_JSON))
    return f"with {name} = {str(holder.get(name))[:60]}"


def _swap_values(rng: random.Random, parts: Parts) -> str:
    first, second = _place(rng, parts), _place(rng, parts)
    first[0][first[1]] = copy.deepcopy(second[0][second[1]])
    return f"{first[2]} = {second[2]}"


# --- arrays ----------------------------------------------------------------------------------------------------------


def _pick(rng: random.Random, parts: Parts) -> str | None:
    return rng.choice(sorted(parts.tensors)) if parts.tensors else None


def _some_entries(rng: random.Random, parts: Parts) -> str:
    name = _pick(rng, parts)
    if name is None or not parts.tensors[name].size:
        return "nothing"
    tensor = parts.tensors[name].reshape(-1).copy()
    value = rng.choice(_FLOATS if tensor.dtype.kind == "f" else _WHOLE)
    chosen = slice(None) if rng.random() < 0.3 else rng.randrange(len(tensor))
    with np.errstate(all="ignore"):
        tensor[chosen] = np.array(value).astype(tensor.dtype)
    parts.tensors[name] = tensor.reshape(parts.tensors[name].shape)
    return f"{name}[{chosen}] = {value}"


def _scaled(rng: random.Random, parts: Parts) -> str:
    name = _pick(rng, parts)
    if name is None:
        return "nothing"
    factor = rng.choice((-1, 0, 2, 1e9, 1e-9, 1e30, 1e-30, 1e90, 1e-90))
    with np.errstate(all="ignore"):
        parts.tensors[name] = (parts.tensors[name] * factor).astype(parts.tensors[name].dtype)
    return f"{name} *= {factor}"


def _other_dtype(rng: random.Random, parts: Parts) -> str:
    name, dtype = _pick(rng, parts), rng.choice(sorted(_CODES.values()))
    if name is not None:
        with np.errstate(all="ignore"):
            parts.tensors[name] = parts.tensors[name].astype(dtype)
    return f"{name} as {dtype}"


def _other_rows(rng: random.Random, parts: Parts) -> str:
    name = _pick(rng, parts)
    if name is None or not parts.tensors[name].ndim or not len(parts.tensors[name]):
        return "nothing"
    tensor = parts.tensors[name]
    axis, at = rng.randrange(tensor.ndim), rng.randrange(len(tensor))
    kind = rng.choice(("drop", "double", "none", "reverse", "shuffle", "twice", "last", "repeat"))
    order = np.arange(tensor.shape[axis])
    if kind == "drop":
        order = np.delete(order, at % max(1, len(order)))
    elif kind == "double":
        order = np.concatenate([order, order])
    elif kind == "none":
        order = order[:0]
    elif kind == "reverse":
        order = order[::-1]
    elif kind == "shuffle":
        order = np.array(rng.sample(order.tolist(), len(order)), dtype=np.int64)
    elif kind == "last":
        order = order[-1:]
    else:
        order = np.sort(np.append(order, order[:1])) if kind == "twice" else np.zeros_like(order)
    parts.tensors[name] = np.take(tensor, order, axis=axis) if len(order) or tensor.size else tensor
    return f"{name}: {kind} along {axis}"


def _other_shape(rng: random.Random, parts: Parts) -> str:
    name = _pick(rng, parts)
    if name is None:
        return "nothing"
    tensor = parts.tensors[name]
    makers: tuple[Callable[[], Any], ...] = (
        lambda: tensor.reshape(-1),
        lambda: tensor.T,
        lambda: tensor[None],
        lambda: tensor[..., None],
        lambda: tensor.reshape(-1)[:1].reshape(()) if tensor.size else tensor,
        lambda: tensor[..., 0] if tensor.ndim and tensor.shape[-1] else tensor,
        lambda: np.zeros((0, *tensor.shape[1:]), tensor.dtype),
    )
    parts.tensors[name] = np.ascontiguousarray(rng.choice(makers)())
    return f"{name} of shape {parts.tensors[name].shape}"


def _hollow_shape(rng: random.Random, parts: Parts) -> str:
    """Claim a shape of which the file holds no byte."""
    name, shape = (
        _pick(rng, parts),
        rng.choice(([0, 10**12], [10**12, 0], [0], [0, 3, 10**9], [2**60], [-1], [1, 1, 1])),
    )
    if name is None:
        return "nothing"
    if 0 in shape:
        parts.tensors[name] = np.zeros(0, parts.tensors[name].dtype)
    parts.entries[name] = {"shape": shape}
    return f"{name} said to be of shape {shape}"


def _other_entry(rng: random.Random, parts: Parts) -> str:
    name = _pick(rng, parts)
    key, value = (
        rng.choice(("dtype", "shape", "data_offsets", "x")),
        rng.choice((*_JSON, "F32", "I8", [0, 8], [8, 0], ["a", "b"])),
    )
    if name is not None:
        parts.entries[name] = {key: value}
    return f"{name}: {key} said to be {str(value)[:60]!r}"


def _removed(rng: random.Random, parts: Parts) -> str:
    name = _pick(rng, parts)
    if name is not None:
        del parts.tensors[name]
    return f"without {name}"


def _as_json(rng: random.Random, parts: Parts) -> str:
    """Put a plain value where an array belongs, the array's own or another."""
    name = _pick(rng, parts)
    if name is None:
        return "nothing"
    tensor = parts.tensors.pop(name)
    values = parts.metadata.get("values")
    if isinstance(values, dict):
        own = tensor.tolist() if tensor.size < 500 else 0
        values[name.removesuffix("#utf32")] = own if rng.random() < 0.5 else copy.deepcopy(rng.choice(_JSON))
    return f"{name} as a plain value"


def _as_array(rng: random.Random, parts: Parts) -> str:
    """Put an array where a plain value belongs."""
    values = parts.metadata.get("values")
    if not isinstance(values, dict) or not values:
        return "nothing"
    name = rng.choice(sorted(values))
    if rng.random() < 0.9:
        del values[name]
    made = (np.array([1.0, 2.0]), np.array(1.0), np.zeros((0, 3)), np.array([1], dtype=np.int32), np.array([[True]]))
    parts.tensors[name + rng.choice(("", "", "#utf32"))] = rng.choice(made)
    return f"{name} as an array"


def _renamed(rng: random.Random, parts: Parts) -> str:
    name = _pick(rng, parts)
    if name is None:
        return "nothing"
    new = rng.choice((name + "#utf32", name.removesuffix("#utf32"), "feature_names_in_", "extra_", *parts.tensors))
    parts.tensors[new] = parts.tensors.pop(name) if rng.random() < 0.7 else parts.tensors[name]
    return f"{name} renamed {new}"


Alteration = Callable[[random.Random, Parts], str]
_ALTERATIONS: tuple[Alteration, ...] = (
    *(
        _replace_value,
        _replace_value,
        _replace_value,
        _replace_value,
        _nudge_number,
        _remove_value,
        _add_value,
        _swap_values,
    ),
    *(_some_entries, _some_entries, _some_entries, _scaled, _other_dtype, _other_rows, _other_rows, _other_shape),
    *(_hollow_shape, _other_entry, _removed, _as_json, _as_array, _renamed),
)
