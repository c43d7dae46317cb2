#!/usr/bin/env bash
# Builds lamina-runtime's wheel, installs it alone, with torch, into an environment that is made for it and removed afterwards, and
# loads packages there: scripts/runtime_alone.sh PACKAGE...
#
# Environment: PYTHON (default python3) makes the virtual environment; TMPDIR needs room for torch.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
(($#)) || { echo "usage: scripts/runtime_alone.sh PACKAGE..." >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"${PYTHON:-python3}" -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check)
cp -r "$root/python/lamina_runtime" "$folder/source" # so that nothing is built in the tree
"${pip[@]}" wheel --no-deps --wheel-dir "$folder" "$folder/source"
torch="$(grep '^torch==' "$root/requirements-dev.txt")"
"${pip[@]}" install "$torch" "$folder"/lamina_runtime-*.whl
"$folder/venv/bin/python" -c 'import importlib.metadata as m
names = sorted(d.metadata["Name"].lower() for d in m.distributions())
assert not set(names) & {"lamina", "triton"}, names
print("installed:", ", ".join(names))' || exit 1
"$folder/venv/bin/python" -I "$root/scripts/load_alone.py" "$@"
