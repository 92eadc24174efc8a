cat > /app/server.py <<'END'
import collections, hashlib, json, re, threading
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
~%- if auth %~
TOKEN = "Bearer " + open("/app/token").read().strip()
~%- endif %~
LOCK = threading.Lock()
DATA = {}
def whole(text, least=None):
    value = int(text) if re.fullmatch(r"-?[0-9]+", text) else None
    return None if value is None or (least is not None and value < least) else value
~%- if kind == "items" %~
ITEMS = sorted(json.load(open("/app/items.json")), key=lambda item: item["id"])
def answer(method, parts, query, body, headers):
    if method != "GET" or parts[:1] != ["items"] or len(parts) > 2:
        return 404, {"error": "no such path"}
    if len(parts) == 2:
        found = [item for item in ITEMS if str(item["id"]) == parts[1]]
        return (200, found[0]) if found else (404, {"error": "no such item"})
    found = [item for item in ITEMS if "group" not in query or item["group"] == query["group"]]
    ~%- if page %~
    least, offset, limit = (whole(query.get(key, default), 0) for key, default in (("min", "0"), ("offset", "0"), ("limit", "1000000")))
    if None in (least, offset, limit):
        return 400, {"error": "not a whole number"}
    found = [item for item in found if item["price"] >= least][offset:][:limit]
    ~%- endif %~
    return 200, found
~%- elif kind == "kv" %~
def answer(method, parts, query, body, headers):
    if parts == ["kv"] and method == "GET":
        return 200, sorted(DATA)
    if len(parts) != 2 or parts[0] != "kv":
        return 404, {"error": "no such path"}
    key = parts[1]
    ~%- if strict %~
    if not re.fullmatch("[a-z0-9-]{1,32}", key):
        return 400, {"error": "bad key"}
    ~%- endif %~
    if method == "PUT":
        ~%- if size %~
        if len(body) > ~{ size }~:
            return 413, {"error": "too large"}
        ~%- endif %~
        ~%- if etag %~
        if "If-Match" in headers and (key not in DATA or headers["If-Match"] != tag(DATA[key])):
            return 412, {"error": "not what is there"}
        ~%- endif %~
        status = 201 if key not in DATA else 204
        DATA[key] = body
        return status, b""
    if key not in DATA:
        return 404, {"error": "no such key"}
    if method == "DELETE":
        del DATA[key]
        return 204, b""
    return 200, DATA[key], {"Content-Type": "application/octet-stream"~{ ', "ETag": tag(DATA[key])' if etag else "" }~}
def tag(data):
    return '"' + hashlib.sha256(data).hexdigest() + '"'
~%- elif kind == "text" %~
PATHS = ["reverse", "stats"~{ ', "digest"' if digest else "" }~~{ ', "top"' if freq else "" }~]
def answer(method, parts, query, body, headers):
    if len(parts) != 1 or parts[0] not in PATHS:
        return 404, {"error": "no such path"}
    if method != "POST":
        return 405, {"error": "POST only"}, {"Allow": "POST"}
    ~%- if digest %~
    if parts == ["digest"]:
        algo = query.get("algo", "sha256")
        if algo not in ("md5", "sha1", "sha256"):
            return 400, {"error": "unknown algorithm"}
        return 200, {"algo": algo, "hex": hashlib.new(algo, body).hexdigest()}
    ~%- endif %~
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return 400, {"error": "not UTF-8"}
    ~%- if freq %~
    if parts == ["top"]:
        n = whole(query.get("n", "3"), 1)
        if n is None:
            return 400, {"error": "bad n"}
        counts = collections.Counter(re.findall("[a-z]+", text.lower()))
        return 200, sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:n]
    ~%- endif %~
    if parts == ["reverse"]:
        return 200, text[::-1].encode(), {"Content-Type": "text/plain; charset=utf-8"}
    return 200, {"bytes": len(body), "chars": len(text), "words": len(text.split()), "lines": text.count("\n")}
~%- elif kind == "counter" %~
def answer(method, parts, query, body, headers):
    ~%- if top %~
    if method == "GET" and parts == ["top"]:
        best = sorted(DATA.items(), key=lambda pair: (-pair[1], pair[0]))[:int(query["n"])]
        return 200, [{"name": name, "value": value} for name, value in best]
    ~%- endif %~
    if len(parts) != 2 or parts[0] != "c":
        return 404, {"error": "no such path"}
    name = parts[1]
    if method == "POST":
        by = whole(query.get("by", "1"))
        if by is None:
            return 400, {"error": "not a whole number"}
        ~%- if floor %~
        if DATA.get(name, 0) + by < 0:
            return 409, {"error": "below zero"}
        ~%- endif %~
        DATA.setdefault(name, 0)
        DATA[name] += by
    if name not in DATA:
        return 404, {"error": "no such counter"}
    if method == "DELETE":
        DATA.pop(name)
        return 204, b""
    return 200, {"name": name, "value": DATA[name]}
