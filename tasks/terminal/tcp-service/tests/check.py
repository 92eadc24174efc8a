import codecs
import hashlib
import secrets
import socket
import sys
import time

PORT, END, BANNER = ~{ port }~, ~{ ("\r\n" if crlf else "\n") | tojson }~, ~{ banner | tojson }~
LATEST = time.monotonic() + 15
wrong = []
dice = secrets.SystemRandom()


def give_up(why):
    """A server that does not answer ends the check, lest it use up the time there is for it."""
    print("\n".join([*wrong[:30], why]))
    sys.exit(1)


class Client:
    """One connection. Each request ends with LF or CRLF, by chance."""

    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=2)
        self.file = self.socket.makefile("rb")
        if BANNER:
            self.hear(BANNER, "(greeting)")

    def send(self, line, raw=b""):
        self.socket.sendall(line.encode() + dice.choice([b"\n", b"\r\n"]) + raw)

    def hear(self, wanted, asked):
        """The next line; `wanted` is the whole of it, or how it starts when it ends with an ellipsis."""
        try:
            raw = self.file.readline()
        except OSError as error:
            give_up(f"{asked}: {error!r}, wanted {wanted!r}")
        line = raw.decode("utf-8", "replace")
        if not line.endswith(END) or (END == "\n" and line.endswith("\r\n")):
            wrong.append(f"{asked}: {line!r} does not end with {END!r}")
        line = line.rstrip("\r\n")
        if wanted is not None and (not line.startswith(wanted[:-1]) if wanted.endswith("…") else line != wanted):
            wrong.append(f"{asked}: {line!r}, wanted {wanted!r}")
        return line

    def ask(self, line, wanted, raw=b""):
        try:
            self.send(line, raw)
        except OSError as error:
            give_up(f"{line}: {error!r}")
        if time.monotonic() > LATEST:
            give_up("the server is too slow")
        return self.hear(wanted, line)

    def leave(self):
        self.file.close()
        self.socket.close()


def name():
    return "t" + secrets.token_hex(5)


def until(condition, what):
    deadline = time.monotonic() + 2
    while not condition():
        if time.monotonic() > deadline:
            wrong.append(what)
            return
        time.sleep(0.02)


def shouted(line):
    """The command as it is, or with its case mixed where that must be understood."""
    word, space, rest = line.partition(" ")
    return (
        ("".join(dice.choice([c.lower(), c]) for c in word[:-1]) + word[-1].lower() if ~{ nocase }~ else word)
        + space
        + rest
    )


deadline = time.monotonic() + 1.5
while True:
    try:
        silent = Client()
        break
    except OSError as error:
        if time.monotonic() > deadline:
            sys.exit(f"no server on port {PORT}: {error!r}")
        time.sleep(0.05)
one, two = Client(), Client()
a, b = name(), name()
~% if kind == "kv" %~
value = f"some words  {secrets.token_hex(4)} é "
one.ask(f"GET {a}", "NONE")
one.ask(shouted(f"SET {a} {value}"), "OK")
two.ask(shouted(f"GET {a}"), f"VALUE {value}")
two.ask(f"SET {a} x", "OK")
one.ask(f"GET {a}", "VALUE x")
one.ask("SET " + b, "ERR…")
one.ask(f"GET {b}", "NONE")
~% if incr %~
two.ask(f"INCR {a}", "ERR…")
two.ask(f"GET {a}", "VALUE x")
one.ask(f"INCR {b}", "VALUE 1")
two.ask(shouted(f"INCR {b}"), "VALUE 2")
one.ask(f"SET {b} -1", "OK")
two.ask(f"INCR {b}", "VALUE 0")
one.ask(f"GET {b}", "VALUE 0")
~% endif %~
~% if keys %~
stem = name()
listed = sorted(stem + end for end in ("b", "a", "Z", "10", "9"))
for key in dice.sample(listed, len(listed)):
    one.ask(f"SET {key} 1", "OK")
two.ask(shouted(f"KEYS {stem}"), str(len(listed)))
for key in listed:
    two.hear(key, "KEYS")
two.ask(f"KEYS {stem}1", "1")
two.hear(stem + "10", "KEYS")
two.ask(f"KEYS {name()}", "0")
~% endif %~
two.ask(shouted(f"DEL {a}"), "GONE")
one.ask(f"DEL {a}", "NONE")
one.ask(f"GET {a}", "NONE")
~% elif kind == "rpn" %~
x, y = dice.randint(10, 99), dice.randint(2, 9)
one.ask(f"{x} {y} -", f"= {x - y}")
one.ask(f"{x} -{y}", f"= {x - y} {x} -{y}")
two.ask("", "=")
two.ask(f"{y}", f"= {y}")
one.ask("*", f"= {x - y} {-x * y}")
one.ask("swap", f"= {-x * y} {x - y}")
one.ask("dup +", f"= {-x * y} {2 * (x - y)}")
for bad in ("drop drop drop", "7 8 9 what", "drop +", "1 DUP", "drop drop dup", "1.5"):
    one.ask(bad, "ERR…")
    one.ask("", f"= {-x * y} {2 * (x - y)}")
