"""The layers of one variant, from its name alone: as files, and as (file, [(setting, what to do, value)])."""

import json
import pathlib
import random

LAYERS, LISTED, PROFILE = ~{ layers }~, "log.targets", "~{ profile }~"
KEYS = "cache.dir cache.size cache.ttl db.host db.pool db.url log.file log.level log.targets mail.from mail.retries server.host server.port server.tls web.title".split()


def value_for(rng, key):
    name = key.split(".")[1]
    if name in ("size", "ttl", "pool", "retries", "port"):
        return str(rng.randrange(1, 9999))
    if name == "tls":
        return rng.choice(["true", "false"])
    if name == "targets":
        return rng.choice(["file", "syslog,file", "stderr"])
    return rng.choice(["/srv/{}", "{}.example", "Grün {}", "a=b {}", "{}"]).format(f"{name}{rng.randrange(99)}")


def plan(rng):
    """What each layer does; the first sets everything."""
    layers = []
    for number, layer in enumerate(LAYERS):
        keys = KEYS if number == 0 else sorted(rng.sample(KEYS, 6) + [f"extra.k{number}"])
        steps = {key: ("set", value_for(rng, key)) for key in keys}
        if number:
            steps["server.port"] = ("set", str(9000 + number))
            steps["db.host"] = ("set", f"db{number}.example")
        if ~{ refer }~ and number == 0:
            steps["db.url"] = ("set", "pg://${db.host}:${server.port}/${web.title}")
            steps["web.title"] = ("set", "at ${server.host} on ${db.host}")
        elif ~{ refer }~:
            steps.pop("db.url", None), steps.pop("web.title", None)
        if ~{ unset }~ and number:
            steps[["mail.from", "cache.ttl"][number % 2]] = ("unset", "")
            steps.pop("mail.retries", None)
            if number == len(LAYERS) - 1:
                steps["mail.retries"] = ("unset", "")
        if ~{ append }~ and number and layer.endswith("ini"):
            steps[LISTED] = ("add", f"t{number}")
            steps[f"extra.l{number}"] = ("add", "new")
        elif ~{ append }~:
            steps.pop(LISTED, None) if number else None
        layers.append([(key, *step) for key, step in sorted(steps.items())])
    return layers


def as_ini(rng, steps, number):
    hidden = [step for step in steps if step[1] == "set" and rng.random() < 0.4] if PROFILE else []
    text = ["# layer", ""]
    for mark, part in (("", [s for s in steps if s not in hidden]), (f"@{PROFILE}", hidden), ("@other", hidden)):
        for section in dict.fromkeys(key.split(".")[0] for key, _, _ in part):
            text.append(f"[{section.upper() if ~{ caps }~ and number % 2 else section}{mark}]")
            for key, what, value in part:
                if key.startswith(section + "."):
                    name = key.split(".")[1]
                    name = name.capitalize() if ~{ caps }~ else name
                    value = "!unset" if what == "unset" else "wrong" if mark == "@other" else value
                    value = f'"{value}"' if " " in value else value
                    tail = rng.choice(["", "  # see below", " ; old"]) if ~{ inline }~ else ""
                    text.append(f"{name}{rng.choice([' ', ''])}{'+=' if what == 'add' else '='}{rng.choice([' ', '  ', ''])}{value}{tail}")
            text.append(rng.choice(["", "; ---"]))
    return text


def as_env(rng, steps, number):
    text = ["PATH=/usr/bin", "APPLE_SERVER__PORT=1"]
    for key, what, value in steps:
        value = "!unset" if what == "unset" else value
        text.append(f"APP_{key.replace('.', '__').upper()}=" + (f'"{value}"' if " " in value or rng.random() < 0.3 else value))
    return text


def as_args(rng, steps, number):
    return [f"--no-{key}" if value == "false" else f"--{key}={'!unset' if what == 'unset' else value}" for key, what, value in steps]


def plain(key, value):
    """A value of TOML or JSON."""
    return value == "true" if value in ("true", "false") else int(value) if value.isdigit() else value


def as_toml(rng, steps, number):
    text = []
    for section in dict.fromkeys(key.split(".")[0] for key, _, _ in steps):
        text.append(f"[{section}]")
        for key, what, value in steps:
            if key.startswith(section + "."):
                value = "!unset" if what == "unset" else value.split(",") if key == LISTED else plain(key, value)
                text.append(f"{key.split('.')[1]} = {json.dumps(value, ensure_ascii=False)}")
    return text


def as_json(rng, steps, number):
    tree = {}
    for key, what, value in steps:
        section, name = key.split(".")
        tree.setdefault(section, {})[name] = None if what == "unset" else plain(key, value)
    return json.dumps(tree, indent=2, ensure_ascii=False).splitlines()


def build():
    rng = random.Random("~{ family }~/~{ variant }~")
    steps = plan(rng)
    writers = {"ini": as_ini, "env": as_env, "args": as_args, "toml": as_toml, "json": as_json}
    files = {}
    for number, layer in enumerate(LAYERS):
        lines = writers[layer.rsplit(".", 1)[1]](rng, steps[number], number)
        files[layer] = "".join(line + "\n" for line in lines)
    if ~{ confd }~:
        files["conf.d/11-off.ini.bak"] = "[server]\nport = 1\n"
    return files, list(zip(LAYERS, steps))


if __name__ == "__main__":
    for name, text in build()[0].items():
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(text, encoding="utf-8")
