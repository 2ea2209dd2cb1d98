#!/usr/bin/env bash
# Installs mini-swe-agent, a harness in Python, for the tests: 250 MB, some seconds, below
# ~/.cache/alidade/mini-swe-agent/<hash of the pins> (ALIDADE_CACHE moves it).
#
#   bash test/interop/mini-swe-agent/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"

# Same name as miniSweAgentPlace() in mini-swe-agent.ts.
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/mini-swe-agent/$(sha256sum requirements.txt | cut -c1-12)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  rm -rf "$place/tools" "$place/venv"
  python3 -m venv "$place/tools" >&2
  "$place/tools/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9 >&2
  "$place/tools/bin/uv" venv --quiet --python 3.11 "$place/venv" >&2
  # --no-deps: its data sets and their libraries are for benchmarks and 270 MB more.
  "$place/tools/bin/uv" pip install --quiet --python "$place/venv" --no-deps --requirement requirements.txt >&2
  touch "$place/ready"
fi
echo "$place"
