"""Migrate the pristine rows in Python, compare them with /app/app.db, and try its constraints on copies in memory."""

import re
import sqlite3
import sys
from datetime import date

sys.path.insert(0, "/tests")
import gen

OPS = dict((op + ":").split(":")[:2] for op in gen.OPS)
COMPLAINTS = []


def expect(what: str, want, have) -> None:
    if want != have:
        COMPLAINTS.append(f"{what}: expected {want!r}, found {have!r}")


def iso(joined: str) -> str:
    parts = [int(part) for part in re.split(r"\D", joined)]
    return str(date(*(parts[::-1] if "." in joined else parts)))


def name_parts(name: str) -> list[str]:
    words = name.split(" ")
    cut = 0 if len(words) == 1 else 1 if OPS["names"] == "first" else len(words) - 1
    return [" ".join(words[:cut]), " ".join(words[cut:])]


def migrated() -> dict:
    """Wanted columns and rows by table."""
    rows, orders = gen.tables()
    people = {row[0]: dict(zip(("id", "name", "email", "joined", "balance", "tags", "team"), row, strict=True)) for row in rows}
    kept = {id: id for id in people}
    if "emails" in OPS:
        groups = {}
        for id, person in people.items():
            person["email"] = person["email"].strip().lower()
            groups.setdefault(person["email"], []).append(id)
        for ids in groups.values():
            best = min(ids) if OPS["emails"] == "lowest" else max(ids, key=lambda id: iso(people[id]["joined"]))
            kept |= dict.fromkeys(ids, best)
    people = {id: person for id, person in people.items() if kept[id] == id}
    orders = [(id, kept.get(owner, owner), cents) for id, owner, cents in orders]
    lost = [order for order in orders if order[1] not in people]
    if "orphans" in OPS:
        orders = [order for order in orders if order not in lost]
        orders += [(id, None, cents) for id, _, cents in lost] if OPS["orphans"] == "adopt" else []
    teams = {name: n for n, name in enumerate(sorted({p["team"] for p in people.values()} - {""}), 1)}
    heads, table = [], []
    for person in people.values():
        row = {"id": person["id"]}
        row |= dict(zip(("first_name", "last_name"), name_parts(person["name"]))) if "names" in OPS else {"name": person["name"]}
        row |= {"email": person["email"], "joined": iso(person["joined"]) if "dates" in OPS else person["joined"]}
        digits = person["balance"].replace(",", "")
        cents = 0 if not digits else int(digits.replace(".", "")) * (1 if "." in digits else 100)
        row |= {"balance_cents": cents} if "cents" in OPS else {"balance": person["balance"]}
        row |= {} if "tags" in OPS else {"tags": person["tags"]}
        row |= {"team_id": teams.get(person["team"])} if "teams" in OPS else {"team": person["team"]}
        heads, table = list(row), [*table, tuple(row.values())]
    result = {"people": (heads, table), "orders": (["id", "person_id", "cents"], orders)}
    if OPS.get("orphans") == "archive":
        result["lost_orders"] = (["id", "person_id", "cents"], lost)
    if "teams" in OPS:
        result["teams"] = (["id", "name"], [(n, name) for name, n in teams.items()])
    if "tags" in OPS:
        tags = {(id, t.strip().lower()) for id, p in people.items() for t in p["tags"].split(",") if t.strip()}
        result["person_tags"] = (["person_id", "tag"], list(tags))
    if "view" in OPS:
        sums = [(id, [o[2] for o in orders if o[1] == id]) for id in people]
        result["totals"] = (["person_id", "orders", "cents"], [(id, len(c), sum(c)) for id, c in sums])
    if "audit" in OPS:
        result["audit"] = (["person_id", "old", "new"], [])
    return result


def attempt(what: str, statements: list, refused: bool, query: str = "SELECT 1", want: list | None = None) -> None:
    """Run the statements on a copy: the last one must be refused by a constraint, or the query must give `want`."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    base.backup(copy)
    copy.execute("PRAGMA foreign_keys = ON")
    try:
        for statement in statements:
            copy.execute(statement)
        found = copy.execute(query).fetchall()
    except sqlite3.Error as error:
        if not (refused and isinstance(error, sqlite3.IntegrityError)):
            COMPLAINTS.append(f"{what}: {error}")
    else:
        if refused:
            COMPLAINTS.append(f"{what}: was not refused")
        elif want is not None:
            expect(what, want, found)
    copy.close()


def insert(table: str, **changes) -> str:
    """A copy of the table's first row with some columns changed."""
    heads, rows = want[table]
    row = {**dict(zip(heads, rows[0], strict=True)), **changes}
    cells = ", ".join("NULL" if v is None else str(v) if isinstance(v, int) else "'" + v.replace("'", "''") + "'" for v in row.values())
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({cells})"


