import hashlib
import http.client
import json
import re
import secrets
import socket
import sys
import time
from collections import Counter
from urllib.parse import quote, urlencode

import gen

PORT, KIND = ~{ port }~, "~{ kind }~"
LATEST = time.monotonic() + 15
wrong = []
dice = secrets.SystemRandom()
DEFAULT = {"Authorization": "Bearer " + gen.TOKEN} if gen.AUTH else {}
JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}


def name():
    return "t" + secrets.token_hex(6)


def give_up(why):
    """A service that does not answer ends the check, lest it use up the time there is for it."""
    print("\n".join([*wrong[:30], why]))
    sys.exit(1)


def call(method, path, body=None, headers=DEFAULT):
    ask = http.client.HTTPConnection("127.0.0.1", PORT, timeout=3)
    try:
        ask.request(method, path, body, headers)
        answer = ask.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        ask.close()


def expect(status, method, path, body=None, headers=DEFAULT, *, data=None, value=None, having=None):
    """Ask, and note what is not as wanted: status, exact bytes, JSON value, headers. Gives the JSON value or the bytes."""
    asked = f"{method} {path}"
    try:
        got, found, content = call(method, path, body, headers)
    except (OSError, http.client.HTTPException) as error:
        give_up(f"{asked}: {error!r}")
    if time.monotonic() > LATEST:
        give_up("the service is too slow")
    reply = content
    if got != status:
        wrong.append(f"{asked}: status {got}, wanted {status}")
    elif value is not None or status >= 400:
        try:
            reply = json.loads(content)
        except ValueError:
            reply = None
            wrong.append(f"{asked}: no JSON: {content[:200]!r}")
        having = {**JSON, **(having or {})}
        if status >= 400 and not (isinstance(reply, dict) and isinstance(reply.get("error"), str)):
            wrong.append(f"{asked}: no error object: {content[:200]!r}")
        elif status < 400 and value is not ... and not same(reply, value):
            wrong.append(f"{asked}: {reply}, wanted {value}")
    if data is not None and content != data:
        wrong.append(f"{asked}: body {content[:200]!r}, wanted {data[:200]!r}")
    for header, wanted in (having or {}).items():
        have = (found.get(header) or "").replace(", ", ",")
        if (
            got == status
            and have != wanted.replace(", ", ",")
            and not (header == "Content-Type" and have.replace(" ", "").lower().split(";")[0] == wanted.split(";")[0])
        ):
            wrong.append(f"{asked}: {header} is {found.get(header)!r}, wanted {wanted!r}")
    return reply


def same(left, right):
    if isinstance(right, float):
        return isinstance(left, (int, float)) and abs(left - right) < 1e-9
    return isinstance(left, dict) == isinstance(right, dict) and (
        left.keys() == right.keys() and all(same(left[k], right[k]) for k in right)
        if isinstance(right, dict)
        else left == ([list(x) if isinstance(x, tuple) else x for x in right] if isinstance(right, list) else right)
    )


deadline = time.monotonic() + 1.5
while True:
    try:
        call("GET", "/")
        break
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() > deadline:
            sys.exit(f"no service on port {PORT}: {error!r}")
        time.sleep(0.05)
~% if kind == "items" %~
items = sorted(gen.ITEMS, key=lambda item: item["id"])
ids = [item["id"] for item in items]
for item in dice.sample(items, 3):
    expect(200, "GET", f"/items/{item['id']}", value=item)
for absent in (dice.choice(sorted(set(range(1, 400)) - set(ids))), 10**6, "abc"):
    expect(404, "GET", f"/items/{absent}")
expect(200, "GET", "/items", value=items)
for group in ("a", "c d", name()):
    expect(200, "GET", "/items?group=" + quote(group), value=[item for item in items if item["group"] == group])
~% if page %~
for _ in range(4):
    least, offset, limit = dice.randint(10, 60), dice.randint(0, 9), dice.randint(1, 9)
    group = dice.choice("ab")
    expect(
        200,
        "GET",
        f"/items?group={group}&min={least}&offset={offset}&limit={limit}",
        value=[i for i in items if i["group"] == group and i["price"] >= least][offset:][:limit],
    )
    expect(200, "GET", f"/items?offset={offset}", value=items[offset:])
expect(200, "GET", "/items?limit=0", value=[])
for bad in ("min=x", "limit=-1", "offset=1.5", "limit="):
    expect(400, "GET", "/items?" + bad)
