#!/bin/bash
set -eu
ls /app/inbox
mkdir -p /tmp/w /tmp/keep /app/out
~%- if singles %~
mkdir -p /tmp/w/flat
for f in /app/inbox/*.bin; do name=$(gzip -lN "$f" | tail -n 1); gzip -dc < "$f" > "/tmp/w/flat/${name##*/}"; done
~%- endif %~
~%- for layers in archives %~
~%- set stem = stems[loop.index0] %~
~%- if split == "numbered" %~
ls /app/inbox/~{ stem }~.part* | sort -V | xargs cat > /tmp/w/~{ stem }~.~{ layers | length }~
~%- elif split == "listed" %~
cat /app/inbox/~{ stem }~.order | while read -r f; do cat "/app/inbox/$f"; done > /tmp/w/~{ stem }~.~{ layers | length }~
~%- elif split == "hashed" %~
cat /app/inbox/~{ stem }~.order | while read -r sum; do sha256sum /app/inbox/*.part | awk -v s="$sum" '$1 == s { print $2 }' | xargs cat; done > /tmp/w/~{ stem }~.~{ layers | length }~
~%- elif split == "spare" %~
while read -r sum f; do for g in "$f" "$f.bak"; do if echo "$sum  /app/inbox/$g" | sha256sum -c --status 2>/dev/null; then cat "/app/inbox/$g"; fi; done; done < /app/inbox/~{ stem }~.parts > /tmp/w/~{ stem }~.~{ layers | length }~
~%- else %~
cp /app/inbox/~{ stem }~* /tmp/w/~{ stem }~.~{ layers | length }~
~%- endif %~
~%- for layer in layers | reverse %~
~%- set here = "/tmp/w/" ~ stem ~ "." ~ loop.revindex %~
~%- set below = "/tmp/w/" ~ stem ~ "." ~ loop.revindex0 %~
~%- if loop.last %~
mkdir -p /tmp/w/~{ stem }~
~%- if layer == "zip" %~
unzip -q ~{ here }~ -d /tmp/w/~{ stem }~
~%- else %~
tar -xf ~{ here }~ -C /tmp/w/~{ stem }~~{ " || true" if cut else "" }~
~%- endif %~
~%- elif layer == "zip" %~
unzip -p ~{ here }~ > ~{ below }~
~%- elif layer == "tar" %~
tar -xOf ~{ here }~ > ~{ below }~
~%- else %~
~{ {"gz": "gzip -dc", "bz2": "bzip2 -dc", "xz": "xz -dc", "b64": "base64 -d"}[layer] }~ < ~{ here }~ > ~{ below }~
~%- endif %~
~%- endfor %~
~%- endfor %~
while read -r sum path; do
~%- if only %~
  case "$path" in *.~{ only }~) ;; *) continue ;; esac
~%- endif %~
  name=-
  for stem in ~{ "flat" if singles else stems | join(' ') }~; do
    from=/tmp/w/$stem~{ "/" ~ top if top else "" }~
~%- if singles %~
    mkdir -p "$from/$(dirname "$path")"
    mv "$from/$(basename "$path")" "$from/$path"
~%- endif %~
    if echo "$sum  $from/$path" | sha256sum -c --status 2>/dev/null; then
      mkdir -p "/tmp/keep/$(dirname "$path")"
      cp "$from/$path" "/tmp/keep/$path"
      name=$stem
      break
    fi
  done
~%- if report == "source" %~
  echo "$path: $name" >> /tmp/report
~%- else %~
  if [ "$name" = - ]; then echo "lost $path"; else echo "ok $path"; fi >> /tmp/report
~%- endif %~
done < /app/inbox/MANIFEST
~%- if report %~
LC_ALL=C sort /tmp/report > /app/out/report.txt
~%- endif %~
~%- if out == "dir" %~
cp -r /tmp/keep /app/out/salvaged
~%- elif out == "zip" %~
(cd /tmp/keep && zip -q -r /app/out/salvaged.zip .)
~%- else %~
(cd /tmp/keep && tar -caf /app/out/salvaged.~{ out }~ *)
~%- endif %~
