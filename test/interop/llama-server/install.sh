#!/usr/bin/env bash
# Installs llama.cpp's own HTTP server (llama-server, which the xllamacpp wheel carries as a library, 34 MB) for the
# tests, below ~/.cache/alidade/llama-server/<version>.
#
#   bash test/interop/llama-server/install.sh       prints the folder on its last line
set -euo pipefail
version=2026.10.11549
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/llama-server/$version
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  echo "llama-server for the tests: installing into $place" >&2
  rm -rf "$place/python"
  python3 -m pip --quiet --disable-pip-version-check install --only-binary :all: --no-deps --target "$place/python" "xllamacpp==$version" >&2
  touch "$place/ready"
fi
echo "$place"
