cat > /app/server.py <<'END'
import hashlib, re, socketserver, threading
LOCK = threading.Condition()
DATA, OUT, HELD, MEMBERS, WAITING = {}, {}, {}, [], []
class Handler(socketserver.StreamRequestHandler):
    def say(self, text):
        self.wfile.write(text.encode() + b"~{ "\\r\\n" if crlf else "\\n" }~")
    def handle(self):
        self.stack = []
        self.name, self.room = None, "lobby"
        ~%- if banner %~
        self.say("~{ banner }~")
        ~%- endif %~
        with LOCK:
            MEMBERS.append(self)
        try:
            while raw := self.rfile.readline():
                line = raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
                word, space, rest = line.partition(" ")
                word = ~{ "word.upper()" if nocase else "word" }~
                if word == "QUIT" and not space:
                    self.say("BYE")
                    return
                ~%- if kind == "blob" %~
                size = re.search(" ([0-9]+)$", rest)
                body = self.rfile.read(int(size[1])) if size and word in ("PUT"~{ ', "ADD"' if add else "" }~,) else b""
                rest = rest, body
                ~%- endif %~
                with LOCK:
                    try:
                        reply = self.~{ "work(line)" if kind == "rpn" else "answer(word, rest)" }~
                    except (ValueError, KeyError, IndexError, ZeroDivisionError) as error:
                        reply = f"ERR {error!r}"
                    if isinstance(reply, bytes):
                        self.wfile.write(reply)
                    else:
                        self.say(reply)
        except OSError:
            pass  # the client went away
        finally:
            with LOCK:
                MEMBERS.remove(self)
                for name in [name for name, holder in HELD.items() if holder is self]:
                    del HELD[name]
                LOCK.notify_all()
~%- if kind == "kv" %~
    def answer(self, word, rest):
        key, _, value = rest.partition(" ")
        if not key or (word == "SET") != bool(value):
            raise ValueError("arguments")
        if word == "SET":
            DATA[key] = value
            return "OK"
        if word == "GET":
            return f"VALUE {DATA[key]}" if key in DATA else "NONE"
        if word == "DEL":
            return "NONE" if DATA.pop(key, None) is None else "GONE"
        ~%- if keys %~
        if word == "KEYS":
            found = sorted((k for k in DATA if k.startswith(key)), key=str.encode)
            return "~{ "\\r\\n" if crlf else "\\n" }~".join([str(len(found)), *found])
        ~%- endif %~
        ~%- if incr %~
        if word == "INCR":
            old = DATA.get(key, "0")
            if not re.fullmatch("-?[0-9]+", old):
                raise ValueError("no number")
            DATA[key] = str(int(old) + 1)
            return f"VALUE {DATA[key]}"
        ~%- endif %~
        raise ValueError("unknown")