~% endif %~
~% elif kind == "kv" %~
key, other, one, two = name(), name(), b"\0\xff" + secrets.token_bytes(40), secrets.token_bytes(9)
expect(404, "GET", f"/kv/{key}")
expect(404, "DELETE", f"/kv/{key}")
expect(201, "PUT", f"/kv/{key}", one)
expect(201, "PUT", f"/kv/{other}", b"")
expect(200, "GET", f"/kv/{key}", data=one, having=BYTES)
expect(204, "PUT", f"/kv/{key}", two)
expect(200, "GET", f"/kv/{key}", data=two, having=BYTES)
expect(200, "GET", f"/kv/{other}", data=b"", having=BYTES)
keys = expect(200, "GET", "/kv", value=...)
if not isinstance(keys, list) or keys != sorted(keys) or not {key, other} <= set(keys):
    wrong.append(f"GET /kv: {keys}")
~% if size %~
expect(413, "PUT", f"/kv/{key}", b"x" * ~{ size + 1 }~)
expect(413, "PUT", f"/kv/{name()}", b"x" * ~{ size + 900 }~)
expect(200, "GET", f"/kv/{key}", data=two)
expect(204, "PUT", f"/kv/{key}", b"x" * ~{ size }~)
expect(204, "PUT", f"/kv/{key}", two)
~% endif %~
~% if strict %~
for bad in ("Upper", "under_score", "x" * 33, "dot.dot"):
    for method in ("PUT", "GET", "DELETE"):
        expect(400, method, f"/kv/{bad}", b"x" if method == "PUT" else None)
expect(201, "PUT", "/kv/" + secrets.token_hex(16), b"x")
~% endif %~
~% if etag %~
tag = '"' + hashlib.sha256(two).hexdigest() + '"'
expect(200, "GET", f"/kv/{key}", data=two, having={"ETag": tag})
for place, mark in ((key, '"0"'), (key, tag[1:-1]), (name(), tag)):
    expect(412, "PUT", f"/kv/{place}", b"no", {**DEFAULT, "If-Match": mark})
expect(200, "GET", f"/kv/{key}", data=two)
expect(204, "PUT", f"/kv/{key}", b"new", {**DEFAULT, "If-Match": tag})
expect(412, "PUT", f"/kv/{key}", b"newer", {**DEFAULT, "If-Match": tag})
expect(200, "GET", f"/kv/{key}", data=b"new")
~% endif %~
expect(204, "DELETE", f"/kv/{key}")
expect(404, "GET", f"/kv/{key}")
expect(404, "DELETE", f"/kv/{key}")
expect(201, "PUT", f"/kv/{key}", one)
~% elif kind == "text" %~
words = [dice.choice(["Été", "the", "The", "ox", "don't", "ox", "naïve", secrets.token_hex(3)]) for _ in range(30)]
text = "".join(word + dice.choice([" ", "  ", "\n", "\t"]) for word in words) + "ü\n"
raw = text.encode()
expect(200, "POST", "/reverse", raw, data=text[::-1].encode(), having={"Content-Type": "text/plain; charset=utf-8"})
expect(
    200,
    "POST",
    "/stats",
    raw,
    value={"bytes": len(raw), "chars": len(text), "words": len(text.split()), "lines": text.count("\n")},
)
expect(200, "POST", "/stats", b"", value={"bytes": 0, "chars": 0, "words": 0, "lines": 0})
paths = ["/reverse", "/stats"]
~% if digest %~
for algo in ("md5", "sha1", "sha256"):
    expect(
        200,
        "POST",
        f"/digest?algo={algo}",
        raw + b"\xff",
        value={"algo": algo, "hex": hashlib.new(algo, raw + b"\xff").hexdigest()},
    )
expect(200, "POST", "/digest", b"", value={"algo": "sha256", "hex": hashlib.sha256(b"").hexdigest()})
expect(400, "POST", "/digest?algo=crc", b"x")
expect(405, "GET", "/digest", having={"Allow": "POST"})
~% endif %~
~% if freq %~
ranked = sorted(Counter(re.findall("[a-z]+", text.lower())).items(), key=lambda pair: (-pair[1], pair[0]))
n = dice.randint(4, 7)
expect(200, "POST", f"/top?n={n}", raw, value=ranked[:n])
expect(200, "POST", "/top", raw, value=ranked[:3])
expect(200, "POST", "/top?n=9", b"b a b", value=[("b", 2), ("a", 1)])
for bad in ("0", "x", "-1", "1.5"):
    expect(400, "POST", f"/top?n={bad}", raw)
