#!/usr/bin/env bash
# Installs llama.cpp as a library (node-llama-cpp, the CPU build of this platform, 85 MB) for the tests: a second,
# independent implementation that scores what vLLM sampled. It goes below ~/.cache/alidade/llama-cpp/<version>.
#
#   bash test/interop/llama-cpp/install.sh       prints the folder on its last line
set -euo pipefail
version=3.22.1
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/llama-cpp/$version
platform=$(node -p 'process.platform + "-" + process.arch')
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  echo "llama.cpp for the tests: installing into $place" >&2
  # Its package.json keeps npm from looking for a project further up; without the optional packages 600 MB of GPU builds stay out.
  echo '{"private":true}' >"$place/package.json"
  npm install --prefix "$place" --silent --no-audit --no-fund --omit=optional --ignore-scripts \
    "node-llama-cpp@$version" "@node-llama-cpp/$platform@$version" >&2
  touch "$place/ready"
fi
echo "$place"
