#!/bin/sh
# Put the repository, with its loss, below the workdir.
set -eu
mkdir -p /app/out
python3 "$(dirname "$0")/gen.py" /app/repo
