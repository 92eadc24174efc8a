~% set octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)" %~~% set source = "notes.txt" if skip == "none" else "/tmp/text.txt" %~~% if skip != "none" %~awk '~{ {"hash": "{ print (/^#/ ? \"\" : $0) }", "quoted": "{ print (/^>/ ? \"\" : $0) }", "fence": "$0 == \"-----BEGIN\" { inside = 1 } $0 == \"-----END\" { inside = 0 } { print (inside ? \"\" : $0) }"}[skip] }~' notes.txt > /tmp/text.txt

~% endif %~grep -~{ "r" if post == "tree" else "" }~noP ~{ "--include='*.txt' " if post == "tree" else "" }~'~{ {
  "email": "[A-Za-z0-9._+-]+@(?:[A-Za-z0-9-]+\\.)+[A-Za-z]{2,}",
  "ipv4": "(?<![\\d.])(?:" ~ octet ~ "\\.){3}" ~ octet ~ "(?!\\d|\\.\\d)",
  "ticket": "(?<![A-Za-z0-9-])[A-Z]{2,5}-[1-9]\\d{0,4}(?![A-Za-z0-9-])",
  "colour": "(?<![\\w&#])#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![0-9A-Za-z_])",
  "uuid": "(?<![0-9A-Za-z-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z-])",
  "mac": "(?<![0-9A-Za-z:-])[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\\1){4}[0-9a-fA-F]{2}(?![0-9A-Za-z:-])",
  "host": "https?://\\K[A-Za-z0-9.-]+",
  "money": "(?<![\\d.,])(?:\\d{1,3}(?:,\\d{3})+|\\d+)\\.\\d{2}(?= EUR\\b)",
  "field": "(?<![\\w.-])user=(?:\"\\K[^\"]*|\\K[^\\s\",;]+)",
  "date": "(?<![\\d-])\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])(?![\\d-])",
  "isbn": "(?<![\\d-])97[89](?:-?\\d){10}(?![\\d-])",
  "version": "(?<![\\w.-])v?\\K(?:(?:0|[1-9]\\d*)\\.){2}(?:0|[1-9]\\d*)(?!\\w|\\.\\d|-)"}[kind] }~' ~{ "docs" if post == "tree" else source }~ > /tmp/hits.txt

~% if kind in ["email", "colour", "uuid", "host"] %~tr A-Z a-z < /tmp/hits.txt > /tmp/clean.txt
~% elif kind == "mac" %~tr A-Z- a-z: < /tmp/hits.txt > /tmp/clean.txt
~% elif kind == "money" %~tr -d , < /tmp/hits.txt > /tmp/clean.txt
~% elif kind == "isbn" %~awk -F: -v OFS=: '{ gsub(/-/, "", $NF); sum = 0; for (i = 1; i <= 13; i++) sum += substr($NF, i, 1) * (i % 2 ? 1 : 3) } sum % 10 == 0' /tmp/hits.txt > /tmp/clean.txt

~% endif %~~% set hits = "/tmp/clean.txt" if kind in ["email", "colour", "uuid", "host", "mac", "money", "isbn"] else "/tmp/hits.txt" %~~{ {"list": "cut -d: -f2- HITS", "unique": "cut -d: -f2- HITS | LC_ALL=C sort -u", "first": "cut -d: -f2- HITS | awk '!seen[$0]++'",
  "count": "cut -d: -f2- HITS | LC_ALL=C sort | uniq -c | sed 's/^ *//' | LC_ALL=C sort -k1,1nr -k2",
  "lines": "cat HITS", "sum": "cut -d: -f2- HITS | awk '{ sum += $1 } END { printf \"%d %.2f\\n\", NR, sum }'",
  "numeric": "cut -d: -f2- HITS | sort -u | sort -t. -k1,1n -k2,2n -k3,3n",
  "tree": "sed 's,^docs/,,' HITS | LC_ALL=C sort -s -t: -k1,1 -k2,2n"}[post] | replace("HITS", hits) }~ > found.txt
