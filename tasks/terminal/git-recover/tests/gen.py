"""The repository and what it lost, from the seed alone. The same file stands in environment/ and in tests/.

A scene returns what must hold afterwards: `worktree` (all files), `out` (files of /app/out), `refs` (name to object),
`new` (subjects of commits added to main) and `tree` (all files of main's tip).
"""

import os
import random
import subprocess
import sys
from pathlib import Path

RNG = random.Random(int("~{ seed }~"))
WORDS = "amber basin cedar delta ember fjord grove heron inlet jetty knoll ledge marsh north ochre pier quay ridge".split()


def text(title: str, lines: int = 6) -> str:
    return f"# {title}\n" + "".join(" ".join(RNG.choices(WORDS, k=6)) + "\n" for _ in range(lines))


class Repo:
    def __init__(self, path: str) -> None:
        self.path, self.clock, self.files = Path(path), 1704100000, {}
        self.git("init", "-q", "-b", "main", path, at=".")
        with (self.path / ".git/config").open("a") as config:
            config.write("[user]\n\tname = Solver\n\temail = solver@example.org\n[gc]\n\tauto = 0\n")

    def git(self, *words: str, at: str | None = None, feed: str = "") -> str:
        self.clock += 7200
        stamp = f"{self.clock} +0000"
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {"GIT_AUTHOR_NAME": "Ada Abel", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_AUTHOR_DATE": stamp}
        env |= {"GIT_COMMITTER_NAME": "Bo Berg", "GIT_COMMITTER_EMAIL": "bo@example.org", "GIT_COMMITTER_DATE": stamp}
        command = ["git", "-C", at or str(self.path), *words]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True, input=feed).stdout.strip()

    def load(self, edits: list) -> None:
        """Commits of main in one go: (subject, {path: text, or None to delete})."""
        stream = []
        for number, (subject, changes) in enumerate(edits):
            self.clock += 86400
            who = f"Ada Abel <ada@example.org> {self.clock} +0000"
            stream += [f"commit refs/heads/main\nmark :{number + 1}\nauthor {who}\ncommitter {who}"]
            stream += [f"data {len(subject)}\n{subject}"]
            for path, body in changes.items():
                stream.append(f"D {path}" if body is None else f"M 100644 inline {path}\ndata {len(body)}\n{body}")
                self.files[path] = body
            if subject.startswith("Release "):
                stream.append(f"reset refs/tags/{subject.split()[1]}\nfrom :{number + 1}\n")
        self.git("fast-import", "--quiet", feed="\n".join(stream) + "\n")
        self.files = {path: body for path, body in self.files.items() if body is not None}
        self.git("reset", "-q", "--hard", "main")

    def put(self, changes: dict) -> None:
        for path, body in changes.items():
            (self.path / path).parent.mkdir(parents=True, exist_ok=True)
            (self.path / path).write_text(body)

    def commit(self, subject: str, changes: dict, *flags: str) -> str:
        self.put(changes)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject, *flags)
        return self.git("rev-parse", "HEAD")


def noise(count: int) -> list:
    paths = ["README.md", "src/app.txt", "src/lib.txt", "conf/app.ini", "docs/guide.md"]
    edits = [("Start", {path: text(path) for path in paths})]
    return edits + [(f"Edit {p}", {p: text(p)}) for p in RNG.choices(paths, k=count)]


def spread(edits: list, special: list) -> list:
    """The special edits in their order at random places among the others, none before the third or at the end."""
    for place, edit in zip(sorted(RNG.sample(range(3, len(edits)), len(special)), reverse=True), special[::-1], strict=True):
        edits.insert(place, edit)
    return edits


def deleted(repo: Repo) -> dict:
    path, last = "plans/harbour.md", text("harbour, third")
    special = [("Plan", {path: text("harbour, first")}), ("More plan", {path: text("harbour, second")})]
    special += [("Better plan", {path: last}), ("Clean up", {path: None, "src/lib.txt": text("lib")})]
    repo.load(spread(noise(14), special))
    return {"worktree": {**repo.files, path: last}}


def folder(repo: Repo) -> dict:
    names = [f"plans/{n}.md" for n in RNG.sample(WORDS, 5)]
    last = {n: text(n + " final") for n in names}
    special = [("Plans", {n: text(n + " draft") for n in names})]
    for n in names:
        special += [(f"Finish {n}", {n: last[n]})] + ([(f"Drop {n}", {n: None})] if n != names[4] else [])
    repo.load(spread(noise(16), special))
    return {"worktree": {**repo.files, **last}, "tree": {**repo.files, **last}, "new": ["Restore plans"]}


