#!/bin/bash
~% if kind == "rotate" -%~
dir=$1
keep=$2
cd ~{ '$dir' if "folder" in bugs else '"$dir"' }~ || exit 2
for log in *.log; do
  [ ~{ '-e' if "empty" in bugs else '-s' }~ "$log" ] || continue
  n=$keep
  rm -f "$log.$n"
  while [ "$n" -gt ~{ 2 if "first" in bugs else 1 }~ ]; do
    m=$((n - 1))
    if [ -e "$log.$m" ]; then mv "$log.$m" "$log.$n"; fi
    n=$m
  done
  mv ~{ '$log $log.1' if "quotes" in bugs else '"$log" "$log.1"' }~
  ~{ 'touch $log' if "fresh" in bugs else ': > "$log"' }~
done
~%- elif kind == "top" -%~
file=$1
n=~{ '3' if "number" in bugs else '${2:-3}' }~
awk '~{ '/ERROR/' if "level" in bugs else '$2 == "ERROR"' }~ {print $3}' "$file" |
  ~{ 'uniq -c' if "groups" in bugs else 'sort | uniq -c' }~ | awk '{print $1, $2}' |
  sort -k 1,1~{ 'r' if "numeric" in bugs else 'nr' }~ -k 2,2 |
  head -n "$n" | awk '{print $2 ": " $1}'
total=0
~{ 'cat "$file" | ' if "subshell" in bugs else '' }~while read -r _ level _; do
  if [ "$level" = ERROR ]; then total=$((total + 1)); fi
done~{ '' if "subshell" in bugs else ' < "$file"' }~
echo "total $total"
~%- elif kind == "sync" -%~
src=$1
dest=$2
if [ ! -d "$src" ]; then
  echo "no such folder: $src" >&2
  exit ~{ 0 if "status" in bugs else 1 }~
fi
find "$src" -type f ~{ "! -name '.*' " if "hidden" in bugs else "" }~-printf '%P\n' | LC_ALL=C sort |
while ~{ 'read path' if "read" in bugs else 'IFS= read -r path' }~; do
  if [ ! -e "$dest/$path" ]; then
    mark=+
  elif ~{ '[ "$src/$path" -nt "$dest/$path" ]' if "compare" in bugs else '! cmp -s "$src/$path" "$dest/$path"' }~; then
    mark='~'
  else
    continue
  fi
  mkdir -p "~{ '$dest' if "depth" in bugs else '$(dirname "$dest/$path")' }~"
  cp "$src/$path" "$dest/$path"
  printf '%s %s\n' "$mark" "$path"
done
~%- elif kind == "render" -%~
text=$(cat "$1"; echo x)
text=${text%x}
while ~{ 'read line' if "read" in bugs else 'IFS= read -r line' }~~{ '' if "last" in bugs else ' || [ -n "$line" ]' }~; do
  case $line in '' ~{ '' if "comments" in bugs else "| '#'* " }~) continue ;; esac
  name=${line%%=*}
  value=${line~{ '##' if "equals" in bugs else '#' }~*=}
  text=${text~{ '/' if "once" in bugs else '//' }~"{{$name}}"/~{ '$value' if "ampersand" in bugs else '"$value"' }~}
done < "$2"
printf ~{ '"$text"' if "format" in bugs else "'%s' \"$text\"" }~
~%- elif kind == "total" -%~
declare -A sums
{
  ~{ ':' if "heading" in bugs else 'read -r _' }~
  while IFS=, read -r _ group amount~{ '' if "last" in bugs else ' || [ -n "$amount" ]' }~; do
    ~{ ':' if "carriage" in bugs else "amount=${amount%$'\\r'}" }~
    [ -n "$amount" ] || continue
    sign=+
    case $amount in -*) sign=-; amount=${amount#-} ;; esac
    sums[$group]=$((${sums[$group]:-0} $sign ~{ '' if "octal" in bugs else '10#' }~$amount))
  done
} < "$1"
for group in ~{ '${!sums[@]}' if "quotes" in bugs else '"${!sums[@]}"' }~; do
  echo "$group ${sums[$group]}"
done | LC_ALL=C sort
~%- elif kind == "tidy" -%~
cd "$1" || exit 1
LC_ALL=C
shopt -s nullglob ~{ '' if "hidden" in bugs else 'dotglob' }~
for old in ~{ '$(ls -A)' if "words" in bugs else '*' }~; do
  [ ~{ '-e' if "kinds" in bugs else '-f' }~ "$old" ] && [ ! -L "$old" ] || continue
  new=$(printf '%s\n' "$old" | ~{ "tr A-Z a-z | sed 's/ /_/'" if "spaces" in bugs else "tr 'A-Z ' 'a-z_'" }~)
  [ "$new" != "$old" ] || continue
  if [ ~{ '-d' if "clobber" in bugs else '-e' }~ "$new" ]; then
    echo "skip $old"
  else
    mv ~{ '' if "dash" in bugs else '-- ' }~"$old" "$new"
    echo "$old -> $new"
  fi
done
~%- elif kind == "retry" -%~
limit=$1
shift
tries=0
while :; do
  tries=$((tries + 1))
  ~{ '$*' if "words" in bugs else '"$@"' }~
  status=$?
  [ "$status" -ne 0 ] || break
  ~{ ':' if "missing" in bugs else '[ "$status" -ne 127 ] || break' }~
  [ "$tries" ~{ '-le' if "limit" in bugs else '-lt' }~ "$limit" ] || break
done
echo "tries: $tries"~{ '' if "stream" in bugs else ' >&2' }~
exit ~{ '$?' if "status" in bugs else '"$status"' }~
~%- else -%~
~{ 'cat "$1" "$2" | ' if "join" in bugs else '' }~awk '
  ~{ '/#/ || /^[ \\t]*$/' if "comments" in bugs else '/^[ \\t]*(#|$)/' }~ {next}
  {
    at = index($0, "=")
    key = substr($0, 1, at - 1)
    value = ~{ 'substr($0, at + 1); sub(/=.*/, "", value)' if "equals" in bugs else 'substr($0, at + 1)' }~
    gsub(/~{ '[ \\t]+' if "spaces" in bugs else '^[ \\t]+|[ \\t]+$' }~/, "", key)
    if (!(key in values)) order[++n] = key
    ~{ 'if (!(key in values)) ' if "latest" in bugs else '' }~values[key] = value
  }
  END {for (~{ 'key in values) print key "=" values[key]' if "order" in bugs else 'i = 1; i <= n; i++) print order[i] "=" values[order[i]]' }~}
'~{ '' if "join" in bugs else ' "$1" "$2"' }~
~%- endif %~
