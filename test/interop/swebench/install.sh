#!/usr/bin/env bash
# Installs swebench 5 without what it only downloads and starts containers with, for its log parsers: 2 MB, some seconds.
#
#   bash test/interop/swebench/install.sh          prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh
install_pinned swebench
