import os
import sys

import gen

before, wanted = gen.worlds()
tops = {
    "table": [b"out", b"in"],
    "detect": [b"out", b"in"],
    "eol": [b"tree"],
    "encode": [b"out", b"in"],
    "mojibake": [b"text"],
    "names": [b"files"],
}[gen.KIND]
found = {}
for top in tops:
    for at, folders, files in os.walk(b"/app/" + top):
        for name in files:
            place = os.path.join(at, name)
            with open(place, "rb") as file:
                found[place[5:]] = file.read()
wrong = []
for path in sorted(found.keys() | {p for p in wanted if b"/" in p}):
    if found.get(path) != wanted.get(path):
        wrong.append(f"{path}: found {found.get(path)}, wanted {wanted.get(path)}"[:500])
for name in [p for p in wanted if b"/" not in p and p not in before]:  # reports
    try:
        with open(b"/app/" + name, "rb") as file:
            text = file.read()
    except OSError as error:
        text = str(error).encode()
    if text.rstrip(b"\n") != wanted[name].rstrip(b"\n"):
        wrong.append(f"{name}: wanted\n{wanted[name]}\nfound\n{text}")
print("\n".join(wrong[:30]) or "all as wanted")
sys.exit(bool(wrong))