one.ask("drop drop", "=")
two.ask(f"{x} +", f"= {x + y}")
~% if div %~
one.ask(f"-{x} {y} /", f"= {-x // y}")
one.ask(f"drop {x} -{y} %", f"= {x % -y}")
one.ask(f"drop -{x} {y} %", f"= {-x % y}")
for bad in ("0 /", "1 0 %"):
    one.ask(bad, "ERR…")
    one.ask("", f"= {-x % y}")
one.ask("drop", "=")
~% endif %~
~% if cap %~
full = [str(dice.randint(1, 99)) for _ in range(~{ cap }~)]
one.ask(" ".join(full), "= " + " ".join(full))
for bad in ("1", "dup drop", "5 +"):
    one.ask(bad, "ERR…")
    one.ask("", "= " + " ".join(full))
one.ask("+ 3", "= " + " ".join([*full[:-2], str(int(full[-2]) + int(full[-1])), "3"]))
~% endif %~
~% elif kind == "text" %~
for text in (f"Hello {secrets.token_hex(4)} Wörld ", "", "  a  b", "日本 x", "zZaA"):
    one.ask(shouted(f"UPPER {text}"), text.upper())
    two.ask(shouted(f"REV {text}"), text[::-1])
    one.ask(f"LEN {text}", str(len(text)))
~% if hexa %~
    two.ask(shouted(f"HEX {text}"), text.encode().hex())
    one.ask(f"UNHEX {text.encode().hex()}", text)
~% endif %~
~% if rot %~
    for n in (13, dice.randint(1, 25), -dice.randint(1, 25), 26 * dice.randint(2, 9) + 3):
        turned = "".join(
            chr((ord(c) - ord(base) + n) % 26 + ord(base))
            if (base := "a" if "a" <= c <= "z" else "A" if "A" <= c <= "Z" else "")
            else c
            for c in text
        )
        assert n != 13 or turned == codecs.encode(text, "rot13")
        two.ask(f"ROT {n} {text}", turned)
~% endif %~
~% if hexa %~
for bad in ("UNHEX xy", "UNHEX abc", "UNHEX ff", "UNHEX 610a"):
    one.ask(bad, "ERR…")
~% endif %~
~% if rot %~
for bad in ("ROT x abc", "ROT 1.5 abc", "ROT"):
    one.ask(bad, "ERR…")
~% endif %~
~% elif kind == "ticket" %~
one.ask(f"PEEK {a}", "1")
for number in range(1, 6):
    dice.choice([one, two]).ask(shouted(f"NEXT {a}"), str(number))
two.ask(f"PEEK {a}", "6")
two.ask(shouted(f"NEXT {b}"), "1")
third = Client()
third.ask(f"NEXT {a}", "6")
third.leave()
one.ask(f"NEXT {a}", "7")
one.ask("NEXT", "ERR…")
~% if back %~
for bad in (f"BACK {a} 8", f"BACK {a} x", f"BACK {name()} 1"):
    one.ask(bad, "ERR…")
for number in (5, 2):
    one.ask(f"BACK {a} {number}", "OK")
two.ask(f"BACK {a} 2", "ERR…")
two.ask(f"PEEK {a}", "2")
for number in (2, 5, 8):
    two.ask(f"NEXT {a}", str(number))
~% endif %~
~% if reset %~
one.ask(shouted(f"RESET {a}"), "~{ 8 if back else 7 }~")
two.ask(f"NEXT {a}", "1")
two.ask(f"NEXT {b}", "2")
one.ask(f"RESET {name()}", "0")
~% endif %~
~% elif kind == "chat" %~
three = Client()
one.ask(f"SAY hello", "ERR…")
one.ask(shouted(f"NICK {a}"), "OK")
two.ask(f"NICK {a}", "ERR…")
two.ask("NICK a b", "ERR…")
two.ask(f"NICK {b}", "OK")
text = f"good  day {secrets.token_hex(4)} é"
one.ask(shouted(f"SAY {text}"), "OK")
two.hear(f"MSG {a} {text}", "SAY of another")
two.ask("SAY and you", "OK")
one.hear(f"MSG {b} and you", "SAY of another")
c = name()
three.ask(f"NICK {c}", "OK")  # the first line it is sent: nothing was before it had a name
~% if rooms %~
room = name()
for client in (one, two):
    client.ask(shouted(f"JOIN {room}"), "OK")
