#!/usr/bin/env bash
# Installs mini-swe-agent, a harness in Python, for the tests: 250 MB, some seconds. Its data sets and their libraries are for
# benchmarks, 270 MB more, and not among the pins.
#
#   bash test/interop/mini-swe-agent/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh
install_pinned mini-swe-agent