want = migrated()
base = sqlite3.connect("file:/app/app.db?mode=ro", uri=True)
names = [r[0] for r in base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite@_%' ESCAPE '@'")]
expect("tables and views", sorted(want), sorted(names))
expect("user_version", int("~{ release }~"), base.execute("PRAGMA user_version").fetchone()[0])
if not COMPLAINTS:
    for table, (heads, rows) in want.items():
        expect(f"columns of {table}", heads, [row[1] for row in base.execute(f"PRAGMA table_info({table})")])
        expect(f"rows of {table}", sorted(rows, key=repr), sorted(base.execute(f"SELECT * FROM {table}").fetchall(), key=repr))
if not COMPLAINTS:
    new = {"id": 9999, "email": "somebody@example.org"}
    buyer = next(owner for _, owner, _ in want["orders"][1] if owner in {row[0] for row in want["people"][1]})
    attempt("a new person", [insert("people", **new)], refused=False)
    attempt("a second person of the same id", [insert("people", email="x@example.org")], refused=True)
    attempt("a second order of the same id", [insert("orders")], refused=True)
    if "emails" in OPS:
        attempt("the same address twice", [insert("people", id=9999)], refused=True)
        attempt("no address", [insert("people", id=9999, email=None)], refused=True)
    if "dates" in OPS:
        for text in ("05.04.2023", "2023/4/5", "2023-4-5", "2023-04-055", "20a3-04-05"):
            attempt(f"joined {text}", [insert("people", **new, joined=text)], refused=True)
    if "cents" in OPS:
        attempt("no balance", [insert("people", **new, balance_cents=None)], refused=True)
    if "names" in OPS:
        attempt("no first name", [insert("people", **new, first_name=None)], refused=True)
        attempt("no last name", [insert("people", **new, last_name=None)], refused=True)
    if "tags" in OPS:
        tagged = want["person_tags"][1][0][0]
        free = [f"DELETE FROM orders WHERE person_id = {tagged}", f"DELETE FROM people WHERE id = {tagged}"]
        query = f"SELECT COUNT(*) FROM person_tags WHERE person_id = {tagged}"
        attempt("a tag twice", [insert("person_tags")], refused=True)
        attempt("a tag of nobody", [insert("person_tags", person_id=9999)], refused=True)
        attempt("tags of somebody deleted", free, False, query, [(0,)])
    if "teams" in OPS:
        attempt("a team twice", [insert("teams", id=99)], refused=True)
        attempt("a team without name", [insert("teams", id=99, name=None)], refused=True)
        attempt("a team that is none", [insert("people", **new, team_id=99)], refused=True)
    if "orphans" in OPS:
        query = f"SELECT COUNT(*), COUNT(person_id) FROM orders WHERE id IN ({','.join(str(o[0]) for o in want['orders'][1] if o[1] == buyer)})"
        total = sum(o[1] == buyer for o in want["orders"][1])
        left = {"delete": [(0, 0)], "adopt": [(total, 0)], "archive": None}[OPS["orphans"]]
        attempt("an order of nobody", [insert("orders", id=9999, person_id=9999)], refused=True)
        attempt("deleting a buyer", [f"DELETE FROM people WHERE id = {buyer}"], OPS["orphans"] == "archive", query, left)
    if "audit" in OPS:
        column = "balance_cents" if "cents" in OPS else "balance"
        old = base.execute(f"SELECT {column} FROM people WHERE id = {buyer}").fetchone()[0]
        text = "4711" if "cents" in OPS else "'47.11'"
        change = f"UPDATE people SET {column} = {text} WHERE id = {buyer}"
        row = (buyer, old, 4711 if "cents" in OPS else "47.11")
        other = f"UPDATE people SET joined = '2020-01-01' WHERE id = {buyer}"
        attempt("audit of two equal updates", [change, change, other], False, "SELECT * FROM audit", [row])
print("\n".join(COMPLAINTS) or "as expected")
sys.exit(bool(COMPLAINTS))
