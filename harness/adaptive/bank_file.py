"""A bank as one `.npz` file: float64 arrays and one JSON document, no pickle, lossless, the same bytes for
the same bank.

Members: `alpha`, `beta`, `prior_mean`, `prior_covariance`, `calibrated`, `item_covariance` and `past_covariance`
(absent if None), the same of each alternative with `alternative_0_` and on before the name, and `document`, the UTF-8
bytes of {"format": 2, "item_ids": […], "provenance": {…}, "alternatives": [{"weight", "provenance"}, …], "report": …,
"backtest": …, "digest": …}, and
`cost_usd` and `duration_s` where known. Reading derives the digest again.
"""

from __future__ import annotations

import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.adaptive.bank import Alternative, Bank
from harness.adaptive.errors import BankFileError
from harness.adaptive.fit_report import FitReport
from harness.adaptive.plan import Backtest
from harness.adaptive.provenance import Provenance

FORMAT = 2
_ARRAYS = ("alpha", "beta", "prior_mean", "prior_covariance", "calibrated")
_OPTIONAL = ("item_covariance", "past_covariance")
_AMOUNTS = ("cost_usd", "duration_s")
_DAMAGE = (zipfile.BadZipFile, zlib.error, tokenize.TokenError, RuntimeError)  # zipfile's: unknown method, encrypted


def save_bank(bank: Bank, path: str | os.PathLike[str]) -> None:
    """Write `bank` to exactly `path`, whole or not at all; an existing file is replaced. Raises OSError if it
    cannot.
    """
    target = Path(path)
    members = _arrays(bank, "")
    members.update({name: amounts for name in _AMOUNTS if (amounts := getattr(bank, name)) is not None})
    for number, other in enumerate(bank.alternatives):
        members.update(_arrays(other.bank, f"alternative_{number}_"))
    document = {
        "format": FORMAT,
        "item_ids": list(bank.item_ids),
        "provenance": bank.provenance.as_dict(),
        "alternatives": [
            {"weight": other.weight, "provenance": other.bank.provenance.as_dict()} for other in bank.alternatives
        ],
        "report": None if bank.report is None else bank.report.as_dict(),
        "backtest": None if bank.backtest is None else bank.backtest.as_dict(),
        "digest": bank.digest,
    }
    members["document"] = np.frombuffer(json.dumps(document, sort_keys=True).encode(), dtype=np.uint8)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            np.savez(stream, **members)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def load_bank(path: str | os.PathLike[str]) -> Bank:
    """The bank that `save_bank` wrote, bit for bit.

    Raises
    ------
    BankFileError
        If the file cannot be read, is no bank, has another format version, or its content does not give the digest
        it states.
    """
    place = os.fspath(path)
    try:
        with np.load(place, allow_pickle=False) as members:
            document = json.loads(bytes(members["document"]).decode())
            arrays = {name: members[name] for name in members.files if name != "document"}
    except OSError as fault:
        raise BankFileError(
            f"cannot be read ({fault.strerror})",
            place=place,
            remedy="Give a file written by `assay calibrate` or save_bank",
        ) from fault
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, *_DAMAGE) as fault:
        raise BankFileError(
            "not a bank file", place=place, remedy="Give a file written by `assay calibrate` or save_bank"
        ) from fault
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BankFileError(
            "another format version",
            place=place,
            remedy=f"This version reads format {FORMAT}; calibrate again",
        )
    try:
        item_ids = tuple(document["item_ids"])
        others = tuple(
            Alternative(other["weight"], _bank(item_ids, other["provenance"], arrays, f"alternative_{number}_"))
            for number, other in enumerate(document["alternatives"])
        )
        bank = replace(
            _bank(item_ids, document["provenance"], arrays, ""),
            alternatives=others,
            cost_usd=arrays.get("cost_usd"),
            duration_s=arrays.get("duration_s"),
            report=None if document.get("report") is None else FitReport.from_dict(document["report"]),
            backtest=None if document.get("backtest") is None else Backtest.from_dict(document["backtest"]),
        )
        stated = document["digest"]
    except (ValueError, KeyError, TypeError) as fault:
        raise BankFileError(f"incomplete ({fault})", place=place, remedy="Calibrate again") from fault
    if bank.digest != stated:
        raise BankFileError(
            "the content does not give the digest it states",
            place=place,
            remedy="The file was altered, or another version wrote it; restore it or calibrate again",
        )
    return bank


def _arrays(bank: Bank, prefix: str) -> dict[str, Any]:
    arrays: dict[str, Any] = {prefix + name: getattr(bank, name) for name in _ARRAYS}
    arrays.update({prefix + name: getattr(bank, name) for name in _OPTIONAL if getattr(bank, name) is not None})
    return arrays


def _bank(item_ids: tuple[str, ...], provenance: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str) -> Bank:
    return Bank(
        item_ids=item_ids,
        provenance=Provenance.from_dict(provenance),
        item_covariance=arrays.get(f"{prefix}item_covariance"),
        past_covariance=arrays.get(f"{prefix}past_covariance"),
        **{name: arrays[prefix + name] for name in _ARRAYS},
    )
