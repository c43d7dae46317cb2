#!/usr/bin/env bash
# Sets up, builds and runs every check and test; the last line is pytest's summary.
#
# Arguments are handed to pytest. Environment: see setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
venv="${LAMINA_VENV:-.venv}"
[[ "$venv" == /* ]] || venv="$PWD/$venv"
export PATH="$venv/bin:$PATH"

mapfile -t python_files < <(git ls-files --cached --others --exclude-standard '*.py')
mapfile -t cpp_files < <(git ls-files --cached --others --exclude-standard '*.cpp' '*.h')
ruff check "${python_files[@]}"
ruff format --check "${python_files[@]}"
clang-format --dry-run -Werror "${cpp_files[@]}"
mypy python/lamina python/lamina_runtime targets/*/*.py
lit -sv test
python -m pytest -n 2 test/python targets "$@"
