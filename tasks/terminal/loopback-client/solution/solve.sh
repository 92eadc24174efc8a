set -eu
~%- if kind == "discover" %~
ss -Hltn | awk '{print $4}' | sed 's/.*://' | awk '$1 >= 20000 && $1 <= 29999' > /tmp/ports

while read -r port; do
  exec 3<> /dev/tcp/127.0.0.1/$port
  if read -r -t 0.3 -u 3 greeting; then
    echo VALUE >&3
    read -r -u 3 value
    echo "$port $greeting $value"
  fi
  exec 3>&-
done < /tmp/ports > /tmp/services

awk '{role = $4; if (role == "~{ role }~") print $1, $2, $3, $5}' /tmp/services ~% if newest %~| sort -k 2,2 -k 3,3Vr | awk '!seen[$2]++' ~% endif %~| sort -n > /tmp/chosen
cut -d ' ' -f 1-3 /tmp/chosen > /app/result.txt
awk '{total += $4} END {print "total", total}' /tmp/chosen >> /app/result.txt
~%- else %~
cat > /tmp/client.py <<'END'
import collections, hashlib, json, re, socket, urllib.error, urllib.request
from urllib.parse import urljoin, urlsplit
BASE = "http://127.0.0.1:~{ port }~"
def get(url, body=None, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=5).read()
~%- if kind == "pages" %~
last, page = {}, "/records~{ "" if cursor else "?page=1" }~"
while True:
    try:
        reply = json.loads(get(BASE + page))
    except urllib.error.HTTPError as error:
        if error.code != 503: raise
        continue
    for record in reply["records"]:
        if record["id"] not in last or record["rev"] > last[record["id"]]["rev"]:
            last[record["id"]] = record
    ~%- if cursor %~
    page = reply.get("next")
    ~%- else %~
    number = int(page.rpartition("=")[2])
    page = f"/records?page={number + 1}" if number < reply["pages"] else None
    ~%- endif %~
    if not page: break
groups = collections.defaultdict(list)
for record in last.values():
    if not record.get("deleted"):
        groups[record["kind"]].append(record["amount"])
print("kind,count,total")
for kind in sorted(groups):
    print(kind, len(groups[kind]), sum(groups[kind]), sep=",")
~%- elif kind == "line" %~
link = None
def ask(text):
    global link
    while True:
        if not link:
            link = socket.create_connection(("127.0.0.1", ~{ port }~)).makefile("rw", newline="\n")
        try:
            link.write(text + "\n")
            link.flush()
            answer = link.readline()
        except OSError:
            answer = ""
        if answer:
            return answer.rstrip("\n")
        link = None
def value_of(name, seen=()):
    if name in seen:
        return "-"
    what, _, rest = ask("GET " + name).partition(" ")
    return rest if what == "VALUE" else value_of(rest, (*seen, name)) if what == "ALIAS" else None
names = [link.readline().rstrip("\n") for _ in range(int(ask("LIST")))]
found = [(name, value_of(name)) for name in names]
for name, value in sorted(found):
    if value is not None:
        print(name, value, sep="\t")
~%- elif kind == "login" %~
def login():
    return json.loads(get(BASE + "/login", open("/app/credentials.json", "rb").read()))["token"]
token = login()
def ask(path):
    global token
    while True:
        try:
            return json.loads(get(BASE + path, Authorization="Bearer " + token))
        except urllib.error.HTTPError as error:
            if error.code == 403: return None
            if error.code != 401: raise
            token = login()
accounts = {number: ask("/accounts/" + number) for number in ask("/accounts")}
readable = [account for account in accounts.values() if account]
totals = collections.Counter()
for account in readable:
    totals[account["currency"]] += account["balance"]
richest = max(readable, key=lambda account: account["balance"])["owner"]
print(json.dumps({"accounts": len(readable), "totals": totals, "richest": richest~{ ', "locked": sorted(n for n in accounts if not accounts[n])' if locked else "" }~}))
~%- elif kind == "join" %~
rows, rates = collections.defaultdict(lambda: [0, 0]), {}
def rate(currency):
    if currency not in rates:
        rates[currency] = json.loads(get(f"http://127.0.0.1:~{ port + 2 }~/rate/{currency}"))["rate"]
    return rates[currency]
for user in json.loads(get(BASE + "/users")):
    try:
        orders = json.loads(get(f"http://127.0.0.1:~{ port + 1 }~/orders?user={user['id']}"))
    except urllib.error.HTTPError as error:
        if error.code != 404: raise
        orders = []
    rows[user["city"]][0] += 1
    rows[user["city"]][1] += sum(order["price"]~{ ' * rate(order["currency"])' if rates else "" }~ for order in orders if order["state"] == "paid")
for city, (count, total) in sorted(rows.items(), key=lambda row: (~{ "-row[1][1], " if ranked else "" }~row[0])):
    print(city, count, total, sep="\t")
~%- elif kind == "crawl" %~
queue, seen, titles, broken = ["/"], {"/"}, {}, set()
while queue:
    asked = queue.pop()
    try:
        with urllib.request.urlopen(BASE + asked, timeout=5) as reply:
            page, text = urlsplit(reply.url).path, reply.read().decode()
    except urllib.error.HTTPError as error:
        if error.code != 404: raise
        broken.add(asked)
        continue
    links = re.findall('<a href="([^"]*)"', text)
    titles[page] = re.search("<title>(.*?)</title>", text)[1]~{ ' + f"\\t{len(links)}"' if words else "" }~
    for link in links:
        parts = urlsplit(urljoin(BASE + page, link))
        target = parts.path
        if parts.netloc == urlsplit(BASE).netloc and target not in seen:
            seen.add(target)
            queue.append(target)
for page in sorted(titles):
    print(page, titles[page], sep="\t")
~%- if broken %~
print("broken", *sorted(broken), sep="\n")
~%- endif %~
~%- else %~
secret = open("/app/secret").read().strip()
link = socket.create_connection(("127.0.0.1", ~{ port }~)).makefile("rw", newline="\n")
def ask(text):
    link.write(text + "\n")
    link.flush()
    return link.readline().rstrip("\n")
def authenticate(line):
    nonce = line.split(" ")[1]
    assert ask("AUTH " + hashlib.new("~{ algo }~", (nonce + secret).encode()).hexdigest()) == "OK"
authenticate(link.readline().rstrip("\n"))
latest = {}
while (line := ask("READ")) != "END":
    if line.startswith("NONCE "):
        authenticate(line)
        continue
    key, value = line.split(" ")
    latest[key] = int(value)
for key in sorted(latest):
    if latest[key] or not ~{ zero }~:
        print(f"{key}={latest[key]}")
~%- endif %~
END

python3 /tmp/client.py > /app/result.txt
~%- endif %~