paths.append("/top")
~% endif %~
for path in paths:
    expect(400, "POST", path, b"ab\xff\xfe")
    for method in ("GET", "PUT", "DELETE"):
        expect(405, method, path, having={"Allow": "POST"})
~% elif kind == "counter" %~
one, two, three = name(), name(), name()
expect(404, "GET", f"/c/{one}")
expect(404, "DELETE", f"/c/{one}")
big = 10**9 + dice.randint(0, 10**6)
expect(200, "POST", f"/c/{one}", value={"name": one, "value": 1})
expect(200, "POST", f"/c/{one}?by={big}", value={"name": one, "value": big + 1})
expect(200, "POST", f"/c/{one}?by=-1", value={"name": one, "value": big})
expect(200, "POST", f"/c/{two}", value={"name": two, "value": 1})
expect(200, "GET", f"/c/{one}", value={"name": one, "value": big})
for bad in ("x", "1.5", ""):
    expect(400, "POST", f"/c/{one}?by={bad}")
    expect(400, "POST", f"/c/{three}?by={bad}")
expect(200, "GET", f"/c/{one}", value={"name": one, "value": big})
expect(404, "GET", f"/c/{three}")
~% if floor %~
expect(409, "POST", f"/c/{two}?by=-2")
expect(200, "GET", f"/c/{two}", value={"name": two, "value": 1})
expect(409, "POST", f"/c/{three}?by=-1")
expect(404, "GET", f"/c/{three}")
expect(200, "POST", f"/c/{two}?by=-1", value={"name": two, "value": 0})
~% else %~
expect(200, "POST", f"/c/{two}?by=-5", value={"name": two, "value": -4})
~% endif %~
~% if top %~
first, second = sorted([name(), name()])
for place in (second, first):
    expect(200, "POST", f"/c/{place}?by={2 * big}", value={"name": place, "value": 2 * big})
expect(
    200,
    "GET",
    "/top?n=3",
    value=[{"name": first, "value": 2 * big}, {"name": second, "value": 2 * big}, {"name": one, "value": big}],
)
expect(200, "GET", "/top?n=1", value=[{"name": first, "value": 2 * big}])
for place in (second, first):
    expect(204, "DELETE", f"/c/{place}")
~% endif %~
expect(204, "DELETE", f"/c/{one}")
expect(404, "GET", f"/c/{one}")
expect(404, "DELETE", f"/c/{one}")
expect(200, "POST", f"/c/{one}", value={"name": one, "value": 1})
~% elif kind == "calc" %~
for size in (1, 2, 4, 7):
    x = [dice.randint(-1000, 1000) for _ in range(size)]
    x[0] += sum(x) % 2 == 0 and size == 2 or (size > 2 and sum(x) % size == 0)
    s = sorted(x)
    wanted = {"sum": float(sum(x)), "mean": sum(x) / size}
