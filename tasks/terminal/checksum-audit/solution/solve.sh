set -eu
~%- set sums = algo | upper ~ "SUMS" %~
~%- set names %~~% for s in skip %~ ! -name '~{ s }~'~% endfor %~~% endset %~
~%- if kind in ("audit", "restore") %~
~% if fmt == "gnu" %~
sed -nE 's/^([0-9A-Fa-f]{32,}) [ *]/\L\1\t\E/p' /app/~{ sums }~ > /tmp/listed.tsv
~%- elif fmt == "bsd" %~
sed -nE 's/^[A-Z0-9]+ \((.*)\) = ([0-9A-Fa-f]+)$/\L\2\t\E\1/p' /app/~{ sums }~ > /tmp/listed.tsv
~%- elif fmt == "json" %~
jq -r 'to_entries[] | "\(.value.digest)\t\(.key)"' /app/manifest.json > /tmp/listed.tsv
~%- else %~
cd /app/data && find . -name ~{ sums }~ -printf '%P\n' | while IFS= read -r list; do
  sed -E "s|^([0-9a-f]+)  |\1\t${list%~{ sums }~}|" "$list"
done > /tmp/listed.tsv
~%- endif %~
awk -F '\t' '{last[$2] = $1} END {for (p in last) print last[p] "\t" p}' /tmp/listed.tsv | LC_ALL=C sort > /tmp/want.tsv
~%- endif %~
~% if kind == "audit" %~
cd /app/data && find . -type f~{ " ! -name " ~ sums if fmt == "perdir" else "" }~~{ names }~ -printf '%P\0' | xargs -0 ~{ algo }~sum | sed -E 's/^([0-9a-f]+)  /\1\t/' > /tmp/have.tsv
awk -F '\t' -v OFS='\t' '
  NR == FNR {want[$2] = $1; next}
  {have[$2] = $1; if (!($2 in want)) at[$1] = $2}
  END {
    for (p in want)
      if (!(p in have)) {
        if (~{ moved }~ && want[p] in at) {print "MOVED", p, at[want[p]]; taken[at[want[p]]] = 1} else print "MISSING", p
      } else if (want[p] != have[p]) print "CHANGED", p
      else if (~{ ok }~) print "OK", p
    for (p in have) if (!(p in want) && !(p in taken)) print "EXTRA", p
  }' /tmp/want.tsv /tmp/have.tsv | LC_ALL=C sort -t "$(printf '\t')" -k 2,2 > /tmp/report
cp /tmp/report /app/report.txt
~%- if counts %~
awk -F '\t' '{n[$1]++} END {printf "TOTAL\tCHANGED=%d\tMISSING=%d\tEXTRA=%d~{ "\\tMOVED=%d" if moved else "" }~~{ "\\tOK=%d" if ok else "" }~\n", n["CHANGED"], n["MISSING"], n["EXTRA"]~{ ', n["MOVED"]' if moved else "" }~~{ ', n["OK"]' if ok else "" }~}' /tmp/report >> /app/report.txt
~%- endif %~
~% elif kind == "restore" %~
while IFS="$(printf '\t')" read -r digest path; do
  found=-
  for mirror in $(~{ "grep -v '^-'" if off else "cat" }~ /app/mirrors.txt); do
    if [ "$(cat "/app/mirrors/$mirror/$path" 2>/dev/null | ~{ algo }~sum | cut -d ' ' -f 1)" = "$digest" ]; then found=$mirror; break; fi
  done
  printf '%s\t%s\n' "$path" "$found"
done < /tmp/want.tsv > /tmp/found.tsv
LC_ALL=C sort /tmp/found.tsv > /app/report.txt
~% elif kind == "vote" %~
for mirror in ~{ mirrors | join(" ") }~; do
  (cd /app/mirrors/$mirror && find . -type f~{ names }~ -printf '%P\0' | xargs -0 ~{ algo }~sum | sed -E 's/^([0-9a-f]+)  /\1\t/; s/^/'$mirror'\t/')
done > /tmp/votes.tsv
cat > /tmp/vote.py <<'END'
import collections, os
MIRRORS = ~{ mirrors | tojson }~
held = collections.defaultdict(dict)
for line in open("/tmp/votes.tsv"):
    mirror, *row = line.rstrip("\n").split("\t")
    digest = row[0]
    held[row[1]][mirror] = digest
for path in sorted(held, key=str.encode):
    digest, count = collections.Counter(held[path].values()).most_common(1)[0]
    if not 2 * count > len(MIRRORS):
        print(path, "?", sep="\t")
        continue
    good = next(m for m in MIRRORS if held[path].get(m) == digest)
    if os.path.getsize(f"/app/mirrors/{good}/{path}") <= ~{ min }~:
        continue
    odd = ",".join(sorted(m for m in MIRRORS if held[path].get(m) != digest))
    if odd or ~{ ok }~:
        print(path, odd or "ok", sep="\t")
END
python3 /tmp/vote.py > /app/report.txt
~% elif kind == "manifest" %~
cd /app/data && find . -type f~{ names }~ ! -path '*/~{ prune }~/*'~% if min %~ -size +~{ min - 1 }~c~% endif %~ -printf '%P\n' | LC_ALL=C sort > /tmp/paths
~% if fmt == "csv" %~
cd /app/data && while IFS= read -r path; do
  echo "$path,$(stat -c %s "$path"),$(~{ algo }~sum < "$path" | cut -d ' ' -f 1)"
done < /tmp/paths > /app/report.txt
~%- else %~
cd /app/data && tr '\n' '\0' < /tmp/paths | xargs -0 ~{ algo }~sum ~{ "--tag " if fmt == "bsd" else "" }~> /app/report.txt
~%- endif %~
~%- if counts %~
echo "# $(~{ algo }~sum < /app/report.txt | cut -d ' ' -f 1)" >> /app/report.txt
~%- endif %~
~% else %~
for tree in data~{ " incoming" if scope == "two" else "" }~; do
  cd /app/$tree && find . -type f~{ names }~~{ " -size +0" if min else "" }~ -printf '%P\0' | xargs -0 ~{ algo }~sum | sed -E 's/^([0-9a-f]+)  /\1\t/' | LC_ALL=C sort -t "$(printf '\t')" -k 2,2 > /tmp/$tree.tsv
done
~% if scope == "two" %~
awk -F '\t' 'NR == FNR {if (!($1 in by)) by[$1] = $2; next} $1 in by {print $2 "\t" by[$1]}' /tmp/data.tsv /tmp/incoming.tsv > /app/report.txt
~%- else %~
awk -F '\t' '{by[$1] = by[$1] "\t" $2; n[$1]++} END {for (d in by) if (n[d] > 1) print d "\t" n[d] by[d]}' /tmp/data.tsv | LC_ALL=C sort > /app/report.txt
~%- endif %~
~% endif -%~
