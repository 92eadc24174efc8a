"""The projects as they should be, and how faults get into their Makefile. The same file stands in environment/ and in tests/."""

import json
import sys
from pathlib import Path

PROJECT = "~{ project }~"
BUGS = json.loads(r"""~{ bugs | tojson }~""")

SITE = {
    "README": """What the Makefile promises:
- `make`, also with `-j4`, writes `build/NAME.html` for every `src/NAME.md`, whatever files there are tomorrow: `head.inc`, then what
  `sh tools/render.sh src/NAME.md` prints. It also writes `build/index.html`: the pages (`NAME.html`), sorted, one per line.
- Nothing is made twice. A change of `src/NAME.md` remakes that page and the index, a change of `head.inc` or
  `tools/render.sh` all pages and the index.
- If a page cannot be made (`render.sh` refuses a text with `TODO`), make fails and leaves no file of that page behind.
- `make BUILD=DIR` puts everything into DIR instead of `build`.
- `make clean` removes that folder. Files that happen to be called `clean` or `all` do not matter.
""",
    "head.inc": "<title>Site</title>\n",
    "src/about.md": "# About us\nWe sell boats.\n",
    "src/news.md": "# News\nNone.\n# More news\nNone either.\n",
    "src/start.md": "# Welcome\nto the site\n",
    "tools/render.sh": """if grep -q TODO "$@"; then echo "unfinished: $1" >&2; exit 1; fi
cat "$@" | sed 's,^# \\(.*\\),<h1>\\1</h1>,'
""",
    "Makefile": """BUILD = build
SRC := $(sort $(wildcard src/*.md))
PAGES := $(SRC:src/%.md=$(BUILD)/%.html)

all: $(BUILD)/index.html

.PHONY: all clean
.DELETE_ON_ERROR:

$(BUILD)/index.html: $(PAGES)
	for f in $(notdir $^); do echo "$$f"; done > $@

$(BUILD)/%.html: src/%.md head.inc tools/render.sh | $(BUILD)
	cat head.inc > $@
	sh tools/render.sh $< >> $@

$(BUILD):
	mkdir -p $@

clean:
	rm -rf $(BUILD)
""",
}

SUMS = {
    "README": """What the Makefile promises:
- `make` writes `out/REGION.sum` for every folder `data/REGION` there is: what `sh tools/sum.sh` prints when it is fed all `*.csv` of that folder, in
  the order of their names. It also writes `out/total.txt`: what `sum.sh` prints when it is fed all `.sum` files. `sum.sh` needs `UNIT` in its
  environment, which `config.mk` sets and `make UNIT=…` overrides.
- Nothing is made twice. If a csv file changes or a new one comes, its region and the total are remade and no other region; if `config.mk` or
  `tools/sum.sh` changes, all is.
- `make install DESTDIR=D PREFIX=P` makes what is missing and copies all `.sum` files and `total.txt` to `DP/share/sums/`. By default `DESTDIR` is
  empty and `PREFIX` is `/usr/local`.
- `make clean` removes `out`, and works when there is none.
""",
    "config.mk": "UNIT = kg\n",
    "data/north/a.csv": "x,1\ny,20\n",
    "data/north/b.csv": "x,300\n",
    "data/south/a.csv": "z,4000\n",
    "data/south/c.csv": "z,7\nz,8\n",
    "tools/sum.sh": """awk -F, -v unit="$UNIT" '{ s += $NF } END { printf "%d %s\\n", s, unit }'\n""",
    "Makefile": """include config.mk
export UNIT
PREFIX = /usr/local
TARGET = $(DESTDIR)$(PREFIX)/share/sums
SUMS := $(patsubst data/%,out/%.sum,$(sort $(wildcard data/*)))

.PHONY: all install clean

all: out/total.txt

out/total.txt: $(SUMS) tools/sum.sh config.mk
	cat $(SUMS) | sh tools/sum.sh > $@

.SECONDEXPANSION:
out/%.sum: $$(sort $$(wildcard data/%/*.csv)) tools/sum.sh config.mk
	mkdir -p $(@D)
	cat $(filter %.csv,$^) | sh tools/sum.sh > $@

install: all
	mkdir -p $(TARGET)
	cp out/total.txt $(SUMS) $(TARGET)

clean:
	rm -rf out
""",
}

TOOL = {
    "README": """What the Makefile promises:
- `make` writes `bin/tool`, executable: a line `#!/bin/sh`, a line `version='V'` with the content V of the file `VERSION`, then all `parts/*.sh` there
  are, in the order of their names. It also has `lib/words.txt` made by the Makefile of `lib`.
- Nothing is made twice. A change of `VERSION` or of a part remakes `bin/tool`, a change of `lib/raw.txt` remakes `lib/words.txt`, and neither the other.
- `make check` fails unless `bin/tool version` prints what `VERSION` says. It makes `bin/tool` first if need be.
- `make dist` makes all, and `dist/tool-V.tar` with a folder `tool-V` that holds `tool` and `words.txt`.
- `make clean` removes `bin` and `dist`, and what `make clean` in `lib` removes. A file called `check`, `dist` or `clean` does not matter.
""",
    "VERSION": "1.4\n",
    "parts/10-start.sh": "set -eu\n",
    "parts/20-version.sh": 'if [ "${1-}" = version ]; then echo "$version"; exit; fi\n',
    "parts/30-rest.sh": 'echo "usage: tool version" >&2\n',
    "lib/raw.txt": "pear\nfig\npear\napple\n",
    "lib/Makefile": "words.txt: raw.txt\n\tLC_ALL=C sort -u raw.txt > $@\n\nclean:\n\trm -f words.txt\n",
    "Makefile": """VERSION := $(shell cat VERSION)
PARTS := $(sort $(wildcard parts/*.sh))
NAME = tool-$(VERSION)

.PHONY: all lib check dist clean

all: bin/tool lib

bin/tool: $(PARTS) VERSION
	mkdir -p bin
	{ echo '#!/bin/sh'; echo "version='$(VERSION)'"; cat $(PARTS); } > $@
	chmod +x $@

lib:
	$(MAKE) -C lib words.txt

check: bin/tool
	test "$$(bin/tool version)" = "$(VERSION)"

dist: all
	rm -rf dist/$(NAME)
	mkdir -p dist/$(NAME)
	cp bin/tool lib/words.txt dist/$(NAME)
	cd dist && tar -cf $(NAME).tar $(NAME)

clean:
	rm -rf bin dist
	$(MAKE) -C lib clean
""",
}

PROJECTS = {"site": SITE, "sums": SUMS, "tool": TOOL}


def broken() -> dict:
    """The project's files with the variant's faults in the Makefile."""
    files = dict(PROJECTS[PROJECT])
    for bug in BUGS:
        assert files["Makefile"].count(bug["good"]) == 1, bug["name"]
        files["Makefile"] = files["Makefile"].replace(bug["good"], bug["bad"])
    return files


if __name__ == "__main__":
    for name, text in broken().items():
        path = Path(sys.argv[1], name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
