set -eu
~%- if kind == "table" %~
~%- if partial %~
cp -r /app/in /app/out
~%- endif %~
tail -n +2 /app/encodings.csv | while IFS=, read -r path encoding; do
  mkdir -p "$(dirname "/app/out/$path")"
  iconv -f "$encoding" -t UTF-8 "/app/in/$path" | LC_ALL=C sed -z 's/^\xef\xbb\xbf//; s/\r\n/\n/g~{ "; s/\\r/\\n/g" if cr else "" }~' > "/app/out/$path"
done
~%- if final %~

cut -d , -f 1 /app/encodings.csv | tail -n +2 | while IFS= read -r path; do
  if [ -n "$(tail -c 1 "/app/out/$path" | tr -d '\n')" ]; then echo >> "/app/out/$path"; fi
done
~%- endif %~
~%- else %~
cat > /tmp/convert.py <<'END'
import fnmatch, os, re, unicodedata
def paths(top):
    for at, folders, files in os.walk(top):
        for name in files:
            yield os.path.relpath(os.path.join(at, name), top)
def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
report = []
~%- if kind == "detect" %~
MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16le": b"\xff\xfe", "utf-16be": b"\xfe\xff"}
def guess(data):
    for encoding, mark in MARKS.items():
        if data.startswith(mark):
            return encoding, len(mark)
    return unmarked(data), 0
def unmarked(data):
    if b"\0" in data:
        return "binary"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "~{ fallback }~"
    return "utf-8"
for path in paths(b"/app/in"):
    data = open(b"/app/in/" + path, "rb").read()
    encoding, skip = guess(data)
    report.append((path, encoding.encode()))
    if encoding != "binary":
        data = data[skip:].decode(encoding)~{ '.replace("\\r\\n", "\\n")' if lf else "" }~.encode()
    write(b"/app/out/" + path, data)
~%- if report %~
write(b"/app/report.tsv", b"".join(b"\t".join(row) + b"\n" for row in sorted(report)))
~%- endif %~
~%- elif kind == "eol" %~
rules = ~{ rules | tojson }~
for path in paths(b"/app/tree"):
    data = old = open(b"/app/tree/" + path, "rb").read()
    end = next((end for pattern, end in rules.items() if fnmatch.fnmatchcase(os.path.basename(path).decode(), pattern)), "keep")
    if end == "keep" or b"\0" in data:
        continue
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    ~%- if strip %~
    data = re.sub(rb"[ \t]+$", b"", data, flags=re.M)
    ~%- endif %~
    ~%- if final %~
    if data and not data.endswith(b"\n"):
        data += b"\n"
    ~%- endif %~
    data = data.replace(b"\n", {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}[end])
    if data != old:
        write(b"/app/tree/" + path, data)
        report.append(path)
~%- if report %~
write(b"/app/changed.txt", b"".join(path + b"\n" for path in sorted(report)))
~%- endif %~
~%- elif kind == "encode" %~
TARGETS, BAD, CRLF = ~{ targets | tojson }~, "~{ "strict" if bad == "skip" else bad }~", "crlf"
CRLF = True
for path in paths(b"/app/in"):
    encoding, end = TARGETS[path.split(b"/")[0].decode()]
    plain = open(b"/app/in/" + path, "rb").read().decode()
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    shown = plain.replace("\n", "\r\n") if CRLF and end == "crlf" else plain
    try:
        write(b"/app/out/" + path, (mark + shown).encode(encoding, errors=BAD))
    except UnicodeEncodeError:
        missing = "".join(c for c in sorted(set(plain)) if not c.encode(encoding, errors="ignore"))
        report.append(path + b"\t" + missing.encode() + b"\n")
~%- if bad == "skip" %~
write(b"/app/skipped.txt", b"".join(sorted(report)))
~%- endif %~
~%- elif kind == "mojibake" %~
def mended(line):
    text = line.rstrip("\r\n")
    ~{ "while" if twice else "if" }~ not text.isascii():
        try:
            text = text.encode("iso-8859-1").decode("utf-8")
        except ValueError:
            ~{ "break" if twice else "pass" }~
    return text + line[len(line.rstrip("\r\n")):]
for path in paths(b"/app/text"):
    old = open(b"/app/text/" + path, "rb").read().decode()
    lines = re.findall("[^\n]*\n|[^\n]+", old)
    new = list(map(mended, lines))
    write(b"/app/text/" + path, "".join(new).encode())
    if new != lines:
        report.append(path + b"\t%d\n" % sum(a != b for a, b in zip(lines, new)))
~%- if report %~
write(b"/app/mended.tsv", b"".join(sorted(report)))
~%- endif %~
~%- else %~
def final_name(raw):
    try:
        shown = raw.decode()
    except UnicodeDecodeError:
        shown = raw.decode("~{ fallback }~")
    ~%- if nfc %~
    shown = unicodedata.normalize("NFC", shown)
    ~%- endif %~
    ~%- if lower %~
    shown = re.sub("[A-Z]", lambda found: found[0].lower(), shown)
    ~%- endif %~
    return shown.encode()
place = {b"/app/files": b""}
for at, folders, files in os.walk(b"/app/files"):
    for name in sorted(folders + files):
        old = os.path.join(place[at], name)
        new = os.path.join(at, final_name(name))
        if new != os.path.join(at, name):
            while os.path.lexists(new):
                new += b"~"
            os.rename(os.path.join(at, name), new)
            report.append(old + b"\t" + new.removeprefix(b"/app/files/") + b"\n")
            folders[:] = [os.path.basename(new) if folder == name else folder for folder in folders]
        place[new] = old
~%- if report %~
write(b"/app/renamed.tsv", b"".join(sorted(report)))
~%- endif %~
~%- endif %~
END

python3 /tmp/convert.py
~%- endif %~
