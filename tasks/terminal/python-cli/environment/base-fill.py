import re
import sys

values = {}
with open(sys.argv[2]) as file:
    for line in file.read().split("\n"):
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            values[name.strip()] = value
with open(sys.argv[1]) as file:
    sys.stdout.write(re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", lambda found: values.get(found[1], ""), file.read()))
