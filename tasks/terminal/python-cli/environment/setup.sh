#!/bin/sh
# The tool to extend, or nothing.
set -eu
mkdir -p /app
~%- if extend %~
cp "$(dirname "$0")/base-~{ tool }~.py" /app/tool.py
~%- endif %~
