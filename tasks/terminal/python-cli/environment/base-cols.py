import sys

names = sys.argv[2].split(",")
rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
for name in names:
    if name not in rows[0]:
        print("error: no column", name, file=sys.stderr)
        sys.exit(2)
places = [rows[0].index(name) for name in names]
for row in rows:
    print("\t".join(row[place] for place in places))
