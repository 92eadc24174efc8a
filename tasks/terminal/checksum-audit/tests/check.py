import difflib
import os
import sys

import gen

wanted = gen.world_and_report()[1]
try:
    if os.path.islink("/app/report.txt"):
        sys.exit("report.txt is a link")
    with open("/app/report.txt", errors="surrogateescape") as file:
        found = file.read()
except OSError as error:
    sys.exit(f"no report: {error}")
if found.rstrip("\n") != wanted.rstrip("\n"):
    lines = difflib.unified_diff(wanted.splitlines(), found.splitlines(), "wanted", "found", lineterm="", n=0)
    print("\n".join(list(lines)[:60]).encode("utf-8", "backslashreplace").decode())
    sys.exit(1)
print("the report is right")
