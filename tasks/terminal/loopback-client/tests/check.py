import json
import sys

import gen

wanted = gen.result()
try:
    with open("/app/result.txt", errors="replace") as file:
        found = file.read()
    good = json.loads(found) == json.loads(wanted) if gen.KIND == "login" else found.rstrip("\n") == wanted.rstrip("\n")
except (OSError, ValueError) as error:
    sys.exit(f"no result: {error!r}")
print("the result is right" if good else f"wanted\n{wanted}found\n{found[:4000]}")
sys.exit(not good)
