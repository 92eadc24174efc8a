"""The dates of one variant, from its name alone: as they are written, and what they mean (None: invalid)."""

import datetime
import pathlib
import random

FORMS, DAY, UTC = ~{ forms }~, datetime.timedelta(days=1), datetime.timezone.utc
MONTHS = "January February March April May June July August September October November December".split()
WRONG = {
    "dmy": "31/02/2023", "mdy": "02/29/2023", "dot": "31.4.2024", "short": "29-02-23", "compact": "20231301", "month": "31 June 2024",
    "abbr": "Foo 5, 2024", "week": "2023-W53-1", "ordinal": "2023-366", "iso": "2024-02-30", "epoch": "@",
}


def write(form, d, rng):
    """The moment `d` (UTC) in one of the ways."""
    month, offset = MONTHS[d.month - 1], rng.choice([-480, -210, 0, 60, 330, 765])
    local = d.astimezone(datetime.timezone(datetime.timedelta(minutes=offset)))
    return {
        "dmy": f"{d.day:02d}/{d.month:02d}/{d.year}", "mdy": f"{d.month:02d}/{d.day:02d}/{d.year}", "dot": f"{d.day}.{d.month}.{d.year}",
        "short": f"{d.day:02d}-{d.month:02d}-{d.year % 100:02d}", "compact": f"{d.year}{d.month:02d}{d.day:02d}",
        "month": f"{d.day} {month} {d.year}", "abbr": f"{month[:3]} {d.day}, {d.year}", "iso": f"{d.year}-{d.month:02d}-{d.day:02d}",
        "week": "{}-W{:02d}-{}".format(*d.isocalendar()), "ordinal": f"{d.year}-{d.timetuple().tm_yday:03d}", "epoch": f"@{int(d.timestamp())}",
        "numeric": f"{local:%Y-%m-%d %H:%M:%S %z}", "mail": f"{local:%a, %d %b %Y %H:%M:%S %z}", "zulu": f"{d:%Y-%m-%dT%H:%M:%SZ}",
    }[form]


def moment(rng, number):
    """A moment; ends of months and of years are frequent."""
    year = rng.choice([1999, 2020, 2023, 2024, rng.randrange(1990, 2030)])
    d = datetime.datetime(year, rng.randrange(1, 13), rng.randrange(13, 29), tzinfo=UTC)
    if number % 5 == 0:
        d = datetime.datetime(year, rng.choice([1, 2, 3, 5, 6, 11, 12]), 1, tzinfo=UTC) - DAY * rng.choice([0, 1, 2])
    if "~{ kind }~" in ("diff", "workdays"):
        d = datetime.datetime(2024, 2, 20, tzinfo=UTC) + DAY * rng.randrange(40)
    if "~{ kind }~" == "bucket":
        d = d.replace(year=2024) - DAY * (number % 2 * 60) if number % 3 else datetime.datetime(2025, 1, 1, tzinfo=UTC) - DAY * (number % 7)
    return d + datetime.timedelta(seconds=rng.randrange(86400)) if "~{ kind }~" == "utc" else d


def dates(rng, count):
    """(text, date or None) pairs."""
    for number in range(count):
        form, d = FORMS[number % len(FORMS)], moment(rng, number)
        if form == "short" and "~{ kind }~" not in ("diff", "workdays", "bucket"):
            d = datetime.datetime(rng.choice([1950 + number % 19, 2049]), rng.randrange(1, 13), rng.randrange(13, 29), tzinfo=UTC)
        if ~{ invalid }~ and (number // len(FORMS)) % 5 == 2:
            yield rng.choice([WRONG[form], "tbd", "", "n/a 2024"]) if number > 5 * len(FORMS) else WRONG[form], None
        else:
            yield write(form, d, rng), d


def build():
    """The file's name, its text, and the (id, [(text, date or None), ...]) of its lines."""
    rng = random.Random("~{ family }~/~{ variant }~")
    columns = 2 if "~{ kind }~" in ("diff", "workdays") else 1
    pairs = list(dates(rng, 60 * columns))
    rng.shuffle(pairs)
    rows = [(f"{rng.choice('abc')}{n:02d}", pairs[columns * n : columns * (n + 1)]) for n in range(60)]
    if "~{ kind }~" == "text":
        words = ["before", "Übergabe", "on", "until", "room 12.3", "(see", "v1.2.2024x", "no. 2024-7)", "then", "1/2"]
        lines = [" ".join(f"{rng.choice(words)} {text}{rng.choice(['', ',', '.', ' –'])}" for _, [(text, _)] in rows[n : n + 3]) for n in range(0, 60, 3)]
        return "notes.txt", "".join(f"{line} {rng.choice(words)}\n" for line in lines), rows
    header = "id;start;end" if columns == 2 else "id;when"
    return "dates.csv", "".join(line + "\n" for line in [header, *(";".join([i, *(text for text, _ in cells)]) for i, cells in rows)]), rows


if __name__ == "__main__":
    name, text, _ = build()
    pathlib.Path(name).write_text(text, encoding="utf-8")
