"""Try the repaired Makefile on fresh copies of the project; what the README promises is worked out here.

Make runs as nobody, so that a recipe can read neither what is expected nor these tests.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, "/tests")
import gen

COMPLAINTS = []


def as_nobody(command: list, feed: str, folder: str, limit_s: float) -> tuple[int, str, str]:
    """(exit code, output, error output) of the command run as nobody; it and its children are dead afterwards.

    Files instead of pipes: nobody may open /dev/stdin again, and no surviving child can keep the reading waiting.
    """
    stdin = Path(HOME, "stdin")
    stdin.write_text(feed)
    stdin.chmod(0o644)
    nobody = {"user": 65534, "group": 65534, "extra_groups": [], "start_new_session": True}
    with stdin.open("rb") as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=source, stdout=out, stderr=err, cwd=folder, **nobody)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            sys.exit(f"{command[-3:]} did not come to an end within {limit_s} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(1_000_000).decode(errors="replace"))
    return code, *texts


class Copy:
    """A copy of the project with the repaired Makefile and some files changed or (None) left out."""

    count = 0

    def __init__(self, promise: str, changes: dict | None = None) -> None:
        Copy.count += 1
        self.promise, self.root = promise, Path(HOME, f"copy{Copy.count}")
        for name, text in {**gen.PROJECTS[gen.PROJECT], **(changes or {}), "Makefile": MAKEFILE}.items():
            if text is not None:
                self.put(name, text)
        self.age()

    def put(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o666)
        for folder in (path.parent, self.root):
            folder.chmod(0o777)

    def age(self) -> None:
        """Everything becomes an hour older, in the same order."""
        for path in [self.root, *self.root.rglob("*")]:
            stat = path.lstat()
            past = 3600 * 10**9
            os.utime(path, ns=(stat.st_atime_ns - past, stat.st_mtime_ns - past), follow_symlinks=False)

    def make(self, *words: str, fails: bool = False) -> None:
        code, out, err = as_nobody(["make", *words], "", str(self.root), 8)
        if (code != 0) != fails:
            told = "succeeded" if fails else f"exited with {code}: {(out + err)[-400:]}"
            self.wrong(f"`make {' '.join(words)}` {told}")

    def wrong(self, text: str) -> None:
        COMPLAINTS.append(f"{self.promise}: {text}")

    def expect(self, files: dict) -> None:
        """These files have this content; None means that there is no such file or folder."""
        for name, text in files.items():
            path = self.root / name
            found = path.read_text(errors="replace") if path.is_file() else "a folder" if path.is_dir() else None
            if found != text:
                self.wrong(f"{name}: expected {text!r}, found {found!r}")

    def remade(self, *words: str) -> set:
        """The files that `make` writes now, seen by their times."""
        self.make(*words)
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file() and p.stat().st_mtime > time.time() - 1800}

    def touch(self, name: str, want: set, text: str | None = None) -> None:
        """After a change of `name`, exactly `want` is remade."""
        self.age()
        self.put(name, (self.root / name).read_text() if text is None else text)
        found = self.remade() - {name}
        if found != want:
            self.wrong(f"after a change of {name}: expected {sorted(want)} to be remade, found {sorted(found)}")

    def idle(self) -> None:
        self.age()
        if found := self.remade():
            self.wrong(f"a second make remade {sorted(found)}")


def pages(sources: dict, folder: str = "build", head: str = gen.SITE["head.inc"]) -> dict:
    found = {}
    for name, text in sources.items():
        lines = [f"<h1>{line[2:]}</h1>" if line.startswith("# ") else line for line in text.splitlines()]
        found[f"{folder}/{name}.html"] = head + "".join(line + "\n" for line in lines)
    return {**found, f"{folder}/index.html": "".join(f"{name}.html\n" for name in sorted(sources))}


def site() -> None:
    sources = {name[4:-3]: text for name, text in gen.SITE.items() if name.startswith("src/")}
    copy = Copy("plain make")
    copy.make()
    copy.expect(pages(sources))
    copy.idle()
    every = set(pages(sources))
    copy.touch("src/news.md", {"build/news.html", "build/index.html"}, "# Changed\n")
    copy.touch("head.inc", every, "<title>Other</title>\n")
    copy.expect(pages({**sources, "news": "# Changed\n"}, head="<title>Other</title>\n"))
    copy.touch("tools/render.sh", every)
    copy.touch("src/zoo.md", {"build/zoo.html", "build/index.html"}, "# Zoo\n")
    copy.make("clean")
    copy.expect({"build": None})
    copy = Copy("other sources, -j4", {"src/about.md": None, "src/blog.md": "# Blog\n", "src/faq.md": "text\n"})
    copy.make("-j4")
    copy.expect({**pages({"blog": "# Blog\n", "faq": "text\n", "news": sources["news"], "start": sources["start"]}), "build/about.html": None})
    copy = Copy("BUILD=", {"clean": "a file\n", "all": "a file\n"})
    copy.make("BUILD=www")
    copy.expect({**pages(sources, "www"), "build": None})
    copy.make()
    copy.expect(pages(sources))
    copy.make("clean", "BUILD=www")
    copy.make("all")
    copy.expect({"www": None})
    copy.make("clean")
    copy.expect({"build": None})
    copy = Copy("a page that fails", {"src/news.md": "TODO\n"})
    copy.make(fails=True)
    copy.expect({"build/news.html": None, "build/index.html": None})


def sums_of(data: dict, unit: str = "kg", folder: str = "out") -> dict:
    found, total = {}, 0
    for region in sorted({name.split("/")[1] for name in data}):
        rows = "".join(text for name, text in data.items() if name.startswith(f"data/{region}/")).split()
        value = sum(int(row.split(",")[-1]) for row in rows)
        found[f"{folder}/{region}.sum"], total = f"{value} {unit}\n", total + value
    return {**found, f"{folder}/total.txt": f"{total} {unit}\n"}


def sums() -> None:
    data = {name: text for name, text in gen.SUMS.items() if name.startswith("data/")}
    more = {**data, "data/east/q.csv": "a,50\n", "data/east/r.csv": "a,6\nb,7\n"}
    copy = Copy("plain make")
    copy.make("clean")
    copy.make()
    copy.expect(sums_of(data))
    copy.idle()
    copy.touch("data/south/c.csv", {"out/south.sum", "out/total.txt"}, "z,1\n")
    copy.touch("data/north/new.csv", {"out/north.sum", "out/total.txt"}, "n,5\n")
    data |= {"data/south/c.csv": "z,1\n", "data/north/new.csv": "n,5\n"}
    copy.expect(sums_of(data))
    copy.touch("config.mk", set(sums_of(data)), "UNIT = t\n")
    copy.expect(sums_of(data, "t"))
    copy.touch("tools/sum.sh", set(sums_of(data)))
    copy.make("clean")
    copy.expect({"out": None})
    copy = Copy("another region, UNIT=", more)
    copy.make("UNIT=lb")
    copy.expect(sums_of(more, "lb"))
    copy = Copy("install", more)
    copy.make("install", f"DESTDIR={copy.root}/stage", "PREFIX=/opt")
    copy.expect({**sums_of(more), **sums_of(more, folder="stage/opt/share/sums"), "stage/usr": None})
    copy.make("install", f"DESTDIR={copy.root}/other")
    copy.expect({**sums_of(more, folder="other/usr/local/share/sums"), "opt": None})


def script(files: dict) -> str:
    parts = "".join(files[name] for name in sorted(files) if name.startswith("parts/"))
    return f"#!/bin/sh\nversion='{files['VERSION'].strip()}'\n{parts}"


def tool() -> None:
    files, words = dict(gen.TOOL), "apple\nfig\npear\n"
    copy = Copy("plain make")
    copy.make()
    copy.expect({"bin/tool": script(files), "lib/words.txt": words})
    if not os.access(copy.root / "bin/tool", os.X_OK):
        copy.wrong("bin/tool is not executable")
    copy.idle()
    copy.touch("VERSION", {"bin/tool"}, "2.0\n")
    copy.touch("parts/20-version.sh", {"bin/tool"})
    copy.touch("parts/15-more.sh", {"bin/tool"}, ": more\n")
    copy.expect({"bin/tool": script({**files, "VERSION": "2.0", "parts/15-more.sh": ": more\n"})})
    copy.touch("lib/raw.txt", {"lib/words.txt"}, "kiwi\n")
    copy.expect({"lib/words.txt": "kiwi\n"})
    copy.make("check")
    copy.make("dist")
    copy.make("clean")
    copy.expect({"bin": None, "dist": None, "lib/words.txt": None, "lib/raw.txt": "kiwi\n"})
    copy = Copy("check", {"check": "a file\n"})
    copy.make("check")
    copy.expect({"bin/tool": script(files)})
    copy = Copy("check with another version", {"parts/20-version.sh": "echo 0.1\nexit\n", "check": "a file\n"})
    copy.make("check", fails=True)
    copy = Copy("dist", {"VERSION": "3.1\n", "dist": None, "clean": "a file\n"})
    copy.make("dist")
    with contextlib.suppress(OSError, tarfile.TarError), tarfile.open(copy.root / "dist/tool-3.1.tar") as file:
        found = {info.name: file.extractfile(info).read().decode(errors="replace") for info in file if info.isfile()}
        if found != {"tool-3.1/tool": script({**files, "VERSION": "3.1"}), "tool-3.1/words.txt": words}:
            copy.wrong(f"the archive holds {sorted(found)}, or other content than it should")
        copy.make("clean")
        copy.expect({"bin": None, "dist": None, "lib/words.txt": None})
        copy = None
    if copy:
        copy.wrong("dist/tool-3.1.tar cannot be read")


os.chmod("/tests", 0o700)
os.chmod("/logs/verifier", 0o700)
with tempfile.TemporaryDirectory() as HOME:
    os.chmod(HOME, 0o755)
    try:
        shutil.copyfile("/app/project/Makefile", f"{HOME}/Makefile", follow_symlinks=False)
        MAKEFILE = Path(HOME, "Makefile").read_text(errors="replace") if not Path(HOME, "Makefile").is_symlink() else ""
    except OSError as error:
        sys.exit(str(error))
    globals()[gen.PROJECT]()
print("\n".join(COMPLAINTS[:12]) or "all promises kept")
sys.exit(bool(COMPLAINTS))
