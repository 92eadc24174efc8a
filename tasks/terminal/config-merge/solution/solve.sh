~% set kinds = layers | join(" ") %~~{ "ls conf.d | grep '[.]ini$' | sort -n | sed 's,^,conf.d/,'" if confd else "printf '%s\\n' " ~ layers | join(" ") }~ > /tmp/layers.txt

cat > /tmp/read.py <<'PY'
import json, re, tomllib
PROFILE = "~{ profile }~"
def unquote(value):
    return value[1:value.index('"', 1)] if value.startswith('"') else value
def read(name):
    if name.endswith(".ini"):
        for line in map(str.strip, open(name)):
            if m := re.fullmatch(r"\[(\w+)@?(\w*)\]", line):
                section, profile = m.groups()
            elif line and line[0] not in "#;"~{ ' and profile in ("", PROFILE)' if profile else "" }~:
                key, op, value = re.fullmatch(r"(\w+)\s*(\+?=)\s*(.*)", line).groups()
~% if inline %~                if not value.startswith('"'):
                    value = re.sub(r"\s+[#;].*", "", value)
~% endif %~                yield f"{section}.{key}"~{ ".lower()" if caps else "" }~, op, unquote(value)
~% if ".env" in kinds %~    elif name.endswith(".env"):
        for m in re.finditer(r"^APP_(\w+?)__(\w+)=(.*)", open(name).read(), re.M):
            yield f"{m[1]}.{m[2]}".lower(), "=", unquote(m[3])
~% endif %~~% if ".args" in kinds %~    elif name.endswith(".args"):
        for line in map(str.strip, open(name)):
            key, _, value = line[2:].partition("=")
            yield (key, "=", value) if "=" in line else (key[3:], "=", "false")
~% endif %~~% if ".toml" in kinds or ".json" in kinds %~    else:
        tree = ~{ {0: "json.load(open(name))", 1: "tomllib.load(open(name, \"rb\"))", 2: "tomllib.load(open(name, \"rb\")) if name.endswith(\".toml\") else json.load(open(name))"}[(".toml" in kinds) * (1 + (".json" in kinds))] }~
        for section, settings in tree.items():
            for key, value in settings.items():
                text = value if isinstance(value, str) else ",".join(value) if isinstance(value, list) else "!unset" if value is None else json.dumps(value)
                yield f"{section}.{key}", "=", text
~% endif %~layers = open("/tmp/layers.txt").read().split()
for name in layers:
    for key, op, value in read(name):
        print(key, op, value, name.split("/")[-1], sep="\t")
PY
python3 /tmp/read.py > /tmp/steps.tsv

cat > /tmp/merge.py <<'PY'
import json, re
final, origin = {}, {}
for line in open("/tmp/steps.tsv"):
    key, op, value, name = line.rstrip("\n").split("\t")
    if value == "!unset":
        final.pop(key, None)
    else:
        final[key] = ~{ 'final[key] + "," + value if op == "+=" and key in final else value' if append else "value" }~
        origin[key] = name
~% if refer %~REFERENCE = re.compile(r"\$\{([\w.]+)\}")
for key, value in final.items():
    while REFERENCE.search(value):
        value = REFERENCE.sub(lambda m: final[m[1]], value, count=1)
    final[key] = value
~% endif %~items = [(key, value) for key, value in sorted(final.items())]
~% if out == "flat" %~for key, value in items:
    print(f"{key}={value}")
~% elif out == "env" %~for key, value in items:
    print(f"APP_{key.upper().replace('.', '__')}={value}")
~% elif out == "ini" %~last = None
for key, value in items:
    section, name = key.split(".")
    if section != last:
        print(("\n" if last else "") + f"[{section}]")
    print(f"{name} = {value}")
    last = section
~% else %~tree = {}
for key, value in items:
    section, name = key.split(".")
    tree.setdefault(section, {})[name] = ~{ 'json.loads(value) if re.fullmatch("[0-9]+|true|false", value) else value' if typed else "value" }~
print(json.dumps(tree, indent=2, ensure_ascii=False))
~% endif %~~% if origins %~with open("origins.txt", "w") as file:
    file.writelines(f"{key}\t{origin[key]}\n" for key, _ in items)
~% endif %~PY
python3 /tmp/merge.py > merged.~{ "conf" if out == "flat" else out }~
