import json
import os
import sys

path, command, *rest = sys.argv[1:]
data = {}
if os.path.exists(path):
    with open(path) as file:
        data = json.load(file)
if command == "list" and not rest:
    for key in sorted(data):
        print(f"{key}={data[key]}")
elif command == "get" and len(rest) == 1:
    if rest[0] not in data:
        sys.exit(1)
    print(data[rest[0]])
elif command in ("set", "del") and len(rest) == (2 if command == "set" else 1):
    if command == "set":
        data[rest[0]] = rest[1]
    elif data.pop(rest[0], None) is None:
        sys.exit(1)
    with open(path, "w") as file:
        file.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
else:
    sys.exit(2)
