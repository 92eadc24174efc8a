#!/bin/sh
# Put the database as it grew below the workdir.
set -eu
python3 "$(dirname "$0")/gen.py" /app/app.db
