"""Merges the steps that the layers were written from, and compares."""

import json
import pathlib
import re
import sys

import gen


def merged():
    final, origin = {}, {}
    for layer, steps in gen.build()[1]:
        for key, what, value in steps:
            if what == "unset":
                final.pop(key, None)
                continue
            final[key] = f"{final[key]},{value}" if what == "add" and key in final else value
            origin[key] = layer.split("/")[-1]
    for _ in range(4):
        final = {key: re.sub(r"\$\{(.*?)\}", lambda m: final[m[1]], value) for key, value in final.items()}
    return dict(sorted(final.items())), origin


def typed(value):
    return {"true": True, "false": False}.get(value, int(value) if value.isdecimal() else value) if ~{ typed }~ else value


def produced(name):
    path = pathlib.Path("/app", name)
    if not path.is_file():
        sys.exit(f"{path} is missing")
    return path.read_bytes().decode("utf-8", "replace")


def compare(name, found, wanted):
    if found != wanted:
        sys.exit(f"/app/{name} differs\n--- expected\n{wanted}\n--- found\n{found[:4000]}")


final, origin = merged()
sections = {}
for key, value in final.items():
    sections.setdefault(key.split(".")[0], {})[key.split(".")[1]] = value
~% if out == "json" %~tree = {section: {key: typed(value) for key, value in settings.items()} for section, settings in sections.items()}
try:
    found = json.dumps(json.loads(produced("merged.json")), indent=1, sort_keys=True, ensure_ascii=False)
except ValueError as error:
    sys.exit(f"/app/merged.json is not JSON: {error}")
compare("merged.json", found, json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False))
~% elif out == "ini" %~parts = [f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items()) for section, settings in sections.items()]
compare("merged.ini", produced("merged.ini"), "\n".join(parts))
~% elif out == "env" %~compare("merged.env", produced("merged.env"), "".join(f"APP_{key.replace('.', '__').upper()}={value}\n" for key, value in final.items()))
~% else %~compare("merged.conf", produced("merged.conf"), "".join(f"{key}={value}\n" for key, value in final.items()))
~% endif %~~% if origins %~compare("origins.txt", produced("origins.txt"), "".join(f"{key}\t{origin[key]}\n" for key in final))
~% endif %~print("as expected")
