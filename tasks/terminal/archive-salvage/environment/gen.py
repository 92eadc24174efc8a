"""The backup and what is left of it, from the seed alone. The same file stands in environment/ and in tests/."""

import base64
import bz2
import gzip
import hashlib
import io
import json
import lzma
import random
import sys
import tarfile
import zipfile
from pathlib import Path

RNG = random.Random(int("~{ seed }~"))
SPEC = json.loads("""~{ {'archives': archives, 'stems': stems, 'naming': naming, 'split': split, 'spread': spread, 'damaged': damaged, 'lost': lost, 'cut': cut, 'top': top, 'singles': singles} | tojson }~""")
SUFFIX = {"tar": "tar", "zip": "zip", "gz": "gz", "bz2": "bz2", "xz": "xz", "b64": "b64"}


def backup() -> dict[str, bytes]:
    """The files as they were, by path."""
    files = {"data/0-first.csv": b"id,n\n1,2\n"}
    words = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew", "two words"]
    for number, word in enumerate(words):
        folder, kind = RNG.choice([("data", "csv"), ("notes/old", "txt"), ("img", "bin")])
        kind = "csv" if number % 3 == 0 else kind
        files[f"{folder}/{word}.{kind}"] = RNG.randbytes(RNG.randrange(200, 1500)) if kind == "bin" else "".join(
            f"{n},{RNG.randrange(10**6)}\n" for n in range(RNG.randint(10, 80))).encode()
    return dict(sorted(files.items()))


def container(kind: str, members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
            for name, body in members.items():
                file.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), body, zipfile.ZIP_DEFLATED)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w") as file:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(body), 1704067200
            file.addfile(info, io.BytesIO(body))
    return out.getvalue()


def encoded(kind: str, body: bytes) -> bytes:
    pack = {"gz": lambda b: gzip.compress(b, mtime=0), "bz2": bz2.compress, "xz": lzma.compress, "b64": base64.encodebytes}
    return pack[kind](body)


def archive(layers: list[str], members: dict[str, bytes], stem: str) -> tuple[str, bytes]:
    """The archive's file name and content; `layers` from the inside to the outside."""
    body, suffixes = container(layers[0], members), [layers[0]]
    if SPEC["cut"]:
        body = body[: body.index(f"/{sorted(members)[-5].split('/')[-1]}".encode()) + 700]
    for layer in layers[1:]:
        if layer in ("tar", "zip"):
            body, suffixes = container(layer, {named("inner", suffixes): body}), [layer]
        else:
            body, suffixes = encoded(layer, body), [*suffixes, layer]
    return named(stem, suffixes), body


def named(stem: str, suffixes: list[str]) -> str:
    if SPEC["naming"] == "none":
        return stem
    if SPEC["naming"] == "wrong":
        return stem + "." + RNG.choice([s for s in ("zip", "tar", "gz", "txt", "xz") if s != suffixes[-1]])
    return ".".join([stem, *suffixes])


def damage(body: bytes) -> bytes:
    place = RNG.randrange(len(body))
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]


def leftovers() -> tuple[dict[str, bytes], dict[str, str]]:
    """The files of the inbox by name, and for each path of the manifest the first archive with an intact copy."""
    files, inbox, source = backup(), {}, {}
    paths = [path for path in files if path != "data/0-first.csv"]
    RNG.shuffle(paths)
    inbox["MANIFEST"] = "".join(f"{hashlib.sha256(b).hexdigest()}  {p}\n" for p, b in files.items()).encode()
    if SPEC["singles"]:
        for number, path in enumerate([*paths, "data/0-first.csv"]):
            out = io.BytesIO()
            with gzip.GzipFile(path.split("/")[-1], "wb", fileobj=out, mtime=0) as file:
                file.write(damage(files[path]) if number < SPEC["lost"] else files[path])
            inbox[f"{RNG.randbytes(4).hex()}.bin"] = out.getvalue()
            source |= {path: "singles"} if number >= SPEC["lost"] else {}
        return inbox, source
    lost, rest = paths[: SPEC["lost"]], paths[SPEC["lost"] :]
    for number, (layers, stem) in enumerate(zip(SPEC["archives"], SPEC["stems"], strict=True)):
        bad = lost + rest[number * SPEC["damaged"] : (number + 1) * SPEC["damaged"]]
        mine = {p: damage(b) if p in bad else b for p, b in files.items()}
        if SPEC["spread"]:
            place = {p: n % len(SPEC["stems"]) for n, p in enumerate(files)}
            mine = {p: b for p, b in mine.items() if place[p] == number}
        members = {f"{SPEC['top']}/{p}" if SPEC["top"] else p: b for p, b in mine.items()}
        members[f"{SPEC['top']}/junk.tmp" if SPEC["top"] else "data/junk.csv"] = b"not in the manifest\n"
        name, body = archive(layers, dict(sorted(members.items())), stem)
        for path, content in mine.items():
            gone = SPEC["cut"] and sorted(files)[-5:].count(path)
            if content == files[path] and not gone:
                source.setdefault(path, stem)
        inbox |= parts(name, stem, body) if SPEC["split"] else {name: body}
    return inbox, source


def parts(name: str, stem: str, body: bytes) -> dict[str, bytes]:
    size = len(body) // 11 + 1
    pieces = [body[place : place + size] for place in range(0, len(body), size)]
    sums = [hashlib.sha256(piece).hexdigest() for piece in pieces]
    kind = SPEC["split"]
    if kind == "numbered":
        return {f"{stem}.part{n}": piece for n, piece in enumerate(pieces, 1)}
    if kind == "spare":
        found = {f"{stem}.{n:03d}": piece for n, piece in enumerate(pieces, 1)}
        listing = "".join(f"{s}  {n}\n" for s, n in zip(sums, found, strict=True))
        for place, part in enumerate(sorted(found)[1::3]):
            good, other = found[part], damage(found[part])
            found[part], found[part + ".bak"] = (good, other) if place % 2 else (other, good)
        return {**found, f"{stem}.parts": listing.encode()}
    names = [f"{RNG.randbytes(5).hex()}.part" for _ in pieces]
    order = names if kind == "listed" else sums
    return {**dict(zip(names, pieces, strict=True)), f"{stem}.order": "".join(line + "\n" for line in order).encode()}


if __name__ == "__main__":
    for name, body in leftovers()[0].items():
        Path(sys.argv[1], name).write_bytes(body)
