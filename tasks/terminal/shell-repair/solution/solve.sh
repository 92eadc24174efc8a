cat /app/~{ kind }~.sh
cp /app/~{ kind }~.sh /tmp/broken.sh
~% set fixes = {
  "rotate": {"folder": 's/^cd $dir/cd "$dir"/', "empty": 's/\\[ -e "$log" \\] ||/[ -s "$log" ] ||/', "first": 's/-gt 2/-gt 1/', "quotes": 's/mv $log $log.1/mv "$log" "$log.1"/', "fresh": 's/touch $log/: > "$log"/'},
  "top": {"number": 's/^n=3/n=${2:-3}/', "level": 's/.\\/ERROR\\/ /\'$2 == "ERROR" /', "groups": 's/^  uniq -c/  sort | uniq -c/', "numeric": 's/1,1r/1,1nr/', "subshell": 's/^cat "$file" | //; s/^done$/done < "$file"/'},
  "sync": {"status": 's/exit 0/exit 1/', "hidden": 's/ ! -name .[.][*].//', "read": 's/while read path/while IFS= read -r path/', "compare": 's/elif \\[ .* \\]; then/elif ! cmp -s "$src\\/$path" "$dest\\/$path"; then/', "depth": 's/mkdir -p "$dest"/mkdir -p "$(dirname "$dest\\/$path")"/'},
  "render": {"read": 's/while read line/while IFS= read -r line/', "last": 's/read\\(.*\\) line;/read\\1 line || [ -n "$line" ];/', "comments": "s/in '' )/in '' | '#'*)/", "equals": 's/line##/line#/', "once": 's|text/"|text//"|', "ampersand": 's|/$value}|/"$value"}|', "format": 's/^printf "$text"/printf %s "$text"/'},
  "total": {"heading": '4s/:/read -r _/', "last": 's/group amount;/group amount || [ -n "$amount" ];/', "carriage": "6s/:/amount=${amount%$'\\\\r'}/", "octal": 's/$sign $amount/$sign 10#$amount/', "quotes": 's/in ${!sums\\[@\\]}/in "${!sums[@]}"/'},
  "tidy": {"hidden": 's/nullglob $/nullglob dotglob/', "words": 's/in $(ls -A)/in */', "kinds": 's/\\[ -e "$old"/[ -f "$old"/', "spaces": 's|s/ /_/|&g|', "clobber": 's/-d "$new"/-e "$new"/', "dash": 's/mv "/mv -- "/'},
  "retry": {"words": 's/$\\*/"$@"/', "missing": '10s/:/[ "$status" -ne 127 ] || break/', "limit": 's/-le/-lt/', "stream": 's/^echo .*/& >\\&2/', "status": 's/exit $?/exit "$status"/'},
  "merge": {"join": 's/^cat .* | //; s/^\'$/\' "$1" "$2"/', "comments": 's/^  .#. || .*next/  \\/^[ \\\\t]*(#|$)\\/ {next/', "equals": 's/; sub(.*//', "spaces": 's/gsub(.*/gsub(\\/^[ \\\\t]+|[ \\\\t]+$\\/, "", key)/', "latest": 's/if .* values\\[key\\] =/values[key] =/', "order": 's/^  END.*/  END {for (i = 1; i <= n; i++) print order[i] "=" values[order[i]]}/'}}[kind] %~
~%- for bug in bugs %~

sed -i ~{ fixes[bug] | quote }~ /app/~{ kind }~.sh # ~{ bug }~
~%- endfor %~

bash -n /app/~{ kind }~.sh