~%- elif kind == "calc" %~
WORK = {"sum": sum, "mean": lambda x: sum(x) / len(x)~{ ', "median": lambda x: (sorted(x)[(len(x) - 1) // 2] + sorted(x)[len(x) // 2]) / 2, "range": lambda x: max(x) - min(x)' if more else "" }~}
def answer(method, parts, query, body, headers):
    if len(parts) != 1 or parts[0] not in WORK:
        return 404, {"error": "no such path"}
    ~%- if post %~
    if method not in ("GET", "POST"):
        return 405, {"error": "GET or POST"}, {"Allow": "GET, POST"}
    if method == "POST":
        try:
            x = json.loads(body)["x"]
            good = isinstance(x, list) and all(type(value) is int for value in x)
        except (ValueError, TypeError, KeyError):
            good = False
        return (200, {"result": WORK[parts[0]](x)}) if good and x else (400, {"error": "no list of whole numbers"})
    ~%- endif %~
    x = [whole(value) for value in query.get("x", [])]
    if not x or None in x:
        return 400, {"error": "x must be whole numbers"}
    return 200, {"result": WORK[parts[0]](x)}
~%- elif kind == "queue" %~
def answer(method, parts, query, body, headers):
    if parts[:1] != ["q"] or len(parts) not in (2, 3) or parts[2:] not in ([], ["move"]):
        return 404, {"error": "no such path"}
    line = DATA.setdefault(parts[1], [])
    ~%- if move %~
    if len(parts) == 3:
        if "to" not in query:
            return 400, {"error": "no to"}
        other = DATA.setdefault(query["to"], [])
        if not line:
            return 204, b""
        ~%- if cap %~
        if len(other) >= ~{ cap }~ and other is not line:
            return 429, {"error": "full"}
        ~%- endif %~
        other.append(line.pop(~{ "" if lifo else 0 }~))
        return 200, {"length": len(other)}
    ~%- endif %~
    if method == "POST":
        ~%- if cap %~
        if len(line) >= ~{ cap }~:
            return 429, {"error": "full"}
        ~%- endif %~
        line.append(body)
        return 202, {"length": len(line)}
    if method == "GET":
        return 200, {"length": len(line)}
    if not line:
        return 204, b""
    return 200, line.pop(~{ "" if lifo else 0 }~), {"Content-Type": "application/octet-stream"}
~%- else %~
HITS, GONE, NUMBERS = collections.Counter(), set(), iter(range(1, 10**9))
def answer(method, parts, query, body, headers):
    if method == "POST" and parts == ["links"]:
        try:
            url = json.loads(body)["url"]
            good = re.match("https?://", url)
        except (ValueError, TypeError, KeyError):
            good = None
        if not good:
            return 400, {"error": "no url"}
        ~%- if same %~
        for code, known in DATA.items():
            if known == url and code not in GONE:
                return 200, {"code": code}
        ~%- endif %~
        code = f"k{next(NUMBERS)}"
        DATA[code] = url
        return 201, {"code": code}
    if len(parts) != 2 or parts[0] not in ("l", "stats") or parts[1] not in DATA:
        return 404, {"error": "no such path"}
    code = parts[1]
    if code in GONE:
        return 410, {"error": "gone"}
    ~%- if gone %~
    if method == "DELETE":
        GONE.add(code)
        return 204, b""
    ~%- endif %~
    if parts[0] == "stats":
        return 200, {"url": DATA[code], "hits": HITS[code]}
    HITS[code] += 1
    return 302, b"", {"Location": DATA[code]}
~%- endif %~
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def respond(self):
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = {key: ~{ "values" if kind == "calc" else "values[-1]" }~ for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        with LOCK:
            status, reply, *extra = self.decide(url.path, query, body)
        headers = {"Content-Type": "application/json", **(extra[0] if extra else {})}
        ~%- if trace %~
        if "X-Request-Id" in self.headers:
            headers["X-Request-Id"] = self.headers["X-Request-Id"]
        ~%- endif %~
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def decide(self, path, query, body):
        ~%- if health %~
        if path == "/healthz" and self.command == "GET":
            return 200, b"ok", {"Content-Type": "text/plain"}
        ~%- endif %~
        ~%- if auth %~
        if self.headers.get("Authorization") != TOKEN:
            return 401, {"error": "who are you"}, {"WWW-Authenticate": "Bearer"}
        ~%- endif %~
        return answer(self.command, [unquote(part) for part in path.split("/")[1:]], query, body, self.headers)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = respond
    def log_message(self, *args):
        pass
ThreadingHTTPServer(("127.0.0.1", ~{ port }~), Handler).serve_forever()
END

setsid nohup python3 /app/server.py > /tmp/server.log 2>&1 < /dev/null &
for n in $(seq 50); do
  curl -s -o /dev/null http://127.0.0.1:~{ port }~/ && break
  sleep 0.05
done
