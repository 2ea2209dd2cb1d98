#!/usr/bin/env bash
# Installs a real vLLM that serves a tiny model on a CPU: no GPU, no account, no model hub, 2.5 GB, about a minute; and
# teaches that model to play by itself, some minutes more. It goes below ~/.cache/alidade/vllm/<hash of the pins>
# (ALIDADE_CACHE moves it), the models into a folder named after what makes them, so a second run finds all of it ready.
#
#   bash test/interop/vllm/install.sh            prints the folder on its last line
set -euo pipefail
cd "$(dirname "$0")"
source ../environment.sh

# Same names as in place.ts: the first 12 digits over everything that goes in.
cache=${ALIDADE_CACHE:-$HOME/.cache/alidade}
hash=$(cat requirements.txt stub_cuda.py | sha256sum | cut -c1-12)
place=$cache/vllm/$hash
models=$place/models/$(cat make_tiny_model.py teach.py plays.json | sha256sum | cut -c1-12)

# numactl's library is what vLLM's CPU kernels link against; gcc and readelf make the stand-ins of stub_cuda.py.
for need in python3:python3 gcc:gcc readelf:binutils flock:util-linux; do
  command -v "${need%%:*}" >/dev/null || { echo "${need%%:*} is missing: sudo apt-get install -y ${need##*:}" >&2; exit 1; }
done
# Not grep -q: it stops reading at the first match, and ldconfig's broken pipe would count as a miss.
if ! /sbin/ldconfig -p 2>/dev/null | grep 'libnuma\.so\.1' >/dev/null; then
  echo "libnuma.so.1 is missing: sudo apt-get install -y libnuma1" >&2
  exit 1
fi

mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -f "$place/ready" ]; then
  echo "vLLM for the tests: installing into $place" >&2
  # The pins are wheels for 3.11; torch alone asks for 2.7 GB of CUDA libraries that a CPU never calls.
  make_environment "$place" 3.11 requirements.txt
  "$place/venv/bin/python" stub_cuda.py "$place/venv/lib/python3.11/site-packages" >&2
  touch "$place/ready"
fi
if [ ! -f "$models/ready" ]; then
  echo "a model that plays by itself: teaching it in $models" >&2
  mkdir -p "$models"
  "$place/venv/bin/python" make_tiny_model.py "$models/untaught" >&2
  # Threads that wait by spinning take the core from those that work, wherever anything else runs.
  OMP_WAIT_POLICY=passive "$place/venv/bin/python" teach.py "$models/untaught" plays.json "$models/taught" >&2
  touch "$models/ready"
fi
echo "$place"
