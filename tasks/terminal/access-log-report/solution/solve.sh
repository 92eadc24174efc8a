~% set key = {"paths": "path", "broken": "path", "rates": "path", "statuses": "m[5]", "clients": "m[1]", "peaks": "m[1]", "hours": "hour", "agents": "agent"}[report] %~~% set last = {"paths": "m[6]", "clients": "m[6]", "statuses": "m[1]", "agents": "m[1]", "hours": "(m[5] >= 500)", "rates": "(m[5] >= 500)", "broken": "m[7]", "peaks": "clock"}[report] %~~% set conditions = (['m[3] == "%s"' % method] if method else []) + (["tolower(m[8]) !~ /bot|spider/"] if bots else []) + (["m[4] !~ /^[^?]*[.](css|js|png)([?]|$)/"] if static else []) %~~% set conditions = conditions + (['substr(m[2], 13, 2) >= "%s" && substr(m[2], 13, 2) <= "%s"' % (window[0], window[1])] if window else []) + (['m[5] == "404"'] if report == "broken" else []) %~zcat -f logs/access.log~{ "*" if files > 1 else "" }~ > /tmp/all.log

awk -v OFS='\t' 'match($0, /^([^ ]+) [^ ]+ [^ ]+ \[([^]]+)\] "([A-Z]+) ([^ "]+) HTTP\/[0-9]+[.][0-9]+" ([0-9]+) ([0-9]+|-) "([^"]*)" "([^"]*)"$/, m) {
~% if report in ["paths", "broken", "rates"] %~    path = m[4]~{ '; sub(/[?].*/, "", path)' if strip else "" }~~{ '; if (path != "/") sub(/[/]$/, "", path)' if slash else "" }~
~% elif report == "hours" %~    hour = substr(m[2], 8, 4) "-" (substr(m[2], 4, 3) == "Apr" ? "04" : "05") "-" substr(m[2], 1, 2) " " substr(m[2], 13, 2)
~% elif report == "agents" %~    agent = m[8]; sub(/[/].*/, "", agent)
~% elif report == "peaks" %~    split(m[2], t, "[/: ]"); clock = mktime(t[3] (t[2] == "Apr" ? " 04 " : " 05 ") t[1] " " t[4] " " t[5] " " t[6], 1)
~% endif %~    ~{ "if (" ~ conditions | join(" && ") ~ ") " if conditions else "" }~print ~{ key }~, ~{ last }~~{ "; next }\n  { print > \"/tmp/skipped.log\"" if skipped else "" }~ }' /tmp/all.log > /tmp/requests.tsv

~% if report == "peaks" %~sort -t$'\t' -k1,1 -k2,2n /tmp/requests.tsv | awk -F'\t' -v OFS='\t' '{ key = $1; hits[key]++; at[key, hits[key]] = $2; if (!low[key]) low[key] = 1
    while (!($2 - at[key, low[key]] < 60)) low[key]++
    if (hits[key] - low[key] + 1 > peak[key]) peak[key] = hits[key] - low[key] + 1 }
  END { for (key in hits) print key, hits[key], peak[key] }' > /tmp/table.tsv
~% elif report in ["statuses", "agents", "broken"] %~awk -F'\t' -v OFS='\t' '{ key = $1; hits[key]++ } $2 != "-" && !seen[$1, $2]++ { different[key]++ }
  END { for (key in hits) print key, hits[key], different[key] + 0 }' /tmp/requests.tsv > /tmp/table.tsv
~% else %~awk -F'\t' -v OFS='\t' '{ key = $1; hits[key]++; sum[key] += $2 }
  END { for (key in hits) print key, hits[key], ~{ "int(100 * sum[key] / hits[key])" if report == "rates" else "sum[key] + 0" }~ }' /tmp/requests.tsv > /tmp/table.tsv

~% endif %~LC_ALL=C sort -t$'\t' ~{ "-k2,2nr " if order == "hits" else "" }~-k1,1 /tmp/table.tsv~{ " | head -n %d" % top if top else "" }~ > /tmp/sorted.tsv

~% set header = "" if format == "plain" else "echo '" ~ column ~ "\thits\t" ~ third ~ "'; " %~{ ~{ header }~cat /tmp/sorted.tsv; } ~{ {"tsv": "", "csv": "| tr '\\t' , ", "plain": "| tr '\\t' ' ' "}[format] }~> report.txt

~% if skipped %~echo "skipped $(wc -l < /tmp/skipped.log)" >> report.txt
~% endif %~