~% if who %~
two.ask("WHO", "HERE " + " ".join(sorted([a, b])))
~% endif %~
one.ask("SAY in here", "OK")
two.hear(f"MSG {a} in here", "SAY of another")
three.ask(f"JOIN {name()}", "OK")
~% else %~
one.ask("SAY all", "OK")
two.hear(f"MSG {a} all", "SAY of another")
three.hear(f"MSG {a} all", "SAY of another")
~% endif %~
~% if who and not rooms %~
two.ask("WHO", "HERE " + " ".join(sorted([a, b, c])))
~% endif %~
two.ask(f"NICK {b}2", "OK")
three.ask(f"NICK {b}", "OK")
one.leave()
before = len(wrong)
until(lambda: two.ask(f"NICK {a}", None) == "OK", "the name of a client that left was never free")
if len(wrong) == before:
    three.ask(f"NICK {b}2", "OK")
~% if who %~
two.ask("WHO", "HERE " + " ".join(sorted([a~{ ', b + "2"' if not rooms else "" }~])))
~% endif %~
one = Client()
~% elif kind == "blob" %~
data, more = b"\r\n\0\xff" + secrets.token_bytes(dice.randint(20, 60)), b"\n" + secrets.token_bytes(10)


def get(client, blob, wanted):
    client.ask(f"GET {blob}", f"DATA {len(wanted)}")
    got = client.file.read(len(wanted))
    if got != wanted:
        wrong.append(f"GET: {got!r}, wanted {wanted!r}")


stuck = Client()
stuck.send(f"PUT {name()} 500", b"only a part")
for missing in (f"GET {a}", f"SUM {a}", "PUT", f"PUT {a}"):
    one.ask(missing, "ERR…")
one.ask(shouted(f"PUT {a} {len(data)}"), f"OK {len(data)}", data)
get(two, a, data)
two.ask(shouted(f"SUM {a}"), hashlib.sha256(data).hexdigest())
two.ask(f"PUT {a} {len(more)}", f"OK {len(more)}", more)
get(one, a, more)
one.ask(f"PUT {b} 0", "OK 0")
get(two, b, b"")
two.ask(f"SUM {b}", hashlib.sha256(b"").hexdigest())
~% if add %~
one.ask(f"ADD {a} {len(data)}", f"OK {len(more + data)}", data)
get(two, a, more + data)
two.ask(f"ADD {name()} 3", "OK 3", b"abc")
~% endif %~
~% if cap %~
last = ~{ "more + data" if add else "more" }~
one.ask(f"PUT {a} {~{ cap + 1 }~}", "ERR…", b"\nGET\n" + b"x" * ~{ cap - 4 }~)
get(one, a, last)
one.ask(f"PUT {b} {~{ cap }~}", "OK ~{ cap }~", b"y" * ~{ cap }~)
~% if add %~
one.ask(f"ADD {b} 1", "ERR…", b"z")
~% endif %~
get(two, b, b"y" * ~{ cap }~)
~% endif %~
~% else %~
one.ask(shouted(f"LOCK {a}"), "OK")
two.ask(shouted(f"LOCK {a}"), "BUSY")
one.ask(f"LOCK {a}", "OK")
two.ask(f"UNLOCK {a}", "ERR…")
two.ask(f"LOCK {b}", "OK")
two.ask("LOCK", "ERR…")
~% if mine %~
c = "T" + name()
one.ask(f"LOCK {c}", "OK")
one.ask(shouted("MINE"), "MINE " + " ".join(sorted([a, c])))
silent.ask("MINE", "MINE")
one.ask(f"UNLOCK {c}", "OK")
~% endif %~
one.ask(shouted(f"UNLOCK {a}"), "OK")
one.ask(f"UNLOCK {a}", "ERR…")
two.ask(f"LOCK {a}", "OK")
one.ask(f"LOCK {a}", "BUSY")
~% if wait %~
three = Client()
one.send(f"WAIT {a}")
time.sleep(0.15)  # so that the order of asking is known
three.send(f"WAIT {a}")
silent.ask(f"LOCK {name()}", "OK")
two.ask(f"UNLOCK {a}", "OK")
one.hear("OK", "WAIT")
one.ask(f"UNLOCK {a}", "OK")
three.hear("OK", "WAIT")
two.ask(f"LOCK {a}", "BUSY")
three.ask(f"WAIT {a}", "OK")
three.ask(f"UNLOCK {a}", "OK")
two.ask(f"WAIT {a}", "OK")
~% endif %~
two.leave()
for lock in (a, b):
    until(lambda: one.ask(f"LOCK {lock}", None) == "OK", "a lock outlived its client")
two = Client()
~% endif %~
for client in (one, two):
    client.ask("NONSENSE 1 2", "ERR…")
~% if not nocase %~
one.ask("quit", "ERR…")
~% endif %~
one.ask(shouted("QUIT"), "BYE")
try:
    if one.file.read(1):
        wrong.append("after QUIT: more than BYE")
except OSError as error:
    wrong.append(f"after QUIT: not closed: {error!r}")
print("\n".join(wrong[:30]) or "the server does as told")
sys.exit(bool(wrong))
