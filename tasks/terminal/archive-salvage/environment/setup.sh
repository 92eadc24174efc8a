#!/bin/sh
# Put what is left of the backup below the workdir.
set -eu
mkdir -p /app/inbox /app/out
python3 "$(dirname "$0")/gen.py" /app/inbox
