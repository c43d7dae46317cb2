#!/usr/bin/env bash
# Makes .venv with the pinned requirements and builds Lamina in place; does only what is missing.
#
# Environment: PYTHON (default python3) makes the virtual environment, LAMINA_VENV (default .venv) is its folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv="${LAMINA_VENV:-.venv}"
[[ "$venv" == /* ]] || venv="$PWD/$venv"
python="${PYTHON:-python3}"

missing=()
command -v g++ >/dev/null || missing+=(g++)
"$python" -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
"$python" -c 'import os, sysconfig; assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' \
  2>/dev/null || missing+=(python3-dev)
if ((${#missing[@]})); then
  if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
  else
    echo "error: install ${missing[*]} first (on Debian: sudo apt-get install ${missing[*]})" >&2
    exit 1
  fi
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "error: Lamina needs Python 3.10 or newer, and $python is $("$python" --version)" >&2
  exit 1
fi

[[ -x "$venv/bin/python" ]] || "$python" -m venv "$venv"
# The stamp holds what was installed, so that a changed requirement is noticed.
stamp="$venv/lamina-requirements"
wanted="$(cat requirements-dev.txt pyproject.toml python/lamina_runtime/pyproject.toml targets/*/pyproject.toml; pwd)"
if [[ ! -f "$stamp" || "$(cat "$stamp")" != "$wanted" ]]; then
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
  # Entry points and console scripts; the native part comes from the build below, whose results lie in the source tree.
  local_install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps)
  "${local_install[@]}" --config-settings=wheel.cmake=false -e .
  "${local_install[@]}" -e python/lamina_runtime
  for target in targets/*/; do
    "${local_install[@]}" -e "$target"
  done
  printf '%s\n' "$wanted" >"$stamp"
fi

# The oldest version of Triton that Lamina is for, in an environment of its own, for the tests that it reads what is emitted.
other_triton=triton==3.6.0
if [[ ! -f "$venv/other-triton/lamina-requirements" ||
  "$(cat "$venv/other-triton/lamina-requirements")" != "$other_triton" ]]; then
  "$venv/bin/python" -m venv --clear --without-pip "$venv/other-triton"
  "$venv/bin/python" -m pip --python "$venv/other-triton/bin/python" install --quiet --disable-pip-version-check --no-deps \
    "$other_triton"
  printf '%s\n' "$other_triton" >"$venv/other-triton/lamina-requirements"
fi

export PATH="$venv/bin:$PATH"
cmake --log-level=WARNING -G Ninja -S . -B build -DLAMINA_INPLACE=ON -DPython_EXECUTABLE="$venv/bin/python"
ninja -C build
