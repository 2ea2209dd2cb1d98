#!/usr/bin/env bash
# Installs mini-swe-agent, a harness in Python, for the tests: 250 MB, some seconds, below
# ~/.cache/alidade/mini-swe-agent/<hash of the pins> (ALIDADE_CACHE moves it).
#
#   bash test/interop/mini-swe-agent/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh

# Same name as miniSweAgentPlace() in mini-swe-agent.ts.
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/mini-swe-agent/$(sha256sum requirements.txt | cut -c1-12)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  # Its data sets and their libraries are for benchmarks, 270 MB more, and not among the pins.
  make_environment "$place" 3.11 requirements.txt
  touch "$place/ready"
fi
echo "$place"
