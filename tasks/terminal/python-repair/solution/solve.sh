#!/bin/bash
set -eu
wc -l /app/~{ package }~/*.py
~%- for bug in bugs %~
python3 - <<'PY'
from pathlib import Path
file = Path("/app/~{ package }~/~{ bug.module }~")
file.write_text(file.read_text().replace(
    ~{ bug.bad | tojson }~,
    ~{ bug.good | tojson }~))
PY
~%- endfor %~
cd /app && python3 -B -c 'import ~{ package }~'
