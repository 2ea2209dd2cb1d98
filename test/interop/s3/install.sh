#!/usr/bin/env bash
# Installs s3rver, a server of S3's API, for the tests: 14 MB, some seconds, below
# ~/.cache/alidade/s3/<hash of the lock> (ALIDADE_CACHE moves it).
#
#   bash test/interop/s3/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"

# Same name as s3Place() in start.ts.
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/s3/$(sha256sum package-lock.json | cut -c1-12)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  cp package.json package-lock.json "$place/"
  npm ci --prefix "$place" --ignore-scripts --no-audit --no-fund --loglevel error >&2
  touch "$place/ready"
fi
echo "$place"
