"""What the service starts from."""

import json
import random

AUTH, KIND = ~{ auth }~, "~{ kind }~"
rng = random.Random(~{ seed }~)
TOKEN = f"{rng.getrandbits(96):x}"
ITEMS = [
    {
        "id": number,
        "name": f"{rng.choice(['cup', 'pen', 'jar', 'été'])} {number}",
        "group": rng.choice(["a", "b", "c d"]),
        "price": rng.randint(1, 90),
    }
    for number in rng.sample(range(1, 400), 40)
]

if __name__ == "__main__":
    if AUTH:
        with open("/app/token", "w") as file:
            file.write(TOKEN + "\n")
    if KIND == "items":
        with open("/app/items.json", "w") as file:
            json.dump(ITEMS, file)
