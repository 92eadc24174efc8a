cat > /tmp/read.py <<'PY'
import datetime, re
SKEW = ~{ skew }~
LETTERS = {"D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}
def ms(text, form):
    return round(datetime.datetime.strptime(text, form).timestamp() * 1000)
for line in open("logs/api.log"):
    if m := re.match(r"(\S+)Z (\w+) \[req=(\w+)\] (.*)", line):
        print(ms(m[1] + "+0000", "%Y-%m-%dT%H:%M:%S.%f%z"), "api", m[2].upper(), m[3], m[4], sep="\t")
~% if "worker" in services %~for line in open("logs/worker.log"):
    if m := re.match(r"(\S+ \S+ [+-]\d{4}) \| (\w+) \| (\w+) \| (.*)", line):
        print(ms(m[1], "%d/%m/%Y %H:%M:%S,%f %z"), "worker", m[2].upper(), m[3], m[4], sep="\t")
~% endif %~~% if "db" in services %~for line in open("logs/db.log"):
    if m := re.match(r"(\d+) ([A-Z]) (\w+) (.*)", line):
        print(int(m[1])~{ " - SKEW" if skew else "" }~, "db", LETTERS[m[2]], m[3], m[4], sep="\t")
~% endif %~PY
python3 /tmp/read.py | LC_ALL=C sort -t$'\t' -k1,1n -k2,2 > /tmp/entries.tsv

cat > /tmp/report.py <<'PY'
import datetime
LEVELS = ~{ levels }~
entries = [line.rstrip("\n").split("\t") for line in open("/tmp/entries.tsv")]
for e in entries:
    e[0] = int(e[0])
errors = [e for e in entries if e[2] in LEVELS]
def utc(ms):
    when = datetime.datetime.fromtimestamp(ms // 1000, datetime.timezone.utc)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
~% if report == "merge" %~errors = sorted(errors)
for e in errors:
    print(utc(e[0]), e[1], e[3], e[4], sep="\t")
~% elif report == "incidents" %~GAP = ~{ gap }~ * 1000
incidents = []
for e in errors:
    if incidents and e[0] - incidents[-1][-1][0] <= GAP:
        incidents[-1].append(e)
    else:
        incidents.append([e])
for group in incidents:
    print(utc(group[0][0]), utc(group[-1][0]), len(group), "+".join(sorted({e[1] for e in group})), sep="\t")
~% elif report == "causes" %~begin, cause = {}, {}
for e in entries:
    begin.setdefault(e[3], e[0])
for e in errors:
    cause.setdefault(e[3], e)
for e in sorted(cause.values(), key=lambda e: (e[0], e[3])):
    print(utc(e[0]), e[3], e[1], e[0] - begin[e[3]], sep="\t")
~% elif report == "deploys" %~WINDOW = ~{ window }~ * 1000
deploys = [line.split() for line in open("deploys.txt")]
starts = [round(datetime.datetime.fromisoformat(d[0].replace("Z", "+00:00")).timestamp() * 1000) for d in deploys]
for start, until, (_, version) in zip(starts, starts[1:] + [10**15], deploys):
    hit = [e for e in errors if start <= e[0] < min(start + WINDOW, until)]
    print(version, len(hit), hit[0][0] - start if hit else "-", "+".join(sorted({e[1] for e in hit})) or "-", sep="\t")
~% else %~paths, first, table = {}, {}, {}
for e in errors:
    first.setdefault(e[3], e[0])
    path = paths.setdefault(e[3], [])
    if e[1] not in path:
        path.append(e[1])
for request, path in paths.items():
    table.setdefault(">".join(path), []).append(first[request])
for path, times in sorted(table.items(), key=lambda row: (-len(row[1]), row[0])):
    print(path, len(times), utc(min(times)), sep="\t")
~% endif %~PY
python3 /tmp/report.py > /tmp/timeline.tsv

~% set header = {"merge": "time,service,request,message", "incidents": "start,end,errors,services", "causes": "time,request,service,delay", "deploys": "version,errors,first,services", "cascades": "path,requests,first"}[report] %~~{ "cp /tmp/timeline.tsv timeline.tsv" if format == "tsv" else "{ echo " ~ header ~ "; tr '\\t' , < /tmp/timeline.tsv; } > timeline.csv" }~
