"""The logs of one variant, from its name alone; and the entries that they tell of."""

import datetime
import pathlib
import random

UTC = datetime.timezone.utc
START = datetime.datetime(2024, 5, 1, 9, tzinfo=UTC)
MESSAGES = ["connection reset", "timeout after 30 s", "retry 2 of 3", "pool exhausted", "Überlauf im Puffer", "row locked"]


def build():
    """Files by name, entries as (ms since START, service, level, request, message), deploys as (ms, version)."""
    rng = random.Random("~{ family }~/~{ variant }~")
    services = ~{ services }~
    entries, now, used = [], 60_000, set()

    def note(ms, service, level, request):
        while (ms, service) in used:
            ms += 1
        used.add((ms, service))
        entries.append((ms, service, level, request, rng.choice(MESSAGES)))

    for number in range(36):
        request = f"r{rng.randrange(16)}{'abcdef'[number % 6]}{number:02d}"
        for _ in range(rng.randrange(1, 4)):
            note(now - rng.randrange(1, 900), rng.choice(services), rng.choice(["DEBUG", "INFO", "WARN"]), request)
        if number % 4:
            hit = rng.sample(services, rng.randrange(1, len(services) + 1))
            for place, service in enumerate(hit):
                note(now + (0 if number % 3 == 0 else place * rng.randrange(700)), service, rng.choice(["ERROR", "ERROR", "FATAL"]), request)
            note(now + rng.randrange(900, 2000), services[number % len(services)], rng.choice(["INFO", "ERROR"]), request)
        now += rng.choice([3_000, ~{ gap }~ * 1000, ~{ gap }~ * 1000 + 2_500, 20_000, 240_000])
    quiet = now // 1000 * 1000 + 600_000  # a stretch with two errors, exactly the gap apart
    for number, ms in enumerate((quiet, quiet + ~{ gap }~ * 1000)):
        note(ms, services[0], "ERROR", f"rq{number}")
    deploys = {(entry[0] // 1000 - rng.randrange(40)) * 1000 for entry in rng.sample(entries, 5)} | {quiet - 9000, quiet + 7_000_000}
    deploys = [(ms, f"v1.{number}") for number, ms in enumerate(sorted(deploys))]
    files = {f"logs/{service}.log": "".join(written(rng, entries, service)) for service in services}
    if "~{ report }~" == "deploys":
        files["deploys.txt"] = "".join(f"{START + datetime.timedelta(milliseconds=ms):%Y-%m-%dT%H:%M:%SZ} {version}\n" for ms, version in deploys)
    return files, entries, deploys


def written(rng, entries, service):
    for ms, owner, level, request, message in sorted(entries):
        if owner == service:
            when = START + datetime.timedelta(milliseconds=ms)
            if service == "api":
                yield f"{when:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z {level} [req={request}] {message}\n"
            elif service == "worker":
                local = when.astimezone(datetime.timezone(datetime.timedelta(minutes=rng.choice([120, 120, -300, 330]))))
                yield f"{local:%d/%m/%Y %H:%M:%S},{ms % 1000:03d} {local:%z} | {level.lower()} | {request} | {message}\n"
            else:
                yield f"{int(START.timestamp()) * 1000 + ms + ~{ skew }~} {level[0]} {request} {message}\n"
            if ~{ traces }~ and level in ("ERROR", "FATAL"):
                yield "    at handler (core.c:41) ERROR\n  caused by: 1714557600123 E r1 nothing\n"


if __name__ == "__main__":
    pathlib.Path("logs").mkdir(exist_ok=True)
    for name, text in build()[0].items():
        pathlib.Path(name).write_text(text, encoding="utf-8")
