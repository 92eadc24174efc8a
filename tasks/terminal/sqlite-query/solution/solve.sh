#!/bin/bash
set -eu
sqlite3 -readonly /app/~{ schema }~.db .schema
cat > /tmp/question.sql <<'SQL'
~{ sql }~
SQL
sqlite3 -readonly -header -csv /app/~{ schema }~.db < /tmp/question.sql > /app/answer.csv
head -n 3 /app/answer.csv
