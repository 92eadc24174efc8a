"""Compare what was brought together with the backup itself, which the seed gives again."""

import sys
import tarfile
import zipfile
from pathlib import Path

sys.path.insert(0, "/tests")
import gen

OUT, ONLY, REPORT = "~{ out }~", "~{ only }~", "~{ report }~"
MAGIC = {"zip": b"PK", "tar.gz": b"\x1f\x8b", "tar.bz2": b"BZh", "tar.xz": b"\xfd7zXZ"}


def found() -> dict[str, bytes]:
    """Regular files by path; any other kind of member but folders counts as a wrong file."""
    path = Path("/app/out/salvaged" if OUT == "dir" else f"/app/out/salvaged.{OUT}")
    if OUT == "dir":
        return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_symlink() or not p.is_dir()}
    if not path.read_bytes().startswith(MAGIC[OUT]):
        sys.exit(f"{path} is not a {OUT} archive")
    if OUT == "zip":
        with zipfile.ZipFile(path) as file:
            return {info.filename: file.read(info) for info in file.infolist() if not info.is_dir()}
    with tarfile.open(path) as file:
        return {i.name: file.extractfile(i).read() if i.isfile() else b"\0not a file" for i in file if not i.isdir()}


files = gen.backup()
gen.RNG.seed(int("~{ seed }~"))
_, source = gen.leftovers()
wanted = [path for path in files if path.endswith(ONLY)]
want = {path: files[path] for path in wanted if path in source}
try:
    have = {name.removeprefix("./"): body for name, body in found().items()}
    lines = Path("/app/out/report.txt").read_text(errors="replace").splitlines() if REPORT else []
except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
    sys.exit(f"cannot read the result: {error!r}")
complaints = [f"{path} is missing" for path in want if path not in have]
complaints += [f"{path} should not be there" for path in have if path not in want]
complaints += [f"{path} has other content" for path in want if path in have and want[path] != have[path]]
rows = [f"{p}: {source.get(p, '-')}" if REPORT == "source" else f"{'ok' if p in source else 'lost'} {p}" for p in wanted]
if REPORT and lines != sorted(rows, key=str.encode):
    complaints.append(f"report: expected {sorted(rows)}, found {lines}")
print("\n".join(complaints) or f"{len(want)} files as expected")
sys.exit(bool(complaints))
