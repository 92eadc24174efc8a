jq -cR 'fromjson? | select(type == "object" and has("id") and has("ts") and has("type"))' events.jsonl > /tmp/whole.jsonl

jq -cs '~{ {"none": "", "first": "reduce (reverse | .[]) as $e ({}; .[$e.id] = $e) | ", "last": "reduce .[] as $e ({}; .[$e.id] = $e) | "}[dup] }~.[]~{ " | select(.ok)" if ok else "" }~~{ ' | select(.type != "%s")' % ignore if ignore else "" }~~{ {"none": "", "skip": " | select(.user != null)", "name": ' | .user = (.user // "anonymous")'}[anon] }~' /tmp/whole.jsonl > /tmp/events.jsonl

~% if report == "types" %~jq -rs 'group_by(.type) | map([.[0].type, length, (~{ {"sum": "map(.ms) | add", "max": "map(.ms) | max", "users": "map(.user) | unique | length"}[measure] }~)])
~% elif report == "users" %~jq -rs 'group_by(.user) | map([.[0].user, length, (map(.ts) | min, max)])
~% elif report == "daily" %~jq -rs 'group_by(.ts[:10]) | map([.[0].ts[:10], length, (map(.user) | unique | length)])
~% elif report == "slow" %~jq -rs 'group_by(.type) | map((map(.ms) | sort) as $ms | [.[0].type, length, $ms[(length * 50 / 100 | ceil) - 1], $ms[(length * ~{ rank }~ / 100 | ceil) - 1]])
~% elif report == "sessions" %~jq -rs 'group_by(.user) | map([.[0].user] + (map(.ts | fromdate) | sort
    | reduce .[] as $t ({runs: []}; if .last and $t - .last <= ~{ gap }~ * 60 then .runs[-1] += 1 else .runs += [1] end | .last = $t)
    | .runs | [length, max]))
~% else %~jq -rs '~{ steps | tojson }~ as $steps | group_by(.user) | map(sort_by(.ts)
    | reduce .[] as $e ({i: 0, ts: ""}; if $e.type == $steps[.i] and $e.ts > .ts then {i: (.i + 1), ts: $e.ts} else . end) | .i)
    | . as $reached | [range(~{ steps | length }~) as $n | [$steps[$n], ($reached | map(select(. > $n)) | length)]]
~% endif %~  ~{ "" if report == "funnel" else "| sort_by(-.[1], .[0]) " if order == "count" else "| sort_by(.[0]) " }~| .[] | @tsv' /tmp/events.jsonl > /tmp/table.tsv

~% if bad %~printf 'skipped\t%d\n' $(($(wc -l < events.jsonl) - $(wc -l < /tmp/whole.jsonl))) >> /tmp/table.tsv

~% endif %~~% set header = {"types": "type events " ~ {"sum": "ms_sum", "max": "ms_max", "users": "users"}[measure], "users": "user events first last", "daily": "day events users", "slow": "type events p50 p" ~ rank, "sessions": "user sessions longest", "funnel": "step users"}[report] %~{ echo '~{ header | replace(" ", "\t") }~'; cat /tmp/table.tsv; } ~{ {"tsv": "", "csv": "| tr '\\t' , ", "txt": "| sed 's/\\t/ | /g' "}[format] }~> report.~{ format }~
