#!/usr/bin/env bash
# Installs SWE-smith and the swebench 4 that it stands on, for their tables and log parsers: 5 MB, some seconds.
#
#   bash test/interop/swesmith/install.sh          prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh
install_pinned swesmith