def twice(repo: Repo) -> dict:
    path, first = "plans/harbour.md", text("harbour, the first life")
    special = [("Plan", {path: text("harbour")}), ("Detail", {path: first}), ("Drop it", {path: None})]
    special += [("Plan anew", {path: text("harbour, the second life")}), ("Drop it again", {path: None})]
    repo.load(spread(noise(14), special))
    return {"worktree": repo.files, "out": {"harbour.md": first}}


def renamed(repo: Repo) -> dict:
    body = text("draft", 20)
    names = [f"plans/{n}.md" for n in RNG.sample(WORDS, 3)]
    special = [("Draft", {"draft.md": body})]
    for old, new in zip(["draft.md", *names], names, strict=False):
        body += text(f"then {new}", 1)
        special += [("Move things", {old: None, new: body})]
    body += text("last words", 1)
    special += [("Last words", {names[-1]: body}), ("Clean up", {names[-1]: None, "README.md": text("readme")})]
    repo.load(spread(noise(12), special))
    return {"worktree": {**repo.files, names[-1]: body}, "tree": {**repo.files, names[-1]: body}, "new": ["Restore draft"]}


def tagged(repo: Repo) -> dict:
    path, good = "conf/app.ini", text("app, as released")
    repo.load(spread(noise(12), [("Settings", {path: good}), ("Release v1.0", {"docs/guide.md": text("guide")})] + [
        (f"Change settings {n}", {path: text(f"app {n}")}) for n in range(3)]))
    return {"worktree": {**repo.files, path: good}}


def marked(repo: Repo) -> dict:
    path, good = "conf/app.ini", text("app") + "limit = 80\nburst = 4\n"
    special = [("Limit", {path: text("app") + "limit = 80\nburst = 2\n"}), ("Burst", {path: good})]
    special += [("Loosen", {path: text("app") + "limit = 800\nburst = 4\n"}), ("Rewrite", {path: text("app")})]
    repo.load(spread([e for e in noise(24) if path not in e[1] or e[0] == "Start"], special))
    return {"worktree": {**repo.files, path: good}, "tree": {**repo.files, path: good}, "new": ["Restore the limit"]}


def dated(repo: Repo) -> dict:
    path, versions = "docs/guide.md", [text(f"guide {n}") for n in range(12)]
    repo.load([*noise(2), *((f"Guide {n}", {path: body, "README.md": text("r")}) for n, body in enumerate(versions))])
    return {"worktree": repo.files, "out": {"guide.md": versions[6], "guide-next.md": versions[7]}}


def versions(repo: Repo) -> dict:
    path, bodies = "docs/guide.md", [text(f"guide {n}") for n in range(4)]
    special = [(f"Guide {n}", {path: bodies[k]}) for n, k in enumerate([0, 1, 0, 2, 1, 3])] + [("Drop", {path: None})]
    repo.load(spread([e if e[0] == "Start" else ("Edit", {"README.md": text("r")}) for e in noise(12)], special))
    start = repo.git("show", repo.git("rev-list", "--max-parents=0", "main") + ":" + path) + "\n"
    return {"worktree": repo.files, "out": {f"{n}.md": b for n, b in enumerate([start, *bodies], 1)}}


def reset(repo: Repo) -> dict:
    repo.load(noise(6))
    for n in range(3):
        tip = repo.commit(f"Work {n}", {"src/new.txt": text(f"new {n}")})
    repo.git("reset", "-q", "--hard", "HEAD~3")
    repo.commit("Go on", {"README.md": text("readme")})
    return {"refs": {"refs/heads/rescued": tip}}


def resets(repo: Repo) -> dict:
    repo.load(noise(5))
    wanted, tips = RNG.randrange(1, 4), []
    for n in range(5):
        result = {"results/final.csv": text("final")} if n == wanted else {}
        repo.commit(f"Try {n}", {"src/new.txt": text("new"), **result})
        tips.append(repo.commit(f"Go on with {n}", {"src/new.txt": text("new")}))
        repo.git("reset", "-q", "--hard", "HEAD~2")
    return {"refs": {"refs/heads/rescued": tips[wanted]}}


def fixes(repo: Repo) -> dict:
    repo.load(noise(5))
    kinds = ["fix", "feat", "fix", "chore", "fix", "feat"]
    RNG.shuffle(kinds)
    added, subjects = {}, []
    for n, kind in enumerate(kinds):
        path, body, subject = f"src/{kind}{n}.txt", text(f"{kind} {n}"), f"{kind}: number {n}"
        repo.commit(subject, {path: body})
        if kind == "fix":
            added[path] = body
            subjects.append(subject)
    repo.git("reset", "-q", "--hard", "HEAD~6")
    repo.commit("Go on", {"docs/more.md": (more := text("more"))})
    return {"tree": {**repo.files, "docs/more.md": more, **added}, "new": subjects}


