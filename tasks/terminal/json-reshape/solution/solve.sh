~% if shape == "invert" %~jq '[.users[]~{ " | select(.active)" if active else "" }~ | .name as $name | .groups[] | {group: ., name: $name}]' in.json > /tmp/pairs.json

jq 'group_by(.group) | map({group: .[0].group, members: (map(.name) | unique)} | .size = (.members | length))~{ " | map(select(.size >= " ~ least ~ "))" if least else "" }~' /tmp/pairs.json > /tmp/groups.json

jq '~{ {"object": "map({(.group): .members}) | add", "count": "map({(.group): .size}) | add", "list": "sort_by(-.size, .group)"}[out] }~' /tmp/groups.json > out.json
~% elif shape == "unnest" %~jq '[.orders[]~{ " | select(.id >= " ~ only ~ ")" if only else "" }~ | {order: .id, customer: .customer.name~{ ', country: (.customer.country // "' ~ default ~ '")' if default else "" }~} + (.items[] | {sku, total: (.qty * .price~{ " - (.discount // 0)" if discount else "" }~)})]' in.json > /tmp/rows.json

~% if out == "rows" %~jq 'sort_by(~{ "-.total, " if order == "total" else "" }~.order, .sku)' /tmp/rows.json > out.json
~% else %~jq 'group_by(.~{ out }~) | map({~{ out }~: .[0].~{ out }~, items: length, total: (map(.total) | add)}) | sort_by(~{ "-.total, " if order == "total" else "" }~.~{ out }~)' /tmp/rows.json > out.json
~% endif %~~% elif shape == "tree" %~~% set known = "(.parent as $p | $p == null or ($ids | index($p)))" %~jq 'map(.id) as $ids | map(~{ "if " ~ known ~ " then . else .parent = null end" if orphans == "root" else "select(" ~ known ~ ")" }~)' in.json > /tmp/nodes.json

jq 'def tree($parent): . as $all | map(select(.parent == $parent)) | sort_by(~{ "-.size, " if order == "size" else "" }~.name) | map(
    . as $n | .children = ($all | tree($n.id))~{ " | .total = ([.size] + [.children[].total] | add)" if total else "" }~);
  tree(null)' /tmp/nodes.json > /tmp/tree.json

jq 'def tidy: map({name~{ ", total" if total else "" }~, children: (.children | tidy)}~{ " | if .children == [] then del(.children) else . end" if leafless else "" }~); tidy' /tmp/tree.json > out.json
~% elif shape == "flatten" %~jq '~{ "." ~ below ~ " | " if below else "" }~[paths(type != "object" and type != "array") as $p
  | {key: ($p | map(~{ "if type == \"number\" then . + 1 else . end | " if base == 1 else "" }~tostring) | join("~{ sep }~")~{ " | ascii_upcase" if upper else "" }~), value: getpath($p)}]' in.json > /tmp/flat.json

jq '~{ "map(select(.value != null)) | " if nulls == "drop" else "" }~~{ {"object": "from_entries", "text": "map(.value |= tostring) | from_entries", "list": "map(.type = (.value | type)) | sort_by(.key)"}[out] }~' /tmp/flat.json > out.json
~% else %~jq -s '.[1] as $patch | reduce $patch.items[] as $p (.[0].items | map({(.id): .}) | add;
  ~{ "" if add else "if .[$p.id] then " }~.[$p.id] = ((.[$p.id] // {}) + $p~{ " + {tags: ((.[$p.id].tags // []) + ($p.tags // []) | unique)}" if union else "" }~)~{ "" if add else " else . end" }~)' in.json patch.json > /tmp/merged.json

jq --slurpfile patch patch.json 'delpaths([$patch[0].remove[] | [.]]) | map(with_entries(select(.value != null)))~{ " | map(select((.stock // -1) >= " ~ least ~ "))" if least else "" }~ | sort_by(~{ "-(.price // 0), " if order == "price" else "" }~.id)' /tmp/merged.json > /tmp/kept.json

~% if audit %~jq -s '{items: .[1], removed: ([.[2].remove[] as $id | .[0] | select(has($id))] | length)}' /tmp/merged.json /tmp/kept.json patch.json > out.json
~% else %~cp /tmp/kept.json out.json
~% endif %~~% endif %~