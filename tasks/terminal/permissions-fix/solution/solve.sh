set -eu
~%- set top = "/tmp/copy" if task == "audit" else "/app/" + tree %~
~%- if task == "audit" %~
cp -a /app/~{ tree }~ /tmp/copy
~%- endif %~
~%- if task != "fix" %~
(cd ~{ top }~ && find . ! -type l -printf '%p\t%m\n' | LC_ALL=C sort) > /tmp/before
~%- endif %~
~% for kind, arg, op in rules %~
~%- set files = {"dir": "-type d", "file": "-type f", "dirname": "-type d -name '" + arg + "'", "glob": "-type f -name '" + arg + "'",
    "under": "-type f -path '*/" + arg + "/*'", "size": "-type f -size +" + arg + "c", "empty": "-type f -empty", "dot": "-type f -name '.*'",
    "ux": "-type f -perm -100", "ww": "-type f -perm -002"} %~
~%- set act = "chgrp " + op[2:] if op.startswith("g:") else "chmod 0" + op if op[0] in "0123" else "chmod u-s,g-s,-t" if op == "a-st" else "chmod " + op %~
# rule ~{ loop.index }~
~% if op.startswith("umask:") -%~
~%- set masks = {"022": ("00755", "00644"), "027": ("00750", "00640"), "077": ("00700", "00600"), "002": ("00775", "00664"), "037": ("00740", "00640")}[op[6:]] -%~
find ~{ top }~ ~{ files[kind] }~ \( -perm /111 -exec chmod ~{ masks[0] }~ {} + -o -exec chmod ~{ masks[1] }~ {} + \)
~%- elif kind == "shebang" -%~
find ~{ top }~ -type f -exec sh -c 'for f; do head -c 2 "$f" | grep -qaF "#!" && ~{ act }~ "$f"; done; true' _ {} +
~%- elif kind == "list" -%~
sed -n '/^$/d; /^#/d; s|^|~{ top }~/|p' /app/~{ arg }~ | xargs -rd '\n' ~{ act }~
~%- else -%~
find ~{ top }~ ~{ files[kind] }~ -exec ~{ act }~ {} ~{ "\\;" if kind == "dir" else "+" }~
~%- endif %~
~% endfor -%~
~%- if task != "fix" %~
(cd ~{ top }~ && find . ! -type l -printf '%p\t%m\n' | LC_ALL=C sort) > /tmp/after
LC_ALL=C join -t "$(printf '\t')" /tmp/before /tmp/after | awk -F '\t' '$2 != $3' > /app/changes.tsv
~%- endif %~
