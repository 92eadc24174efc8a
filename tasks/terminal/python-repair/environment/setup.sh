#!/bin/sh
# Put the package with its faults below the workdir.
set -eu
python3 "$(dirname "$0")/gen.py" /app
