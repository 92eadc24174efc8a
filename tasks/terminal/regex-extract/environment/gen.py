"""The text of one variant, from its name alone; and what was hidden in it."""

import pathlib
import random

FILLER = "the pump was checked again near gate five and nobody saw größere Lecks so we left a note for them".split()
HEX = "0123456789abcdefABCDEF"
DECOYS = {
    "email": ["root@localhost", "@team.example", "a@b", "mail@", "x(at)y.org"],
    "ipv4": ["256.1.1.1", "1.2.3", "10.2.3.4.5", "010.1.1.1", "1.2.3.999", "300.20.1.12"],
    "ticket": ["A-1", "ABCDEF-12", "ab-12", "QA-0", "XY-123456", "X9-AB-12", "OPS-12b"],
    "colour": ["#12345", "#ggg", "&#123", "##fff", "#abcdefa", "a#fff", "#12"],
    "uuid": ["0a1b2c3d-1111-2222-3333-44445555666", "0a1b2c3d-1111-2222-3333-4444555566667", "0a1b2c3-1111-2222-3333-444455556666"],
    "mac": ["00:11-22:33-44:55", "00:11:22:33:44", "00:11:22:33:44:55:66", "0g:11:22:33:44:55", "aa-bb:cc-dd-ee-ff"],
    "host": ["ftp://files.example/a", "http:/one.example/", "www.two.example", "HTTP://three.example/"],
    "money": ["12,34.50 EUR", "7.5 EUR", "100 EUR", "12.00 USD", "99.00 EURO", "12.00EUR", "1,00,000.00 EUR"],
    "field": ["superuser=eve", "user_id=7", "user =zed", "x.user=kim", "the-user=lee"],
    "date": ["2024-13-01", "2024-00-10", "2024-06-32", "12024-01-01", "2024-1-01", "2024-01-011", "2024-02-03-4"],
    "isbn": ["9780306406158", "978-0-306-40615-8", "978030640615", "9770306406157", "97803064061577", "979-1-2345-6789-0"],
    "version": ["1.2", "1.2.3.4", "01.2.3", "x1.2.3", "1.2.3-rc1", "1.02.3", "2.1.3b"],
}


def hexes(rng, count):
    return "".join(rng.choice(HEX) for _ in range(count))


def make(rng, kind):
    """One true thing: as it stands in the text, and as it is to be reported."""
    if kind == "email":
        text = f"{rng.choice(['ann', 'Bo.Li', 'c_d', 'e+f'])}{rng.randrange(40)}@{rng.choice(['mail.', '', 'x-y.'])}{rng.choice(['Example.org', 'example.com'])}"
        return text, text.lower()
    if kind == "ipv4":
        text = ".".join(str(rng.choice([0, 9, 10, 99, 100, 199, 200, 249, 250, 255, rng.randrange(256)])) for _ in range(4))
    elif kind == "ticket":
        text = f"{rng.choice(['QA', 'OPS', 'CORE', 'INFRA'])}-{rng.choice([7, 70, 12345, rng.randrange(1, 9999)])}"
    elif kind == "colour":
        text = "#" + hexes(rng, rng.choice([3, 6]))
        return text, text.lower()
    elif kind == "uuid":
        text = "-".join(hexes(rng, count) for count in (8, 4, 4, 4, 12))
        return text, text.lower()
    elif kind == "mac":
        text = rng.choice(":-").join(hexes(rng, 2) for _ in range(6))
        return text, text.lower().replace("-", ":")
    elif kind == "host":
        host = f"{rng.choice(['www.', 'Api.', ''])}{rng.choice(['one', 'two', 'x-y'])}.{rng.choice(['example', 'Example'])}"
        return f"{rng.choice(['http', 'https'])}://{host}{rng.choice(['/', ':8080/a', '/p?q=http', '/a.b/c.'])}", host.lower()
    elif kind == "money":
        number = rng.choice([rng.randrange(1000), rng.randrange(1000, 10**7)])
        text = f"{number:{rng.choice(['', ','])}}.{rng.randrange(100):02d}"
        return f"{text} EUR", text.replace(",", "")
    elif kind == "field":
        value = rng.choice(["ada", "bo.b", "Ada L", "c, d", "é-mil", f"u{rng.randrange(9)}"])
        return (f'user="{value}"' if " " in value or rng.random() < 0.3 else f"user={value}"), value
    elif kind == "date":
        text = f"{rng.randrange(1990, 2030)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 32):02d}"
    elif kind == "isbn":
        body = rng.choice(["978", "979"]) + "".join(rng.choice("0123456789") for _ in range(9))
        digits = body + str(-sum(int(d) * (1, 3)[n % 2] for n, d in enumerate(body)) % 10)
        return rng.choice([digits, f"{digits[:3]}-{digits[3]}-{digits[4:8]}-{digits[8:12]}-{digits[12]}"]), digits
    else:
        text = f"{rng.randrange(3)}.{rng.choice([0, 2, 9, 10, 11])}.{rng.choice([0, 3, 20])}"
        return rng.choice(["", "v"]) + text, text
    return text, text


def build():
    """Texts by path, and what is in them as (path, line number, value)."""
    rng = random.Random("~{ family }~/~{ variant }~")
    kind, skip = "~{ kind }~", "~{ skip }~"
    things = [make(rng, kind) for _ in range(26)]
    paths = ["docs/a/one.txt", "docs/a-b.txt", "docs/z.txt", "docs/a/deep/er/two.txt", "docs/a/one.txt.bak", "docs/notes.md"]
    paths = paths if "~{ post }~" == "tree" else ["notes.txt"]
    texts, truth = {}, []
    for path in paths:
        lines, decoys = [], DECOYS[kind] * 2
        rng.shuffle(decoys)
        for number in range(1, 12 * (7 - len(paths)) // 2 + 1):
            hidden = skip == "fence" and number % 9 in (4, 5, 6)
            mark = {"hash": "# ", "quoted": "> "}.get(skip, "") if number % 4 == 2 else ""
            words = rng.sample(FILLER, 5)
            for place in range(rng.choice([0, 1, 1, 2, 3]) if number > 2 else 2):
                text, value = rng.choice(things)
                if path.endswith(".txt") and not hidden and not mark:
                    truth.append((path, number, value))
                wrap = rng.choice(["{}", "{},", "({})", "'{}'", "{}.", "<{}>"] if kind != "field" else ["{}", "{};", "{}, "])
                words.insert(2 * place + 1, wrap.format(text))
            if decoys:
                words.append(rng.choice(["{}", "{},", "({})"]).format(decoys.pop()))
            fence = {3: "-----BEGIN", 7: "-----END"}.get(number % 9) if skip == "fence" else None
            if fence:
                truth = [entry for entry in truth if entry[1] != number]
            lines.append(fence or mark + " ".join(words))
        texts[path] = "".join(line + "\n" for line in lines)
    return texts, truth


if __name__ == "__main__":
    for path, text in build()[0].items():
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).write_text(text, encoding="utf-8")
