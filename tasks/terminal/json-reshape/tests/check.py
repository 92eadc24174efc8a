"""Reshapes the pristine documents in plain Python and compares value by value."""

import collections
import json
import pathlib
import sys

import gen


def expected(document, patch):
~% if shape == "invert" %~    groups = collections.defaultdict(set)
    for user in document["users"]:
        for group in user["groups"] if user["active"] or not ~{ active }~ else []:
            groups[group].add(user["name"])
    groups = {group: sorted(names) for group, names in groups.items() if len(names) >= ~{ least }~}
    listed = [{"group": group, "size": len(names), "members": names} for group, names in sorted(groups.items())]
    counts = {group: len(names) for group, names in groups.items()}
    return {"object": groups, "count": counts, "list": sorted(listed, key=lambda entry: -entry["size"])}["~{ out }~"]
~% elif shape == "unnest" %~    rows = []
    for order in document["orders"]:
        for item in order["items"] if order["id"] >= ~{ only }~ else []:
            total = item["qty"] * item["price"] - (item.get("discount", 0) if ~{ discount }~ else 0)
            row = {"order": order["id"], "customer": order["customer"]["name"], "sku": item["sku"], "total": total}
            if "~{ default }~":
                row["country"] = order["customer"].get("country") or "~{ default }~"
            rows.append(row)
    if "~{ out }~" != "rows":
        groups = collections.defaultdict(list)
        for row in rows:
            groups[row["~{ out }~"]].append(row["total"])
        rows = [{"~{ out }~": name, "items": len(totals), "total": sum(totals)} for name, totals in groups.items()]
        rows.sort(key=lambda row: row["~{ out }~"])
    else:
        rows.sort(key=lambda row: (row["order"], row["sku"]))
    return sorted(rows, key=lambda row: -row["total"]) if "~{ order }~" == "total" else rows
~% elif shape == "tree" %~    ids = {node["id"] for node in document}
    below = collections.defaultdict(list)
    for node in sorted(document, key=lambda node: (-node["size"] if "~{ order }~" == "size" else 0, node["name"])):
        orphan = node["parent"] is not None and node["parent"] not in ids
        below[None if orphan and "~{ orphans }~" == "root" else node["parent"]].append(node)

    def grown(node):
        children = [grown(child) for child in below[node["id"]]]
        tree = {"name": node["name"], "children": children}
        if ~{ total }~:
            tree["total"] = node["size"] + sum(child["total"] for child in children)
        if ~{ leafless }~ and not children:
            del tree["children"]
        return tree

    return [grown(node) for node in below[None]]
~% elif shape == "flatten" %~    flat = {}

    def walk(value, way):
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, [*way, name])
        elif isinstance(value, list):
            for place, inner in enumerate(value, ~{ base }~):
                walk(inner, [*way, str(place)])
        elif value is not None or "~{ nulls }~" == "keep":
            key = "~{ sep }~".join(way)
            flat[key.upper() if ~{ upper }~ else key] = value

    walk(document["~{ below }~"] if "~{ below }~" else document, [])
    kinds = {bool: "boolean", int: "number", str: "string", type(None): "null"}
    listed = [{"key": key, "value": value, "type": kinds[type(value)]} for key, value in sorted(flat.items())]
    text = {key: value if isinstance(value, str) else json.dumps(value) for key, value in flat.items()}
    return {"object": flat, "text": text, "list": listed}["~{ out }~"]
~% else %~    items = {item["id"]: item for item in document["items"]}
    for change in patch["items"]:
        if change["id"] in items or ~{ add }~:
            old = items.get(change["id"], {})
            items[change["id"]] = {**old, **change}
            if ~{ union }~:
                items[change["id"]]["tags"] = sorted({*old.get("tags", []), *change.get("tags", [])})
    removed = [items.pop(name) for name in patch["remove"] if name in items]
    kept = [{key: value for key, value in item.items() if value is not None} for item in items.values()]
    kept = [item for item in kept if item.get("stock", -1) >= ~{ least }~ or not ~{ least }~]
    kept.sort(key=lambda item: (-item.get("price", 0) if "~{ order }~" == "price" else 0, item["id"]))
    return {"items": kept, "removed": len(removed)} if ~{ audit }~ else kept


~% endif %~def canonical(value):
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


path = pathlib.Path("/app/out.json")
if not path.is_file():
    sys.exit(f"{path} is missing")
try:
    found = canonical(json.loads(path.read_bytes().decode("utf-8")))
except ValueError as error:
    sys.exit(f"{path} is not JSON in UTF-8: {error}")
documents = gen.build()
wanted = canonical(expected(documents["in.json"], documents.get("patch.json")))
if found != wanted:
    sys.exit(f"{path} differs\n--- expected\n{wanted[:4000]}\n--- found\n{found[:4000]}")
print("as expected")
