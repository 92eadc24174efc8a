set -eu
cp "$(dirname "$0")/tool.sh" /app/~{ kind }~.sh
chmod 755 /app/~{ kind }~.sh
mkdir /app/sample
python3 "$(dirname "$0")/gen.py"
