#!/usr/bin/env bash
# Installs the code of Helm, and the schemas of Kubernetes, for the tests: 200 MB, some seconds.
#
#   bash test/interop/helm/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh
install_pinned helm
