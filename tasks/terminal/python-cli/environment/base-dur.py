import re
import sys

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def seconds(text):
    found = re.fullmatch(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text)
    if not text or not found:
        print("error: bad duration:", text, file=sys.stderr)
        sys.exit(2)
    return sum(int(number or 0) * size for number, size in zip(found.groups(), UNITS.values()))


def show(total):
    text = ""
    for unit, size in UNITS.items():
        text += f"{total // size}{unit}" if total >= size else ""
        total %= size
    return text or "0s"


if sys.argv[1] == "add":
    print(show(sum(seconds(text) for text in sys.argv[2:])))
