"""The log files of one variant, from its name alone; and the requests they tell of."""

import datetime
import gzip
import pathlib
import random

PATHS = ["/", "/about", "/shop", "/shop/", "/shop/cart", "/api/items", "/api/items/7", "/login", "/docs/a", "/style.css", "/app.js", "/img/logo.png", "/old"]
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/8.1", "GoogleBot/2.1", "examplebot/1.0 (+http://b.example)", "Web-Spider 3", "Opera/9.8", "wget"]
BROKEN = ['"-" 408 - "-" "-"', '"\\x16\\x03\\x01" 400 166 "-" "-"', '"get / HTTP/1.1" 400 0 "-" "curl/8.1"', '"GET /shop" 400 12 "-" "-"']


def request(rng, ip, when):
    target = rng.choice(PATHS + ["/gone", "/gone", "/lost"])
    if rng.random() < 0.3:
        target += rng.choice(["?id=1", "?id=2", "?next=/shop?x", "?v=3.css"])
    status = "404" if target.startswith(("/gone", "/lost")) else rng.choice(["200", "200", "200", "301", "500", "503"])
    size = "-" if status == "301" else str(rng.randrange(100, 9000))
    referrer = rng.choice(["-", "http://a.example/", "http://b.example/x", "https://c.example/?q=1"])
    method = rng.choice(["GET", "GET", "GET", "POST", "HEAD"])
    return {"ip": ip, "when": when, "method": method, "target": target, "status": status, "bytes": size, "referrer": referrer, "agent": rng.choice(AGENTS)}


def build():
    rng = random.Random("~{ family }~/~{ variant }~")
    start = datetime.datetime(2024, 4, 29, 7)
    ips = [f"10.{rng.randrange(200)}.0.{number}" for number in range(1, 9)]
    requests, seconds = [], 0
    for _ in range(240):
        seconds += rng.choice([0, 1, 7, 29, 30, 31, 59, 60, 61, 900, 2500])
        ip = ips[min(rng.randrange(8), rng.randrange(8))]
        requests.append(request(rng, ip, start + datetime.timedelta(seconds=seconds)))
    lines = []
    for number, r in enumerate(requests):
        head = f"{r['ip']} - {rng.choice(['-', 'ann'])} [{r['when']:%d/%b/%Y:%H:%M:%S} +0000]"
        if number % 23 == 5:
            lines.append(f"{head} {BROKEN[number // 23 % 4]}")
        lines.append(f'{head} "{r["method"]} {r["target"]} HTTP/1.{number % 2}" {r["status"]} {r["bytes"]} "{r["referrer"]}" "{r["agent"]}"')
    names = ["access.log", "access.log.1", "access.log.2.gz"][: ~{ files }~]
    share = len(lines) // len(names) + 1
    texts = {name: "".join(line + "\n" for line in lines[n * share : (n + 1) * share]) for n, name in enumerate(reversed(names))}
    return texts, requests, len(lines) - len(requests)


if __name__ == "__main__":
    pathlib.Path("logs").mkdir(exist_ok=True)
    for name, text in build()[0].items():
        data = text.encode()
        pathlib.Path("logs", name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
