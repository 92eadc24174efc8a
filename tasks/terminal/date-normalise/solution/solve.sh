cat > /tmp/dates.py <<'PY'
import datetime, re
FORMS = ~{ forms | map("replace", "dmy", "%d/%m/%Y") | map("replace", "mdy", "%m/%d/%Y") | map("replace", "dot", "%d.%m.%Y") | map("replace", "short", "%d-%m-%y") | map("replace", "compact", "%Y%m%d") | map("replace", "month", "%d %B %Y") | map("replace", "abbr", "%b %d, %Y") | map("replace", "week", "%G-W%V-%u") | map("replace", "ordinal", "%Y-%j") | map("replace", "iso", "%Y-%m-%d") | map("replace", "numeric", "%Y-%m-%d %H:%M:%S %z") | map("replace", "mail", "%a, %d %b %Y %H:%M:%S %z") | map("replace", "zulu", "%Y-%m-%dT%H:%M:%S%z") | list }~
def parse(text):
~% if "epoch" in forms %~    if re.fullmatch(r"@\d+", text):
        return datetime.datetime(1970, 1, 1~{ ", tzinfo=datetime.timezone.utc" if kind == "utc" else "" }~) + datetime.timedelta(seconds=int(text[1:]))
~% endif %~    for form in FORMS:
        try:
            d = datetime.datetime.strptime(text, form)
        except ValueError:
            continue
~% if "ordinal" in forms or "week" in forms %~        if form in ("%Y-%j", "%G-W%V-%u") and d.strftime(form) != text:
            continue
~% endif %~~% if "short" in forms %~        if form.endswith("%y") and d.year >= 2050:
            d = d.replace(year=d.year - 100)
~% endif %~        return d
PY

cat > /tmp/convert.py <<'PY'
~% set shown = {"iso": 'f"{d:%Y-%m-%d}"', "week": 'f"{d:%G-W%V-%u}"', "ordinal": 'f"{d:%Y-%j}"', "weekday": 'f"{d:%a %Y-%m-%d}"', "long": 'f"{d.day} {d:%B %Y}"', "zulu": 'f"{d.astimezone(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"', "none": "d"}[out] %~import calendar, collections, datetime, re, sys
sys.path.insert(0, "/tmp")
from dates import parse
~% if kind == "text" %~PATTERN = re.compile(r"(?<![\w./-])(?:\d+/\d+/\d{4}|\d+\.\d+\.\d{4}|\d+-\d+-\d\d|\d{8}|\d+ [A-Z][a-z]+ \d{4}|[A-Z][a-z]{2} \d+, \d{4}|\d{4}-W\d\d-\d|\d{4}-\d{3})(?![\w/-])")
def iso(match):
    d = parse(match[0])
    return ~{ shown }~ if d else match[0]
for line in open("notes.txt"):
    print(PATTERN.sub(iso, line), end="")
~% else %~rows = [line.rstrip("\n").split(";") for line in open("dates.csv")][1:]
~% if kind == "column" %~for name, text in rows:
    d = parse(text)
    print(name, ~{ shown }~ if d else "invalid", sep=";")
~% elif kind == "due" %~for name, text in rows:
    if d := parse(text):
        month = d.year * 12 + d.month - 1 + ~{ months }~
        d = d.replace(day=1, year=month // 12, month=month % 12 + 1).replace(day=min(d.day, calendar.monthrange(month // 12, month % 12 + 1)[1]))
        print(name, ~{ shown }~, sep=";")
~% elif kind in ["diff", "workdays"] %~for name, *texts in rows:
    first, last = map(parse, texts)
    if first is None or last is None:
        print(name, "invalid", sep=";")
    else:
        print(name, ~{ "(last - first).days" if kind == "diff" else "sum((first + datetime.timedelta(n)).weekday() < 5 for n in range((last - first).days))" }~, sep=";")
~% elif kind == "bucket" %~found = [d for _, text in rows if (d := parse(text))]
counts = collections.Counter(~{ {"month": 'f"{d:%Y-%m}"', "quarter": 'f"{d.year}-Q{(d.month + 2) // 3}"', "week": 'f"{d:%G-W%V}"', "weekday": 'f"{d:%a}"'}[bucket] }~ for d in found)
for row in sorted(counts.items(), key=lambda row: (~{ "-row[1], " if order == "count" else "" }~row[0]))~{ "" if order == "count" else "[0:]" }~:
    print(*row, sep=";")
~% else %~table = sorted((name, d) for name, text in rows if (d := parse(text)))
table.sort(key=lambda row: row[1]~{ ", reverse=True" if order == "desc" else "" }~)
for name, d in table:
    print(name, ~{ shown }~, sep=";")
~% endif %~~% endif %~PY

~% if kind == "text" %~python3 /tmp/convert.py > out.txt
~% else %~{ echo '~{ {"column": "id;date", "sorted": "id;date", "utc": "id;time", "due": "id;due", "diff": "id;days", "workdays": "id;workdays", "bucket": bucket ~ ";count"}[kind] }~'; python3 /tmp/convert.py; } > out.csv
~% endif %~~% if rejects %~tail -n +2 dates.csv | PYTHONPATH=/tmp python3 -c 'import sys, dates; [print(line, end="") for line in sys.stdin if not dates.parse(line.rstrip("\n").split(";")[1])]' > rejects.csv
~% endif %~