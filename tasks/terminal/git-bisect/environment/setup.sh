#!/bin/sh
# Put the history below the workdir.
set -eu
python3 "$(dirname "$0")/gen.py" /app/repo
