"""Seeded numbers that belong to names: the same on every machine, process, library version and order of
calls.

A pseudo-random stream gives its n-th number to whoever asks n-th; here each name has its own. Names are
hashed by BLAKE2b to 64 bits; numeric keys are combined by the splitmix64 finaliser (Steele, Lea & Flood 2014,
"Fast splittable pseudorandom number generators", OOPSLA), which is a bijection of 64 bits and vectorises.
Uniforms are the top 53 bits, in (0, 1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from harness.adaptive.arrays import FloatArray, KeyArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def name_keys(names: Iterable[str]) -> KeyArray:
    """One 64-bit key per name, (n,)."""
    digests = b"".join(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def mix(left: KeyArray, right: KeyArray) -> KeyArray:
    """A key for each pair, by broadcasting; `mix(a, b)` and `mix(b, a)` differ."""
    with np.errstate(over="ignore"):
        z = _splitmix(left + _GAMMA) ^ right
        return _splitmix(z + _GAMMA)


def seeded_keys(seed: int, purpose: str, names: Iterable[str]) -> KeyArray:
    """One key per name for a seed and a purpose, (n,); two purposes never share numbers.

    `seed` may be any integer.
    """
    salt = name_keys([f"{purpose}\x00{seed}"])
    return mix(salt, name_keys(names))


def uniforms(keys: KeyArray) -> FloatArray:
    """A number in (0, 1) per key, the same shape; never 0 or 1, so that quantile functions stay finite."""
    return ((keys >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _splitmix(z: KeyArray) -> KeyArray:
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))