def branch(repo: Repo, names: tuple = ("topic/import",)) -> dict:
    repo.load(noise(5))
    refs = {}
    for name in names:
        repo.git("checkout", "-q", "-b", name)
        for n in range(2):
            refs[f"refs/heads/{name}"] = repo.commit(f"Step {n} of something", {f"src/{name}.txt": text("x")})
        repo.git("checkout", "-q", "main")
        repo.commit("Meanwhile", {"README.md": text("r")})
        repo.git("branch", "-q", "-D", name)
    return {"refs": refs}


def branches(repo: Repo) -> dict:
    return branch(repo, tuple(f"topic/{n}" for n in RNG.sample(WORDS, 4)))


def unseen(repo: Repo) -> dict:
    repo.load(noise(5))
    refs = {}
    for subject in ["Export: draft", "Import: done", "Import: draft"]:
        tip = "main"
        for n in range(3):
            tree = repo.git("rev-parse", "main" + "^" * n + "^{tree}")
            tip = repo.git("commit-tree", tree, "-p", tip, "-m", subject if n == 2 else f"Part {n}")
        refs[subject] = tip
    return {"refs": {"refs/heads/import": refs["Import: done"]}}


def stash(repo: Repo, untracked: bool = False) -> dict:
    repo.load(noise(6))
    kept = {}
    for name in RNG.sample(["importer", "exporter", "printer"], 3):
        kept[name] = {"src/app.txt": text(f"app with {name}"), "docs/guide.md": text(f"guide of {name}")}
        loose = {"todo.txt": text(f"todo of {name}")} if untracked else {}
        repo.put({**kept[name], **loose})
        repo.git("stash", "push", "-q", *(["-u"] if untracked else []), "-m", f"half an {name}")
        kept[name] |= loose
    repo.git("stash", "clear")
    found = kept["importer"]
    if untracked:
        return {"worktree": repo.files, "out": {"todo.txt": found["todo.txt"], "app.txt": found["src/app.txt"]}}
    return {"worktree": {**repo.files, **found}}


def loose_stash(repo: Repo) -> dict:
    return stash(repo, untracked=True)


def popped(repo: Repo) -> dict:
    repo.load(noise(6))
    body = text("app, half done")
    repo.put({"src/app.txt": body})
    repo.git("stash", "push", "-q", "-m", "half done")
    repo.git("stash", "drop", "-q")
    return {"worktree": {**repo.files, "src/app.txt": body}}


def staged(repo: Repo) -> dict:
    repo.load(noise(6))
    bodies = [text("report") + f"ticket {n}\n" for n in (4710, 4711, 47110)]
    for body in bodies:
        repo.put({"report.md": body})
        repo.git("add", "report.md")
    repo.git("reset", "-q", "--hard")
    return {"worktree": repo.files, "out": {"report.md": bodies[1]}}


def amended(repo: Repo) -> dict:
    repo.load(noise(6))
    data, more = text("data"), text("more data")
    repo.commit("Add the data", {"data/one.txt": data, "data/two.txt": more, "README.md": (readme := text("r"))})
    repo.git("rm", "-q", "data/two.txt")
    repo.commit("Add the data", {"data/one.txt": (edited := text("data, edited"))}, "--amend")
    repo.commit("Go on", {"src/lib.txt": (lib := text("lib"))})
    tree = {**repo.files, "README.md": readme, "src/lib.txt": lib, "data/one.txt": edited, "data/two.txt": more}
    return {"tree": tree, "new": ["Restore two"]}


def squashed(repo: Repo) -> dict:
    repo.load(noise(5))
    for n in range(4):
        tip = repo.commit(f"Step {n}", {"src/steps.txt": text(f"step {n}")})
        if n == 2:
            repo.git("tag", "-a", "-m", "the second release", "v2.0")
            tag = repo.git("rev-parse", "v2.0")
    repo.git("reset", "-q", "--soft", "HEAD~4")
    repo.commit("All steps", {})
    repo.commit("Go on", {"README.md": text("r")})
    repo.git("tag", "-d", "v2.0")
    return {"refs": {"refs/heads/detailed": tip, "refs/tags/v2.0": tag}}


def write(path: str) -> dict:
    """Create the repository; return what must hold once it is repaired, with `main`, the tip as it was left."""
    repo = Repo(path)
    wanted = globals()["~{ scene }~"](repo)
    return {**wanted, "main": repo.git("rev-parse", "main")}


if __name__ == "__main__":
    write(sys.argv[1])