~% if more %~
    wanted |= {"median": (s[(size - 1) // 2] + s[size // 2]) / 2, "range": float(s[-1] - s[0])}
~% endif %~
    for what, result in wanted.items():
        expect(200, "GET", f"/{what}?" + urlencode([("x", value) for value in x]), value={"result": result})
        for bad in ("", "?y=1", "?x=1.5", "?x=1&x=abc", "?x="):
            expect(400, "GET", f"/{what}{bad}")
~% if post %~
        expect(200, "POST", f"/{what}", json.dumps({"x": x}), value={"result": result})
        for bad in (
            "",
            "[1]",
            '{"x": []}',
            '{"x": 3}',
            '{"x": [1, 1.5]}',
            '{"x": [true]}',
            '{"x": ["1"]}',
            '{"y": [1]}',
        ):
            expect(400, "POST", f"/{what}", bad)
        for method in ("PUT", "DELETE"):
            expect(405, method, f"/{what}?x=1", having={"Allow": "GET, POST"})
~% endif %~
~% elif kind == "queue" %~
one, two = name(), name()
items = [b"\0" + secrets.token_bytes(6) for _ in range(~{ cap or 5 }~)]
expect(200, "GET", f"/q/{one}", value={"length": 0})
expect(204, "DELETE", f"/q/{one}")
for number, item in enumerate(items, 1):
    expect(202, "POST", f"/q/{one}", item, value={"length": number})
expect(202, "POST", f"/q/{two}", b"other", value={"length": 1})
~% if cap %~
expect(429, "POST", f"/q/{one}", b"too much")
~% endif %~
expect(200, "GET", f"/q/{one}", value={"length": len(items)})
order = items[::-1] if ~{ lifo }~ else items
expect(200, "DELETE", f"/q/{one}", data=order[0], having=BYTES)
expect(200, "GET", f"/q/{one}", value={"length": len(items) - 1})
expect(200, "DELETE", f"/q/{two}", data=b"other")
~% if not move %~
expect(200, "DELETE", f"/q/{one}", data=order[1], having=BYTES)
~% else %~
expect(202, "POST", f"/q/{two}", b"first", value={"length": 1})
expect(200, "POST", f"/q/{one}/move?to={two}", value={"length": 2})
expect(400, "POST", f"/q/{one}/move")
expect(204, "POST", f"/q/{name()}/move?to={two}")
for wanted in [order[1], b"first"] if ~{ lifo }~ else [b"first", order[1]]:
    expect(200, "DELETE", f"/q/{two}", data=wanted)
~% if cap %~
for number in range(~{ cap }~):
    expect(202, "POST", f"/q/{two}", b"x", value={"length": number + 1})
expect(429, "POST", f"/q/{one}/move?to={two}")
~% endif %~
~% endif %~
for item in order[2:]:
    expect(200, "DELETE", f"/q/{one}", data=item)
expect(204, "DELETE", f"/q/{one}")
~% else %~
urls = [f"http://{name()}.example/a?b=1", f"https://{name()}.example/"]
codes = [(expect(201, "POST", "/links", json.dumps({"url": url}), value=...) or {}).get("code") for url in urls]
if len(set(codes)) != 2 or not all(isinstance(code, str) and re.fullmatch("[A-Za-z0-9]{1,12}", code) for code in codes):
    wrong.append(f"codes: {codes}")
hits = dice.randint(2, 4)
for _ in range(hits):
    expect(302, "GET", f"/l/{codes[0]}", having={"Location": urls[0]})
expect(302, "GET", f"/l/{codes[1]}", having={"Location": urls[1]})
expect(200, "GET", f"/stats/{codes[0]}", value={"url": urls[0], "hits": hits})
expect(200, "GET", f"/stats/{codes[1]}", value={"url": urls[1], "hits": 1})
again = (expect(~{ 200 if same else 201 }~, "POST", "/links", json.dumps({"url": urls[0]}), value=...) or {}).get("code")
if (again == codes[0]) != bool(~{ same }~):
    wrong.append(f"the same URL again got {again}, had {codes[0]}")
for bad in ("", "[]", '{"uri": "http://x/"}', '{"url": 5}', '{"url": "ftp://x/"}'):
    expect(400, "POST", "/links", bad)
for path in ("/l/" + secrets.token_hex(5), "/stats/" + secrets.token_hex(5)):
    expect(404, "GET", path)
~% if gone %~
expect(204, "DELETE", f"/l/{codes[0]}")
for method, path in (("GET", "/l/"), ("GET", "/stats/"), ("DELETE", "/l/")):
    expect(410, method, path + codes[0])
expect(404, "DELETE", "/l/" + secrets.token_hex(5))
~% if same %~
new = (expect(201, "POST", "/links", json.dumps({"url": urls[0]}), value=...) or {}).get("code")
if new in codes:
    wrong.append(f"a deleted code came back: {new}")
~% endif %~
~% endif %~
~% endif %~
expect(404, "GET", "/" + name())
~% if health %~
expect(200, "GET", "/healthz", headers={}, data=b"ok", having={"Content-Type": "text/plain"})
~% endif %~
~% if auth %~
for mark in ({}, {"Authorization": "Bearer x" + gen.TOKEN}, {"Authorization": gen.TOKEN}):
    for path in ("/", "/" + name()):
        expect(401, "GET", path, headers=mark, having={"WWW-Authenticate": "Bearer"})
~% endif %~
~% if trace %~
for path, headers in (
    ("/" + name(), DEFAULT),
    *([("/healthz", {})] if ~{ health }~ else []),
    *([("/x", {})] if gen.AUTH else []),
):
    mark = secrets.token_hex(8)
    if call("GET", path, None, {**headers, "X-Request-Id": mark})[1].get("X-Request-Id") != mark:
        wrong.append(f"GET {path}: X-Request-Id not given back")
~% endif %~
~% if idle %~
silent = [socket.create_connection(("127.0.0.1", PORT), timeout=3) for _ in range(2)]
expect(404, "GET", "/" + name())
~% endif %~
print("\n".join(wrong[:30]) or "the service does as told")
sys.exit(bool(wrong))
