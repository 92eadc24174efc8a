set -eu
~%- set make = "ln -srn" if style == "relative" else "ln -sn" %~
~% if kind == "stow" %~
grep -v '^#' /app/packages.order | ~{ "tac" if win == "first" else "cat" }~ > /tmp/order
~%- if local %~
find /app/farm -type l -delete
~%- endif %~

while read -r package; do
  cd "/app/packages/$package"
  ~%- if marker %~
  if [ -e .disabled ]; then continue; fi
  ~%- endif %~
  find . -type f~{ " ! -name '" ~ skip ~ "'" if skip else "" }~ -printf '%P\n' | while IFS= read -r path; do
    ~%- if local %~
    if [ -f "/app/farm/$path" ] && [ ! -L "/app/farm/$path" ]; then continue; fi
    ~%- endif %~
    mkdir -p "$(dirname "/app/farm/$path")"
    ~{ make }~f "/app/packages/$package/$path" "/app/farm/$path"
  done
done < /tmp/order
~% elif kind == "repair" %~
find /app/links -type l ! -exec test -e {} \; -print | LC_ALL=C sort > /tmp/broken
~%- if how == "map" %~
awk -F '\t' '{print length($1) "\t" $0}' /app/moves.tsv | sort -rn | cut -f 2- > /tmp/moves
~%- endif %~

while IFS= read -r link; do
  text=$(readlink "$link")
  ~%- if how == "name" %~
  new=$(find /app/store -type f -name "$(basename "$text")" | LC_ALL=C sort | ~{ "head" if pick == "first" else "tail" }~ -n 1)
  ~%- else %~
  new=
  while IFS="$(printf '\t')" read -r old to; do
    case $text in "$old"/*) new=$to${text#"$old"}; break;; esac
  done < /tmp/moves
  ~%- endif %~
  if [ -n "$new" ] && [ -e "$new" ]; then ~{ make }~f "$new" "$link"; else rm "$link"; echo "${link#/app/links/}" >> /tmp/removed; fi
done < /tmp/broken
~%- if log %~

LC_ALL=C sort /tmp/removed > /app/removed.txt
~%- endif %~
~% elif kind == "releases" %~
ls /app/releases | grep -E -- '-[0-9]+(\.[0-9]+)*$' | while read -r name; do
  ~%- if marker %~
  if [ -e "/app/releases/$name/BROKEN" ]; then continue; fi
  ~%- endif %~
  echo "${name%-*} ${name##*-}"
done | sort -V > /tmp/versions
find /app/current -type l -delete

while read -r app version; do
  ~%- if previous %~
  if [ -L "/app/current/$app" ]; then cp -PfT "/app/current/$app" "/app/current/$app.previous"; fi
  ~%- endif %~
  ~{ make }~f "/app/releases/$app-$version" "/app/current/$app"
  ~%- if minor %~
  ~{ make }~f "/app/releases/$app-$version" "/app/current/$app-${version%%.*}"
  ~%- endif %~
done < /tmp/versions
~% elif kind == "views" %~
tail -n +2 /app/catalog.tsv | while IFS="$(printf '\t')" read -r path date tags; do
  ~%- if ghosts %~
  [ -e "/app/items/$path" ] || continue
  ~%- endif %~
  ~%- if since %~
  [[ ! $date < "~{ since }~" ]] || continue
  ~%- endif %~
  echo "$tags" | tr ',' '\n'~{ " | tr A-Z a-z | sed 's/^ *//; s/ *$//; /^$/d'" if norm else "" }~ | sed "s|^|$path\tby-tag/|"
  ~%- if years %~
  printf '%s\tby-date/%s\n' "$path" "$(echo "$date" | cut -c 1-7 | tr - /)"
  ~%- endif %~
done > /tmp/places

while IFS="$(printf '\t')" read -r path place; do
  mkdir -p "/app/views/$place"
  ~{ make }~ "/app/items/$path" "/app/views/$place/~{ "${path//\\//--}" if clash else "${path##*/}" }~"
done < /tmp/places
~% elif kind == "dedupe" %~
~%- set rank = {"first": "0", "oldest": "%T@", "shortest": "0"}[keep] %~
cd /app/data && find . -type f~{ " -size +" ~ (min - 1) ~ "c" if min else "" }~~{ " ! -name '" ~ skip ~ "'" if skip else "" }~ -printf '~{ rank }~\t%P\n' ~{ "| awk -F '\\t' '{print length($2) \"\\t\" $2}' " if keep == "shortest" else "" }~| LC_ALL=C sort -t "$(printf '\t')" -k 1,1n -k 2,2 | cut -f 2 > /tmp/order
tr '\n' '\0' < /tmp/order | xargs -0 sha256sum > /tmp/sums

awk '{path = substr($0, 67); if ($1 in kept) print path "\t" kept[$1]; else kept[$1] = path}' /tmp/sums > /tmp/pairs
~%- if log %~
cd /app/data && cut -f 1 /tmp/pairs | tr '\n' '\0' | xargs -0 stat -c %s | paste -sd + | bc > /app/saved.txt
~%- endif %~
while IFS="$(printf '\t')" read -r path kept; do
  ~{ make }~f "/app/data/$kept" "/app/data/$path"
done < /tmp/pairs
~% else %~
find /app/links -type l ! -xtype l | LC_ALL=C sort > /tmp/links

while IFS= read -r link; do
  printf '%s\t%s\n' "$link" "$(readlink -f "$link")"
done < /tmp/links~{ " | grep -P '\\t/app/store/'" if within else "" }~ > /tmp/ends

while IFS="$(printf '\t')" read -r link end; do
  ~%- if copy %~
  case $link in ~{ copy }~) if [ -f "$end" ]; then cp --remove-destination "$end" "$link"; continue; fi;; esac
  ~%- endif %~
  ~{ make }~f "$end" "$link"
done < /tmp/ends
~% endif -%~
