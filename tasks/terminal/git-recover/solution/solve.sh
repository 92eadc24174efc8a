#!/bin/bash
set -eu
~{ solution }~
git -C /app/repo status --short
