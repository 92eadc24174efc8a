"""The services, what they know, and the result that a good client ends with."""

import hashlib
import json
import os
import random

PORT, KIND = ~{ port }~, "~{ kind }~"
rng = random.Random(~{ seed }~)


def word():
    return "".join(rng.choice("abcdefghijkmnprstuvwxyz") for _ in range(rng.randint(4, 7)))


def listen(server):
    """Serve from a process of its own; the socket listens before this returns."""
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        server.serve_forever()
    server.server_close()


def serve_http(port, answer):
    """`answer(method, path, headers, body)` gives a status, a body (bytes, or a value for JSON) and perhaps headers."""
    import http.server  # not needed where only lines are spoken, and slow to load

    class Handler(http.server.BaseHTTPRequestHandler):
        def respond(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, reply, *extra = answer(self.command, self.path, self.headers, body)
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "text/html" if reply is data else "application/json",
                "Content-Length": str(len(data)),
                **(extra[0] if extra else {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = respond

    listen(http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler))


def serve_lines(port, talk):
    """`talk(say, lines)` holds one conversation: `say` sends a line, `lines` gives those that come."""
    import socketserver

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            talk(
                lambda text: self.wfile.write(text.encode() + b"\n"),
                (line.decode().rstrip("\r\n") for line in self.rfile),
            )

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads, request_queue_size = True, True, 64

    listen(Server(("127.0.0.1", port), Handler))


def by_bytes(rows):
    return sorted(rows, key=lambda row: str(row[0]).encode())

~% if kind == "pages" %~
RECORDS = [
    {"id": 100 + n, "kind": rng.choice(["tea", "Rice", "oil", "salt"]), "amount": rng.randint(-20, 90)}
    for n in range(47)
]
~% if dropped %~
RECORDS = [{**record, "deleted": True} if rng.random() < 0.2 else record for record in RECORDS]
~% endif %~
~% if revised %~
RECORDS = [{**record, "rev": rng.randint(3, 9)} for record in RECORDS]
RECORDS += [
    {
        "id": record["id"],
        "kind": record["kind"],
        "amount": record["amount"] + 5,
        "rev": record["rev"] + rng.choice([-2, -1, 3]),
    }
    for record in rng.sample(RECORDS, 15)
]
rng.shuffle(RECORDS)
~% endif %~
PAGES = [RECORDS[start : start + 9] for start in range(0, len(RECORDS), 9)]
KEYS = ["", *(word() + str(n) for n in range(1, len(PAGES)))]


def result():
    last = {}
    for record in RECORDS:
        if record["id"] not in last or record.get("rev", 0) > last[record["id"]]["rev"]:
            last[record["id"]] = record
    rows = {}
    for record in last.values():
        if not record.get("deleted"):
            rows.setdefault(record["kind"], []).append(record["amount"])
    return "kind,count,total\n" + "".join(
        f"{kind},{len(amounts)},{sum(amounts)}\n" for kind, amounts in by_bytes(rows.items())
    )


def start():
    asked = set()

    def answer(method, path, headers, body):
        if ~{ flaky }~ and path not in asked:
            asked.add(path)
            return 503, {"error": "try again"}, {"Retry-After": "0"}
        asked.discard(path)
~%- if cursor %~
        keys = {"/records" + (f"?after={key}" if key else ""): n for n, key in enumerate(KEYS)}
        if path not in keys:
            return 404, {"error": "no such page"}
        n = keys[path]
        return 200, {"records": PAGES[n], **({"next": f"/records?after={KEYS[n + 1]}"} if n + 1 < len(PAGES) else {})}
~%- else %~
        number = path.removeprefix("/records?page=")
        if not number.isdigit() or not 1 <= int(number) <= len(PAGES):
            return 404, {"error": "no such page"}
        return 200, {"records": PAGES[int(number) - 1], "pages": len(PAGES)}
~%- endif %~

    serve_http(PORT, answer)

~% elif kind == "line" %~
NAMES = sorted({word() + rng.choice(["", "-2", ".x"]) for _ in range(24)} | {"Zulu", "a.b"})
rng.shuffle(NAMES)
VALUES = {name: f"{word()} {rng.randint(1, 999)}" for name in NAMES}
ALIASES = dict(zip(NAMES[0:8], NAMES[1:9])) if ~{ alias }~ else {}
if ~{ loops }~:
    ALIASES |= {NAMES[12]: NAMES[13], NAMES[13]: NAMES[12], NAMES[14]: NAMES[14], NAMES[15]: NAMES[12]}
HOLES = set(NAMES[9:12]) if ~{ holes }~ else set()


def result():
    rows = []
    for name in NAMES:
        end, seen = name, set()
        while end in ALIASES and end not in seen:
            seen.add(end)
            end = ALIASES[end]
        if end not in HOLES:
            rows.append((name, "-" if end in ALIASES else VALUES[end]))
    return "".join(f"{name}\t{value}\n" for name, value in by_bytes(rows))


def start():
    def talk(say, lines):
        for number, line in enumerate(lines, 1):
            if line == "QUIT":
                return
            if line == "LIST":
                say("\n".join([str(len(NAMES)), *NAMES]))
            else:
                name = line.removeprefix("GET ")
                say(
                    f"ALIAS {ALIASES[name]}"
                    if name in ALIASES
                    else "NONE"
                    if name in HOLES or name not in VALUES
                    else f"VALUE {VALUES[name]}"
                )
            if number == ~{ shift or 10**9 }~:
                return

    serve_lines(PORT, talk)

~% elif kind == "discover" %~
def services():
    names = [word() for _ in range(4)]
    ports = rng.sample(range(20000, 30000), 12)
    roles = ["~{ role }~", "~{ role }~s", "spare", "~{ role }~", "~{ role }~", "~{ role }~", "old", "~{ role }~", "spare"]
    return [
        (
            port,
            names[n % 4] if ~{ newest }~ else word(),
            f"{rng.randint(1, 2)}.{rng.choice([2, 9, 10, 11])}",
            role,
            rng.randint(1, 500),
        )
        for n, (port, role) in enumerate(zip(ports, roles))
    ], ports[9:11]


SERVICES, SILENT = services()


def result():
    chosen = [s for s in SERVICES if s[3] == "~{ role }~"]
~%- if newest %~
    age = lambda s: [int(part) for part in s[2].split(".")]
    chosen = [s for s in chosen if all(other[1] != s[1] or age(other) <= age(s) for other in chosen)]
~%- endif %~
    return (
        "".join(f"{port} {name} {version}\n" for port, name, version, _, _ in sorted(chosen))
        + f"total {sum(s[4] for s in chosen)}\n"
    )


def start():
    for port, name, version, role, value in SERVICES:

        def talk(say, lines):
            say(f"{name} {version} {role}")
            for line in lines:
                say(str(value) if line == "VALUE" else "what?")

        serve_lines(port, talk)
    for port in SILENT if ~{ mute }~ else []:
        serve_lines(port, lambda say, lines: list(lines))

~% elif kind == "login" %~
PASSWORD = {"user": word(), "password": f"{rng.getrandbits(64):x}"}
BALANCES = rng.sample(range(1, 9000), 18)
ACCOUNTS = {
    str(rng.randint(1, 9)) + f"{n:02d}": {
        "owner": f"{word()} {n}",
        "currency": rng.choice(["EUR", "USD", "CHF"]),
        "balance": BALANCES[n],
    }
    for n in range(18)
}
LOCKED = set(rng.sample(sorted(ACCOUNTS), 4)) if ~{ locked }~ else set()


def result():
    open_ones = [account for number, account in ACCOUNTS.items() if number not in LOCKED]
    totals = {}
    for account in open_ones:
        totals[account["currency"]] = totals.get(account["currency"], 0) + account["balance"]
    extra = {"locked": sorted(LOCKED)} if ~{ locked }~ else {}
    return json.dumps(
        {
            "accounts": len(open_ones),
            "totals": totals,
            "richest": max(open_ones, key=lambda account: account["balance"])["owner"],
            **extra,
        }
    )


def start():
    tokens = {}

    def answer(method, path, headers, body):
        if (method, path) == ("POST", "/login"):
            try:
                good = json.loads(body) == PASSWORD
            except ValueError:
                good = False
            token = os.urandom(12).hex()
            tokens.update({token: ~{ expire or 10**9 }~} if good else {})
            return (200, {"token": token}) if good else (401, {"error": "who are you"})
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        if tokens.get(token, 0) < 1:
            return 401, {"error": "log in first"}
        tokens[token] -= 1
        if path == "/accounts":
            return 200, list(ACCOUNTS)
        number = path.removeprefix("/accounts/")
        return (
            (403, {"error": "locked"})
            if number in LOCKED
            else (200, ACCOUNTS[number])
            if number in ACCOUNTS
            else (404, {"error": "no such account"})
        )

    serve_http(PORT, answer)

~% elif kind == "join" %~
CITIES = ["Bern", "Aarau", "basel", "Zug", "Chur"]
RATES = {"CHF": 1, "EUR": 3, "USD": 2}
USERS = [{"id": 10 * n + rng.randint(0, 9), "name": word(), "city": CITIES[n % 5]} for n in range(15)]
rng.shuffle(USERS)
ORDERS = {
    user["id"]: [
        {
            "price": rng.randint(1, 60),
            "state": rng.choice(["paid", "paid", "open", "lost"]),
            "currency": rng.choice(sorted(RATES)),
        }
        for _ in range(rng.randint(0, 5))
    ]
    for user in USERS
}
ORDERS[USERS[0]["id"]] = []
ORDERS[USERS[1]["id"]] = [
    {"price": 7, "state": "open", "currency": "EUR"},
    {"price": 9, "state": "paid", "currency": "EUR"},
]
UNKNOWN = {user["id"] for user in USERS if not ORDERS[user["id"]]} if ~{ unknown }~ else set()


def result():
    rows = {user["city"]: [0, 0] for user in USERS}
    for user in USERS:
        rows[user["city"]][0] += 1
        rows[user["city"]][1] += sum(
            order["price"] * (RATES[order["currency"]] if ~{ rates }~ else 1)
            for order in ORDERS[user["id"]]
            if order["state"] == "paid"
        )
    ordered = by_bytes(rows.items())
    if ~{ ranked }~:
        ordered.sort(key=lambda row: -row[1][1])
    return "".join(f"{city}\t{count}\t{total}\n" for city, (count, total) in ordered)


def start():
    serve_http(
        PORT, lambda method, path, headers, body: (200, USERS) if path == "/users" else (404, {"error": "no such path"})
    )

    def orders(method, path, headers, body):
        user = path.removeprefix("/orders?user=")
        if not user.isdigit() or int(user) not in ORDERS or int(user) in UNKNOWN:
            return 404, {"error": "unknown user"}
        return 200, [
            order if ~{ rates }~ else {"price": order["price"], "state": order["state"]} for order in ORDERS[int(user)]
        ]

    serve_http(PORT + 1, orders)
~%- if rates %~
    serve_http(
        PORT + 2,
        lambda method, path, headers, body: (
            (200, {"rate": RATES[path[6:]]}) if path[6:] in RATES else (404, {"error": "no such currency"})
        ),
    )
~%- endif %~

~% elif kind == "crawl" %~
PATHS = ["/", *(f"/{rng.choice(['a/', 'a/b/', 'docs/'])}{word()}{n}.html" for n in range(14))]
TITLES = {path: f"{word()} {word()}" for path in PATHS}
MOVED = {"/old/start": PATHS[5], "/gone/away": "/old/start"} if ~{ moved }~ else {}
LOST = ["/a/missing.html", "/docs/lost.html"] if ~{ broken }~ else []
LINKS = {path: [PATHS[min(2 * n + 1, 12)], PATHS[min(2 * n + 2, 12)]] for n, path in enumerate(PATHS[:13])} | {
    PATHS[13]: ["/"],
    PATHS[14]: [PATHS[13]],
}
for n, extra in enumerate([*MOVED, *LOST, *LOST]):
    LINKS[PATHS[3 + n]].append(extra)
LINKS[PATHS[2]] += [PATHS[1], "/"]
if MOVED:  # only a redirect leads there
    LINKS = {path: [link for link in links if link != PATHS[5] or path == PATHS[5]] for path, links in LINKS.items()}
PAGES = {}
for path, links in LINKS.items():
    shown = [
        rng.choice([link, f"http://127.0.0.1:{PORT}{link}"] + [os.path.relpath(link, os.path.dirname(path))] * 4)
        + rng.choice(["", "", "#top"])
        for link in links
    ]
    shown += rng.sample([f"http://127.0.0.1:{PORT + 9}/x.html", "https://example.org/"], rng.randint(0, 2))
    PAGES[path] = (
        f"<html><head><title>{TITLES[path]}</title></head><body>"
        + "\n".join(f'<p><a href="{link}">{word()}</a></p>' for link in shown)
        + "</body></html>\n"
    )


def result():
    queue, found, lost = ["/"], set(), set()
    while queue:
        path = queue.pop()
        while path in MOVED:
            path = MOVED[path]
        if path in LOST:
            lost.add(path)
        elif path not in found:
            found.add(path)
            queue += LINKS[path]
    lines = [
        f"{path}\t{TITLES[path]}" + (f"\t{PAGES[path].count('<a href')}" if ~{ words }~ else "")
        for path in sorted(found, key=str.encode)
    ]
    return "\n".join(lines + (["broken", *sorted(lost)] if ~{ broken }~ else [])) + "\n"


def start():
    def answer(method, path, headers, body):
        if path in MOVED:
            return 302, b"", {"Location": MOVED[path]}
        return (200, PAGES[path].encode()) if path in PAGES else (404, b"<html><head><title>none</title></head></html>")

    serve_http(PORT, answer)

~% else %~
SECRET = f"{rng.getrandbits(80):x}"
KEYWORDS = [word() for _ in range(9)]
JOURNAL = [(rng.choice(KEYWORDS), rng.choice([0, 1, 1]) * rng.randint(1, 99)) for _ in range(40)]
JOURNAL += [(JOURNAL[0][0], 5), (JOURNAL[1][0], 0), (JOURNAL[0][0], 6)]


def result():
    return "".join(f"{key}={value}\n" for key, value in by_bytes(dict(JOURNAL).items()) if value or not ~{ zero }~)


def start():
    def talk(say, lines):
        def challenged():
            nonce = os.urandom(8).hex()
            say(f"NONCE {nonce}")
            good = next(lines, "") == "AUTH " + hashlib.new("~{ algo }~", (nonce + SECRET).encode()).hexdigest()
            say("OK" if good else "NO")
            return good

        if not challenged():
            return
        rows = iter([f"{key} {value}" for key, value in JOURNAL])
        for number, line in enumerate(lines, 1):
            if line != "READ":
                say("what?")
            elif ~{ again }~ and number % 11 == 7:
                if not challenged():
                    return
            else:
                say(next(rows, "END"))

    serve_lines(PORT, talk)

~% endif %~

if __name__ == "__main__":
    start()
~%- if kind == "login" %~
    with open("/app/credentials.json", "w") as file:
        json.dump(PASSWORD, file)
~%- elif kind == "secret" %~
    with open("/app/secret", "w") as file:
        file.write(SECRET + "\n")
~%- endif %~
