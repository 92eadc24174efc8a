#!/bin/bash
set -eu
~{ solution }~
cat /app/answer.txt
