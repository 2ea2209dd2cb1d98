#!/usr/bin/env bash
# Installs pytest, which our runner runs in containers, for the tests: 20 MB, some seconds, below
# ~/.cache/alidade/pytest/<hash of the pins> (ALIDADE_CACHE moves it).
#
#   bash test/interop/pytest/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh

# Same name as pytestPlace() in pytest.ts.
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/pytest/$(sha256sum requirements.txt | cut -c1-12)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  make_environment "$place" 3.11 requirements.txt
  touch "$place/ready"
fi
echo "$place"
