~% set column = {g1: "$2", g2: "$3", "month": "substr($1, 1, 7)"} %~~% set dates = ' -v from=2024-02-10 -v to=2024-03-20' if filter == "dates" else "" %~awk -F, -v OFS='\t'~{ " -v skip=" ~ stv if filter == "status" else " -v keep=" ~ stv if filter == "only" else dates }~ '
  NR > 1~{ {"none": "", "status": " && $6 != skip", "only": " && $6 == keep", "dates": " && $1 >= from && $1 <= to"}[filter] }~~{ " && $5 ~ /^[0-9]+[.][0-9][0-9]$/" if dirty else "" }~ {
~% if fold %~    gsub(/^ +| +$/, "", ~{ column[group[-1]] }~); ~{ column[group[-1]] }~ = tolower(~{ column[group[-1]] }~)
~% endif %~~% if negative %~    if ($6 == "~{ stv }~") $5 = -$5
~% endif %~    printf "%d\t%.0f\t%s\t%s\n", $4, $5 * 100, $3, ~{ column[group[0]] }~~{ ' "\\t" ' ~ column[group[1]] if group | length > 1 else "" }~
  }' ~{ name }~.csv > /tmp/rows.tsv

awk -F'\t' -v OFS='\t' '
  { g = $4~{ " OFS $5" if group | length > 1 else "" }~; rows[g]++ }
~% if "sum_n" in metrics %~  { n[g] += $1 }
~% endif %~~% if "sum_amt" in metrics or "mean_amt" in metrics or "share" in metrics %~  { cents[g] += $2 }
~% endif %~~% if "share" in metrics %~  { all += $2 }
~% endif %~~% if "max_amt" in metrics %~  rows[g] == 1 || $2 > high[g] { high[g] = $2 }
~% endif %~~% if "min_amt" in metrics %~  rows[g] == 1 || $2 < low[g] { low[g] = $2 }
~% endif %~~% if "distinct" in metrics %~  !seen[g, $3]++ { kinds[g]++ }
~% endif %~  function money(cents) { return sprintf("%.2f", cents / 100) }
  END { for (g in rows) ~{ "if (rows[g] >= " ~ having ~ ") " if having else "" }~print g~% for m in metrics %~, ~{ {"count": "rows[g]", "sum_n": "n[g]", "sum_amt": "money(cents[g])", "max_amt": "money(high[g])", "min_amt": "money(low[g])", "mean_amt": "money(int(cents[g] / rows[g]))", "distinct": "kinds[g]", "share": "int(100 * cents[g] / all)"}[m] }~~% endfor %~ }
' /tmp/rows.tsv > /tmp/groups.tsv

~% set k = group | length %~LC_ALL=C sort -t$'\t' ~{ "-k%d,%dnr " % (k + 1, k + 1) if order == "metric" else "" }~-k1,1~{ " -k2,2" if k > 1 else "" }~ /tmp/groups.tsv~{ " | head -n %d" % top if top else "" }~ > /tmp/sorted.tsv

~% if total %~awk -F'\t' -v OFS='\t' '{ ~% for m in metrics %~t~{ loop.index }~ += $~{ loop.index + k }~; ~% endfor %~print }
  END { print "TOTAL"~{ ', ""' if k > 1 else "" }~~% for m in metrics %~, ~{ 'sprintf("%%.2f", t%d)' % loop.index if m == "sum_amt" else "t%d" % loop.index }~~% endfor %~ }' /tmp/sorted.tsv > /tmp/total.tsv
mv /tmp/total.tsv /tmp/sorted.tsv

~% endif %~~% set names = {"count": "rows", "sum_n": n ~ "_sum", "sum_amt": amt ~ "_sum", "max_amt": amt ~ "_max", "min_amt": amt ~ "_min", "mean_amt": amt ~ "_mean", "distinct": g2 ~ "_distinct", "share": "share"} %~{ echo '~{ group | join("\t") }~~% for m in metrics %~~{ "\t" ~ names[m] }~~% endfor %~'; cat /tmp/sorted.tsv; } ~{ {"csv": "| tr '\\t' , ", "tsv": "", "md": "| sed 's/\\t/ | /g; s/^/| /; s/$/ |/; 1{p;s/[a-z0-9_]\\+/---/g}' "}[format] }~> summary.csv
