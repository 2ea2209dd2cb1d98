#!/usr/bin/env bash
# Installs pytest, which our runner runs in containers, for the tests: 20 MB, some seconds.
#
#   bash test/interop/pytest/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh
install_pinned pytest
