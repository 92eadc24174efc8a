"""The documents of one variant, from its name alone."""

import json
import pathlib
import random

WORDS = "amber basil cedar delta ember fjord grove heron iris jade karst lilac maple north onyx pearl quartz reed".split()


def nested(rng, depth):
    """A random value; objects and lists down to `depth`."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice([None, True, False, 0, rng.randrange(9999), "", rng.choice(WORDS), "Grüße"])
    if rng.random() < 0.35:
        return [nested(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {word: nested(rng, depth - 1) for word in rng.sample(WORDS, rng.randrange(5))}


def build():
    rng = random.Random("~{ family }~/~{ variant }~")
    words = rng.sample(WORDS, len(WORDS))
    if "~{ shape }~" == "invert":
        names = [f"{word}{number}" for number, word in enumerate(words)]
        users = [{"name": n, "active": rng.random() < 0.7, "groups": rng.choices(words[:7], k=rng.randrange(5))} for n in names]
        for number in (0, 5, 9):
            users[number].update(active=number != 9, groups=[words[1], words[0], words[1], words[number]])
        return {"in.json": {"users": users}}
    if "~{ shape }~" == "unnest":
        orders = []
        for number in rng.sample(range(1, 40), 22):
            person = {"name": words[number % 6], "country": ["NO", "PT", "CL"][number % 3]}
            if number % 6 == 5:
                person["country"] = None
            elif number % 6 == 4:
                del person["country"]
            items = [{"sku": sku, "qty": rng.randrange(1, 9), "price": rng.randrange(50, 900)} for sku in rng.sample(words, rng.randrange(4))]
            for item in items[1:]:
                item["discount"] = rng.randrange(1, 50)
            orders.append({"id": number, "customer": person, "items": items})
        return {"in.json": {"orders": orders}}
    if "~{ shape }~" == "tree":
        ids = rng.sample(range(1, 99), 26)
        nodes = [{"id": i, "parent": None if n < 3 else ids[rng.randrange(n)], "name": f"{words[n % 18]}-{n % 7}", "size": rng.randrange(1, 6) * 10} for n, i in enumerate(ids)]
        for number, parent in ((3, ids[0]), (4, ids[3]), (5, ids[4]), (9, 500), (20, 501), (21, ids[20]), (22, ids[0])):
            nodes[number]["parent"] = parent
        rng.shuffle(nodes)
        return {"in.json": nodes}
    if "~{ shape }~" == "flatten":
        document = {word: nested(rng, 4) for word in words[:6]}
        fixed = {"port": 8080, "tls": False, "motd": None, "hosts": [{"name": "ax"}, {"name": "by", "up": True}], "extra": {}}
        document["server"] = {**{word: nested(rng, 3) for word in words[6:11]}, **fixed}
        return {"in.json": document}
    ids = [f"i{number:02d}" for number in rng.sample(range(99), 18)]
    items = [{"id": i, "name": rng.choice(words), "price": rng.randrange(1, 12) * 100, "stock": rng.randrange(30), "tags": rng.sample(words, 2)} for i in ids[:14]]
    changes = [{"id": i, rng.choice(["name", "price", "stock"]): None} for i in ids[2:5]]
    changes += [{"id": i, "price": rng.randrange(12, 30) * 100, "tags": rng.sample(words, 2)} for i in ids[4:9] + ids[14:17]]
    changes += [{"id": ids[5], "price": None, "stock": 44}, {"id": ids[6], "name": "renamed", "price": 150}]
    return {"in.json": {"items": items}, "patch.json": {"items": changes, "remove": [ids[0], ids[7], ids[17], "i-none"]}}


if __name__ == "__main__":
    for name, value in build().items():
        pathlib.Path(name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
