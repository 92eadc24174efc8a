~% set k = "upper(trim(" ~ key ~ "))" if norm else key %~~% set expr = {lid: "l." ~ lid, key: "coalesce(l.k, p.k)", lval: "l." ~ lval, rname: "p." ~ rname, rval: "p." ~ rval, "label": "t.label"} %~sqlite3 /tmp/join.db '.import --csv ~{ left }~.csv l0' '.import --csv ~{ right }~.csv r'~{ " '.import --csv " ~ third ~ ".csv t'" if third else "" }~

sqlite3 /tmp/join.db "CREATE TABLE l AS SELECT ~{ lid }~, ~{ k }~ AS k, ~{ lval }~ FROM l0"

sqlite3 /tmp/join.db "CREATE TABLE p AS SELECT ~{ k }~ AS k, ~{ rname }~,
  ~{ {"latest": rval ~ ", max(updated)", "first": rval ~ ", min(rowid)", "sum": "sum(" ~ rval ~ ") AS " ~ rval, "all": rval, "none": rval}[dup] }~
  FROM r~{ " GROUP BY 1" if dup in ["latest", "first", "sum"] else "" }~"

sqlite3 /tmp/join.db '.mode csv' '.separator ~{ sep }~ "\n"' '.headers on'~{ " '.nullvalue " ~ fill ~ "'" if fill else "" }~ "
  SELECT ~% for col in cols %~~{ expr[col] }~ AS ~{ col }~~{ "" if loop.last else ", " }~~% endfor %~ FROM l
  ~{ {"inner": "JOIN", "left": "LEFT JOIN", "anti": "LEFT JOIN", "full": "FULL JOIN"}[how] }~ p ON p.k = l.k~{ " LEFT JOIN t ON t.code = p." ~ rval if third else "" }~
  WHERE ~{ "p.k IS NULL" if how == "anti" else "1" }~~{ " AND CAST(l." ~ lval ~ " AS INTEGER) >= " ~ min_val if min_val else "" }~
  ORDER BY ~{ {"lid": "l." ~ lid, "value": "CAST(l." ~ lval ~ " AS INTEGER) DESC, l." ~ lid, "key": "coalesce(l.k, p.k), l." ~ lid}[order] }~~{ ", p." ~ rname if dup == "all" else "" }~" > joined.csv

~% if rejects %~sqlite3 /tmp/join.db "SELECT DISTINCT k FROM l WHERE k NOT IN (SELECT k FROM p) ORDER BY k" > rejects.txt
~% endif %~