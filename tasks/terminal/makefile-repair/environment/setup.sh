#!/bin/sh
# Put the project with its faulty Makefile below the workdir.
set -eu
python3 "$(dirname "$0")/gen.py" /app/project
