set -eu
python3 "$(dirname "$0")/gen.py"
