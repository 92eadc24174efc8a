~% if unit == "files" %~cd tree && find . -type f ! -empty -print0 | LC_ALL=C sort -z | xargs -0 sha256sum > /tmp/sums.txt; cd ..

~% if action == "report" %~awk '{ sum = $1; paths[sum] = paths[sum] (n[sum]++ ? " = " : "") substr($0, 69) } END { for (sum in n) if (n[sum] > 1) print paths[sum] }' /tmp/sums.txt > /tmp/groups.txt

LC_ALL=C sort /tmp/groups.txt > copies.txt
~% elif action == "delete" %~awk 'seen[$1]++ { print substr($0, 69) }' /tmp/sums.txt > deleted.txt

cd tree && xargs -d '\n' rm -- < ../deleted.txt; cd ..
~% else %~awk '{ sum = $1; path = "tree/" substr($0, 69) } sum in first { print first[sum] "\t" path; next } { first[sum] = path }' /tmp/sums.txt > /tmp/links.tsv

while IFS=$'\t' read -r first copy; do ln -f "$first" "$copy"; done < /tmp/links.tsv

wc -l < /tmp/links.tsv > linked.txt
~% endif %~~% elif unit == "runs" %~awk '{ key = ~{ "substr($0, 10)" if stamp else "$0" }~~{ "; key = tolower(key)" if "case" in norm else "" }~
  if (NR > 1 && key == last) { count++ } else { if (NR > 1) print count "\t" first; first = $0; count = 1 }
  last = key } END { print count "\t" first }' notes.txt > /tmp/runs.tsv

awk -F'\t' '{ print $2~{ ' ($1 > 1 ? " (x" $1 ")" : "")' if show == "count" else "" }~ }' /tmp/runs.tsv > out.txt
~% else %~~% if unit == "records" %~awk -v RS= '{ gsub(/\n/, "\001"); print }' in/1.txt > /tmp/units.txt
~% else %~cat in/*.txt > /tmp/units.txt

~% endif %~awk -F';' -v OFS='\t' '{
  key = ~{ "$" ~ columns | join(' ";" $') if unit == "fields" else "$0" }~
~% for rule in norm %~  ~{ {"case": "key = tolower(key)", "punct": "gsub(/[.,;:!?]/, \"\", key)", "digits": "gsub(/[0-9]+/, \"#\", key)",
    "space": "gsub(/ +/, \" \", key); " ~ ("gsub(/ ?\\001 ?/, \"\\001\", key); " if unit == "records" else "gsub(/ ?; ?/, \";\", key); " if unit == "fields" else "") ~ "gsub(/^ | $/, \"\", key)"}[rule] }~
~% endfor %~  n[key]++
  if (~{ {"first": "!(key in pos)", "last": "1", "longest": "!(key in pos) || length($0) > length(text[key])", "value": "!(key in pos) || $4 + 0 > best[key]"}[keep] }~) { pos[key] = NR; text[key] = $0~{ "; best[key] = $4 + 0" if keep == "value" else "" }~ }
} END { for (key in pos) ~{ {"all": "", "once": "if (n[key] == 1) ", "repeated": "if (n[key] > 1) "}[only] }~print pos[key], n[key], text[key] }' /tmp/units.txt > /tmp/kept.tsv

LC_ALL=C sort ~{ {"input": "-k1,1n", "sorted": "-t$'\\t' -k3", "count": "-k2,2nr -k1,1n"}[order] }~ /tmp/kept.tsv | cut -f~{ "2-" if show == "count" else "3-" }~ > /tmp/chosen.txt

~% if unit == "records" %~sed '$!s/$/\x01/' /tmp/chosen.txt | tr '\001' '\n' > out.txt
~% else %~cp /tmp/chosen.txt out.txt
~% endif %~
~% if removed %~awk -F'\t' 'NR == FNR { kept[$1]; next } !(FNR in kept)' /tmp/kept.tsv /tmp/units.txt~{ " | sed '$!s/$/\\x01/' | tr '\\001' '\\n'" if unit == "records" else "" }~ > removed.txt
~% endif %~~% endif %~