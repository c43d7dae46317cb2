#!/usr/bin/env bash
# Sets up, then compiles and runs examples/optimized_net.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
venv="${LAMINA_VENV:-.venv}"
exec "$venv/bin/python" examples/optimized_net.py "$@"
