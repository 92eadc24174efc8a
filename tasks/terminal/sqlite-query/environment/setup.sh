#!/bin/sh
# Put the database below the workdir.
set -eu
python3 "$(dirname "$0")/gen.py" "/app/~{ schema }~.db"
