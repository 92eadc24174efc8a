"""The history, from the variant's keys alone. The same file stands in environment/ and in tests/.

Events (`key=value`) fall on random commits in the given order; all other changes are harmless.
"""

import random
import subprocess
import sys

RNG = random.Random(int("~{ seed }~"))
LENGTH = int("~{ length }~")
BRANCHES = int("~{ branches }~")
BROKEN = int("~{ broken }~")
WHERE = "~{ where | default('main') }~"
EVENTS = "~{ events | join(' ') }~".split()

AUTHORS = ["Ada Abel", "Bo Berg", "Cleo Corti", "Dan Dahl", "Eva Engel"]
WORK = ["Tidy up", "Reword", "Polish", "Extend", "Rework", "Adjust", "Touch", "Simplify", "Prepare"]
PARTS = ["notes", "wording", "comments", "layout", "defaults", "word list", "header"]
BODY = {
    "fee": ("5 + 2 * int(w) if int(w) <= 10 else 5 + 3 * int(w)", "5 + 2 * int(w) if int(w) < 10 else 5 + 3 * int(w)"),
    "label": ("'[' + w.strip().title() + ']'", "'[' + w.title() + ']'"),
    "split": ("len([p for p in w.split(',') if p])", "len(w.split(','))"),
    "late": ("max(0, int(w) - 5)", "int(w) - 5"),
}


def program(state: dict) -> str:
    parts = [f'"""Small sums, revision {state["revision"]}."""\nimport sys\n']
    if state["broken"]:
        parts.append("def unfinished(:\n")
    for name, (good, bad) in BODY.items():
        parts.append(f"\ndef {name}(w):\n    return {bad if state[name] == 'bad' else good}\n")
    parts.append("\nprint(globals()[sys.argv[1]](sys.argv[2]))\n")
    return "\n".join(parts)


def tree(state: dict) -> dict:
    secret = 'KEY = "tk-4711-x"\n'
    files = {f"notes/{n}.md": f"# {n}\n{text}\n" for n, text in state["notes"].items()}
    for name in ("deploy.cfg", "backup.cfg"):
        files[name] = f"# {name}\nregion = north\n" + (secret if state["token"] == name else "")
    files["settings.ini"] = f"[net]\ntimeout = {state['timeout']}\nretries = {state['retries']}\ncolour = {state['colour']}\n"
    files["words.txt"] = "".join(f"word{i:03d}\n" for i in range(state["words"]))
    files["tool.py"] = program(state)
    return files


def change(state: dict, step: int) -> None:
    """One harmless change."""
    state["revision"] += RNG.random() < 0.4
    state["timeout"] += RNG.random() < 0.2
    state["colour"] = RNG.choice(["red", "blue", "green"])
    state["words"] += RNG.random() < 0.3
    state["notes"] = {**state["notes"], RNG.choice(["plan", "team", "log"]): f"as of step {step}"}


def apply(state: dict, event: str) -> None:
    key, value = event.split("=")
    state[key] = int(value) if value.isdigit() else value


def history() -> list[dict]:
    """Commits with `parents` (indices), `state`, `events` (indices of EVENTS); the last one is the tip of main."""
    first = LENGTH // 2 if WHERE != "main" else 6
    spots = range(first + 8 if WHERE != "main" else first, LENGTH - 2)
    rest = len(EVENTS) - (WHERE != "main")
    places = sorted(RNG.sample(range(spots.start // 2, spots.stop // 2), rest))
    at = {2 * place: index + (WHERE != "main") for index, place in enumerate(places)}
    forks = [first - 8 * (BRANCHES // 2 - b) for b in range(BRANCHES)]
    near = {p + d for p in [*at, first + 5] for d in (-1, 0)}
    broken = set(RNG.sample([p for p in range(6, LENGTH - 2) if p not in near], BROKEN))
    state = {"revision": 1, "notes": {"plan": "start"}, "timeout": 20, "retries": 3, "colour": "red", "words": 20}
    state |= {"token": "", "broken": False, **dict.fromkeys(BODY, "good")}
    commits, tip, sides = [], None, {}
    for step in range(LENGTH):
        change(state, step)
        state["broken"] = step in broken
        commit = {"parents": [] if tip is None else [tip], "state": dict(state), "events": []}
        fork = step - 5
        if fork in forks:
            state["notes"] = {**state["notes"], f"side{fork}": "merged"}
            commit["parents"].append(sides[fork])
            if WHERE != "main" and fork == first:
                apply(state, EVENTS[0])
                commit["events"] = [0] if WHERE == "merge" else []
                commit["merges"] = 0
        if step in at:
            apply(state, EVENTS[at[step]])
            commit["events"].append(at[step])
        commit["state"] = dict(state)
        commits.append(commit)
        tip = len(commits) - 1
        if step in forks:
            branch, sides[step] = {**state, "broken": False}, tip
            for part in range(4):
                branch["notes"] = {**branch["notes"], f"side{step}": f"part {part}"}
                hit = WHERE == "side" and step == first and part == 2
                if hit:
                    apply(branch, EVENTS[0])
                commits.append({"parents": [sides[step]], "state": dict(branch), "events": [0] if hit else []})
                sides[step] = len(commits) - 1
    for number, commit in enumerate(commits):
        commit["author"] = RNG.choice(AUTHORS)
        commit["time"] = 1700000000 + 41000 * number
        merge = len(commit["parents"]) == 2
        commit["subject"] = "Merge a side branch" if merge else f"{RNG.choice(WORK)} {RNG.choice(PARTS)} ({number})"
    return commits


def write(path: str) -> list[str]:
    """Create the repository and return the hashes in the order of `history()`."""
    stream = []
    for number, c in enumerate(history()):
        who = f"{c['author']} <{c['author'].split()[0].lower()}@example.org> {c['time']} +0000"
        stream.append(f"commit refs/heads/main\nmark :{number + 1}\nauthor {who}\ncommitter {who}")
        stream.append(f"data {len(c['subject'])}\n{c['subject']}")
        stream += [f"{'merge' if i else 'from'} :{p + 1}" for i, p in enumerate(c["parents"])]
        stream.append("deleteall")
        for name, text in tree(c["state"]).items():
            stream.append(f"M 100644 inline {name}\ndata {len(text.encode())}\n{text}")
    stream.append("reset refs/tags/v1.0\nfrom :3\n")
    git = ["git", "-C", path]
    subprocess.run(["git", "init", "-q", "-b", "main", path], check=True)
    feed = "\n".join(stream).encode()
    subprocess.run([*git, "fast-import", "--quiet", "--force", "--export-marks=.git/m"], input=feed, check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "main"], check=True)
    with open(f"{path}/.git/config", "a") as config:
        config.write("[user]\n\tname = Solver\n\temail = solver@example.org\n[gc]\n\tauto = 0\n")
    with open(f"{path}/.git/m") as file:
        marks = dict(line.split() for line in file)
    subprocess.run(["rm", f"{path}/.git/m"], check=True)
    return [marks[f":{number + 1}"] for number in range(len(marks))]


if __name__ == "__main__":
    write(sys.argv[1])
