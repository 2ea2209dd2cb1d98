#!/usr/bin/env bash
# Installs Ray for the tests: 280 MB, half a minute.
#
#   bash test/interop/ray/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh
install_pinned ray
