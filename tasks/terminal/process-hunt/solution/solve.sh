set -u
for p in /proc/[0-9]*; do
  pid=${p#/proc/}
  job=$(tr '\0' '\n' < $p/environ | sed -n 's/^JOB=//p')
  [ -n "$job" ] || continue
  ~%- for kind, arg in clauses %~
  ~% if kind == "cwd" -%~
  [ "$(readlink $p/cwd)" = ~{ arg }~ ]
  ~%- elif kind == "open" -%~
  find $p/fd -lname '~{ arg }~' | grep -q .
  ~%- elif kind == "writes" -%~
  find $p/fd -lname '~{ arg }~' -perm -200 | grep -q .
  ~%- elif kind == "deleted" -%~
  find $p/fd -lname '* (deleted)' | grep -q .
  ~%- elif kind == "env" -%~
  grep -qzxF '~{ arg }~' $p/environ
  ~%- elif kind == "title" -%~
  [ "$(head -zn 1 $p/cmdline | tr -d '\0')" = ~{ arg }~ ]
  ~%- elif kind == "port" -%~
  ss -Hltnp 'sport = :~{ arg }~' | grep -q "pid=$pid,"
  ~%- elif kind == "child" -%~
  [ "$(head -zn 1 /proc/$(awk '/^PPid/ {print $2}' $p/status)/cmdline | tr -d '\0')" = ~{ arg }~ ]
  ~%- elif kind == "stopped" -%~
  grep -q '^State:.T' $p/status
  ~%- elif kind == "nice" -%~
  [ "$(ps -o ni= -p $pid | tr -d ' ')" = ~{ arg }~ ]
  ~%- elif kind == "umask" -%~
  grep -q '^Umask:.*~{ arg }~$' $p/status
  ~%- elif kind == "nofile" -%~
  awk '/^Max open files/ {exit $4 != ~{ arg }~}' $p/limits
  ~%- elif kind == "arg" -%~
  tail -zn +2 $p/cmdline | grep -qzxF -- '~{ arg }~'
  ~%- else -%~
  [ "$(find $p/fd -lname '~{ arg.split()[0] }~/*' | wc -l)" -ge ~{ arg.split()[1] }~ ]
  ~%- endif %~ || continue # ~{ loop.index }~
  ~%- endfor %~
  printf '%s\t%s\t%s\t%s\n' "$job" "$pid" "$(readlink $p/cwd)" "$(tr '\0' '\n' < $p/environ | sed -n 's/^QUEUE=//p')"
done 2>/dev/null | LC_ALL=C sort > /tmp/hits

awk -F '\t' -v OFS='\t' '{print ~% for c in out %~$~{ {"job": 1, "pid": 2, "cwd": 3, "queue": 4}[c] }~~{ ", " if not loop.last else "" }~~% endfor %~}' /tmp/hits > /app/found.txt
~% if act in ("TERM", "KILL", "STOP", "CONT") %~
cut -f 2 /tmp/hits | xargs kill -~{ act }~
~% elif act == "renice" %~
cut -f 2 /tmp/hits | xargs renice -n ~{ nice }~ -p
~% elif act == "TREE" %~
all=$(cut -f 2 /tmp/hits | paste -sd ,); new=$all
while new=$(pgrep -d , -P "$new"); do all=$all,$new; done
kill -KILL ${all//,/ }
~% endif -%~
