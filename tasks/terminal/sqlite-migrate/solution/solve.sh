#!/bin/bash
set -eu
~%- set emails = "emails:lowest" in ops or "emails:newest" in ops %~
~%- set names = "names:last" in ops or "names:first" in ops %~
~%- if "dates" in ops %~
python3 - <<'PY'
import sqlite3
from datetime import datetime
base = sqlite3.connect("/app/app.db")
for id, joined in base.execute("SELECT id, joined FROM people").fetchall():
    form = "%d.%m.%Y" if "." in joined else "%Y/%m/%d" if "/" in joined else "%Y-%m-%d"
    base.execute("UPDATE people SET joined = ? WHERE id = ?", (datetime.strptime(joined, form).strftime("%Y-%m-%d"), id))
base.commit()
PY
~%- endif %~
~%- if emails %~
sqlite3 /app/app.db <<'SQL'
UPDATE people SET email = lower(trim(email));
~%- if "emails:lowest" in ops %~
CREATE TABLE kept AS SELECT email, MIN(id) AS id FROM people GROUP BY email;
~%- else %~
CREATE TABLE kept AS SELECT email, id, MAX(joined) FROM people GROUP BY email;
~%- endif %~
UPDATE orders SET person_id = (SELECT kept.id FROM people JOIN kept USING (email) WHERE people.id = person_id)
  WHERE person_id IN (SELECT id FROM people);
DELETE FROM people WHERE id NOT IN (SELECT id FROM kept);
DROP TABLE kept;
SQL
~%- endif %~
~%- if names %~
python3 - <<'PY'
import sqlite3
base = sqlite3.connect("/app/app.db")
base.execute("ALTER TABLE people ADD COLUMN first_name TEXT")
for id, name in base.execute("SELECT id, name FROM people").fetchall():
    first, _, last = ~% if "names:last" in ops %~name.rpartition(" ")~% else %~name.partition(" ") if " " in name else ("", "", name)~% endif %~

    base.execute("UPDATE people SET first_name = ?, name = ? WHERE id = ?", (first, last, id))
base.commit()
PY
~%- endif %~
~%- if "teams" in ops %~
sqlite3 /app/app.db <<'SQL'
CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO teams (name) SELECT DISTINCT team FROM people WHERE team <> '' ORDER BY team;
SQL
~%- endif %~
sqlite3 /app/app.db <<'SQL'
CREATE TABLE fresh (
  id INTEGER PRIMARY KEY,
  ~% if names %~first_name TEXT NOT NULL, last_name TEXT NOT NULL~% else %~name TEXT~% endif %~,
  email TEXT~% if emails %~ NOT NULL UNIQUE~% endif %~,
  joined TEXT~% if "dates" in ops %~ CHECK (joined GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]')~% endif %~,
  ~% if "cents" in ops %~balance_cents INTEGER NOT NULL~% else %~balance TEXT~% endif %~,
  tags TEXT,
  ~% if "teams" in ops %~team_id INTEGER REFERENCES teams(id)~% else %~team TEXT~% endif %~

);
INSERT INTO fresh SELECT id, ~% if names %~first_name, ~% endif %~name, email, joined,
  ~% if "cents" in ops %~CAST(round(replace(balance, ',', '') * 100) AS INTEGER)~% else %~balance~% endif %~, tags,
  ~% if "teams" in ops %~(SELECT teams.id FROM teams WHERE teams.name = team)~% else %~team~% endif %~

  FROM people;
DROP TABLE people;
ALTER TABLE fresh RENAME TO people;
SQL
~%- if "tags" in ops %~
python3 - <<'PY'
import sqlite3
base = sqlite3.connect("/app/app.db")
base.execute("CREATE TABLE person_tags (person_id INTEGER REFERENCES people(id) ON DELETE CASCADE, tag TEXT, PRIMARY KEY (person_id, tag))")
for id, tags in base.execute("SELECT id, tags FROM people").fetchall():
    for tag in {tag.strip().lower() for tag in tags.split(",")} - {""}:
        base.execute("INSERT INTO person_tags VALUES (?, ?)", (id, tag))
base.execute("ALTER TABLE people DROP COLUMN tags")
base.commit()
PY
~%- endif %~
~%- if "orphans:archive" in ops %~
sqlite3 /app/app.db <<'SQL'
CREATE TABLE lost_orders (id INTEGER PRIMARY KEY, person_id INTEGER, cents INTEGER);
INSERT INTO lost_orders SELECT * FROM orders WHERE person_id NOT IN (SELECT id FROM people);
SQL
~%- endif %~
~%- if "orphans:adopt" in ops %~
sqlite3 /app/app.db "UPDATE orders SET person_id = NULL WHERE person_id NOT IN (SELECT id FROM people)"
~%- elif "orphans:archive" in ops or "orphans:delete" in ops %~
sqlite3 /app/app.db "DELETE FROM orders WHERE person_id NOT IN (SELECT id FROM people)"
~%- endif %~
sqlite3 /app/app.db <<'SQL'
CREATE TABLE fresh (
  id INTEGER PRIMARY KEY,
  person_id INTEGER ~% if "orphans:adopt" in ops %~REFERENCES people(id) ON DELETE SET NULL~% elif "orphans:archive" in ops %~REFERENCES people(id) ON DELETE RESTRICT~% elif "orphans:delete" in ops %~REFERENCES people(id) ON DELETE CASCADE~% endif %~,
  cents INTEGER
);
INSERT INTO fresh SELECT * FROM orders;
DROP TABLE orders;
ALTER TABLE fresh RENAME TO orders;
SQL
~%- if "view" in ops %~
sqlite3 /app/app.db <<'SQL'
CREATE VIEW totals AS SELECT people.id AS person_id, COUNT(orders.id) AS orders, COALESCE(SUM(cents), 0) AS cents
  FROM people LEFT JOIN orders ON orders.person_id = people.id GROUP BY people.id;
SQL
~%- endif %~
~%- if "audit" in ops %~
~%- set money = "balance_cents" if "cents" in ops else "balance" %~
sqlite3 /app/app.db <<'SQL'
CREATE TABLE audit (person_id INTEGER, old, new);
CREATE TRIGGER watch AFTER UPDATE ON people WHEN OLD.~{ money }~ IS NOT NEW.~{ money }~
BEGIN INSERT INTO audit VALUES (NEW.id, OLD.~{ money }~, NEW.~{ money }~); END;
SQL
~%- endif %~
sqlite3 /app/app.db "PRAGMA user_version = ~{ release }~; SELECT sql FROM sqlite_master;"
