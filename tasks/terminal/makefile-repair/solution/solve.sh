#!/bin/bash
set -eu
make -C /app/project -n || true
~%- for bug in bugs %~
python3 - <<'PY'
from pathlib import Path
file = Path("/app/project/Makefile")
file.write_text(file.read_text().replace(
    ~{ bug.bad | tojson }~,
    ~{ bug.good | tojson }~))
PY
~%- endfor %~
make -C /app/project && make -C /app/project clean
