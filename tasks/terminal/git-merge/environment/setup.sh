#!/bin/sh
# Put the repository with its diverged branches below the workdir.
set -eu
python3 "$(dirname "$0")/gen.py" /app/repo