~%- elif kind == "rpn" %~
    def work(self, line):
        stack = list(self.stack)
        for word in line.split():
            if re.fullmatch("-?[0-9]+", word):
                stack.append(int(word))
            elif word in ("+", "-", "*"~{ ', "/", "%"' if div else "" }~, "swap"):
                right, left = stack.pop(), stack.pop()
                stack += [right, left] if word == "swap" else [left + right] if word == "+" else [left - right] if word == "-" else [left * right] if word == "*" else [left // right] if word == "/" else [left % right]
            elif word == "dup":
                stack.append(stack[-1])
            elif word == "drop":
                stack.pop()
            else:
                raise ValueError(word)
            ~%- if cap %~
            if len(stack) > ~{ cap }~:
                raise ValueError("full")
            ~%- endif %~
        self.stack = stack
        return " ".join(["=", *map(str, stack)])
~%- elif kind == "text" %~
    def answer(self, word, rest):
        if word == "UPPER":
            return rest.upper()
        if word == "REV":
            return rest[::-1]
        if word == "LEN":
            return str(len(rest))
        ~%- if rot %~
        if word == "ROT":
            n, _, text = rest.partition(" ")
            n = int(n)
            turn = lambda c, a: chr((ord(c) - ord(a) + n) % 26 + ord(a))
            return "".join(turn(c, "a") if "a" <= c <= "z" else turn(c, "A") if "A" <= c <= "Z" else c for c in text)
        ~%- endif %~
        ~%- if hexa %~
        if word == "HEX":
            return rest.encode().hex()
        if word == "UNHEX":
            text = bytes.fromhex(rest if " " not in rest else "x").decode()
            if "\r" in text or "\n" in text:
                raise ValueError("line end")
            return text
        ~%- endif %~
        raise ValueError("unknown")
~%- elif kind == "ticket" %~
    def answer(self, word, rest):
        ~%- if back %~
        if word == "BACK":
            name, number = rest.split(" ")
            OUT[name].remove(int(number))
            return "OK"
        ~%- endif %~
        if not rest or " " in rest:
            raise ValueError("name")
        out = OUT.setdefault(rest, set())
        def next_free(name):
            number = 1
            while number in out:
                number += 1
            return number
        if word == "NEXT":
            number = next_free(rest) # give
            out.add(next_free(rest))
            return str(number)
        if word == "PEEK":
            return str(next_free(rest))
        ~%- if reset %~
        if word == "RESET":
            return str(len(OUT.pop(rest)))
        ~%- endif %~
        raise ValueError("unknown")
~%- elif kind == "chat" %~
    def answer(self, word, rest):
        if word == "NICK":
            if not re.fullmatch("[A-Za-z0-9]+", rest) or any(m.name == rest for m in MEMBERS if m is not self):
                raise ValueError("name")
            self.name = rest
            return "OK"
        ~%- if rooms %~
        if word == "JOIN":
            if not rest or " " in rest:
                raise ValueError("room")
            self.room = rest
            return "OK"
        ~%- endif %~
        if not self.name:
            raise ValueError("no name")
        if word == "SAY":
            for member in [m for m in MEMBERS if m.name and m.room == self.room and m is not self]:
                try:
                    member.say(f"MSG {self.name} {rest}")
                except OSError:
                    pass  # it is just leaving
            return "OK"
        ~%- if who %~
        if word == "WHO" and not rest:
            return "HERE " + " ".join(sorted(m.name for m in MEMBERS if m.name and m.room == self.room))
        ~%- endif %~
        raise ValueError("unknown")
~%- elif kind == "blob" %~
    def answer(self, word, rest):
        rest, body = rest
        if word in ("PUT"~{ ', "ADD"' if add else "" }~,):
            name, size = rest.split(" ")
            new = (DATA.get(name, b"") if word == "ADD" else b"") + body[:int(size)]
            ~%- if cap %~
            if len(new) > ~{ cap }~:
                raise ValueError("too large")
            ~%- endif %~
            DATA[name] = new
            return f"OK {len(new)}"
        name = rest
        if word == "GET":
            return f"DATA {len(DATA[name])}~{ "\\r\\n" if crlf else "\\n" }~".encode() + DATA[name]
        if word == "SUM":
            return hashlib.sha256(DATA[name]).hexdigest()
        raise ValueError("unknown")
~%- else %~
    def answer(self, word, rest):
        ~%- if mine %~
        if word == "MINE" and not rest:
            return " ".join(["MINE", *sorted(name for name, holder in HELD.items() if holder is self)])
        ~%- endif %~
        if not rest or " " in rest:
            raise ValueError("name")
        if word == "LOCK":
            return "OK" if HELD.setdefault(rest, self) is self else "BUSY"
        if word == "UNLOCK":
            if HELD.get(rest) is not self:
                raise ValueError("not yours")
            del HELD[rest]
            LOCK.notify_all()
            return "OK"
        ~%- if wait %~
        if word == "WAIT":
            WAITING.append((rest, self))
            LOCK.wait_for(lambda: HELD.get(rest, self) is self and next(who for name, who in WAITING if name == rest) is self)
            WAITING.remove((rest, self))
            HELD[rest] = self
            return "OK"
        ~%- endif %~
        raise ValueError("unknown")
~%- endif %~
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 32
Server(("127.0.0.1", ~{ port }~), Handler).serve_forever()
END

setsid nohup python3 /app/server.py > /tmp/server.log 2>&1 < /dev/null &
for n in $(seq 40); do
  nc -z 127.0.0.1 ~{ port }~ && break
  sleep 0.05
done
