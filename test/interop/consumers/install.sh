#!/usr/bin/env bash
# Installs the trainers themselves, to load our files with their own code: 228 pins for Python 3.12, no GPU, no account,
# no model hub, 2.6 GB, under a minute. It goes below ~/.cache/alidade/consumers/<hash of the pins> (ALIDADE_CACHE moves
# it), so a second run finds it ready.
#
#   bash test/interop/consumers/install.sh       prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh

# Same name as consumersPlace() in place.ts: the first 12 digits over everything that goes in.
hash=$(cat requirements.txt ../vllm/stub_cuda.py | sha256sum | cut -c1-12)
place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/consumers/$hash

for need in python3:python3 gcc:gcc readelf:binutils flock:util-linux; do
  command -v "${need%%:*}" >/dev/null || { echo "${need%%:*} is missing: sudo apt-get install -y ${need##*:}" >&2; exit 1; }
done

mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  echo "The trainers for the tests: installing into $place" >&2
  # The trainers' own pins contradict each other. SkyRL, NeMo Gym and Harbor ask for 3.12.
  make_environment "$place" "$(python_3_12)" requirements.txt
  "$place/venv/bin/python" ../vllm/stub_cuda.py "$place/venv/lib/python3.12/site-packages" >&2
  # Compiled once here, not by the first test.
  "$place/venv/bin/python" -m compileall -q -j 0 "$place/venv/lib/python3.12/site-packages" >/dev/null 2>&1 || true
  touch "$place/ready"
fi
echo "$place"
