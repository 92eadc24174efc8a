"""The event log of one variant, from its name alone."""

import datetime
import json
import pathlib
import random

TYPES = ~{ steps }~ + ["heartbeat"]
USERS = ["ada", "bo", "cy", "dee", "eli", "fay", "gus", "hal", "ida", "jo"]


def event(rng, number, user, kind, minute):
    ts = datetime.datetime(2024, 5, 1, 8) + datetime.timedelta(minutes=minute, seconds=rng.choice([0, 0, 1, 30]))
    return {"id": f"e{number:04d}", "ts": ts.strftime("%Y-%m-%dT%H:%M:%SZ"), "user": user, "type": kind,
            "ms": rng.randrange(5, 900), "ok": rng.random() < 0.75}


def build():
    rng = random.Random("~{ family }~/~{ variant }~")
    events = []
    for user in USERS[:9]:  # bursts with pauses, so that there are sessions
        minute = rng.randrange(200)
        for _ in range(rng.randrange(9, 15)):
            events.append(event(rng, len(events), user, rng.choice(TYPES), minute))
            minute += rng.choice([1, 2, 5, ~{ gap }~, ~{ gap }~, ~{ gap }~ + 3, 400, 1100])
    for user, kinds in (("jo", TYPES[2::-1]), ("ida", TYPES[:2])):  # the steps in the wrong order, and at one time
        for turn, kind in enumerate(kinds):
            events.append({**event(rng, len(events), user, kind, 90), "ok": True})
            events[-1]["ts"] = f"2024-05-02T11:0{turn if user == 'jo' else 0}:00Z"
    if "~{ anon }~" != "none":
        for number in range(0, len(events), 8):
            events[number] = {**events[number], "user": None}
            if number % 16:
                del events[number]["user"]
    rng.shuffle(events)
    lines = [json.dumps(entry) for entry in events]
    if "~{ dup }~" != "none":
        for entry in events[::6]:
            again = event(rng, 0, rng.choice(USERS), rng.choice(TYPES), rng.randrange(4000))
            lines.append(json.dumps({**again, "id": entry["id"]}))
    whole = lines[:]
    for damaged in ("", "null", "[1, 2]", "# rotated", '{"id": "x1", "ts": "2024-05-01T09:00:00Z"}', whole[0][:-9], whole[3][:20]):
        lines.insert(rng.randrange(len(lines)), damaged)
    return "".join(line + "\n" for line in lines)


if __name__ == "__main__":
    pathlib.Path("events.jsonl").write_text(build())
