import sys
from collections import Counter

counts = Counter()
for name in sys.argv[1:] or ["/dev/stdin"]:
    with open(name) as file:
        counts.update(line.rstrip("\n") for line in file if line != "\n")
for line, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
    print(count, line, sep="\t")
