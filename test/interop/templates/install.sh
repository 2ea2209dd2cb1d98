#!/usr/bin/env bash
# Fetches the chat templates that packages at hand carry, and the library that renders them, outside the work tree.
# Prints the folder. Does nothing where it is ready.
set -euo pipefail
cd "$(dirname "$0")"

jinja="jinja2==3.1.6 markupsafe==3.0.3"
hash=$(cat requirements.txt install.sh | sha256sum | cut -c1-12)
place="${ALIDADE_CACHE:-$HOME/.cache/alidade}/templates/$hash"
mkdir -p "$place"
exec 9>"$place/lock"
flock 9
if [ ! -e "$place/ready" ]; then
  rm -rf "$place/downloads" "$place/found" "$place/python"
  mkdir -p "$place/downloads" "$place/found/llama-cpp" "$place/found/trl"
  pip() { python3 -m pip --quiet --disable-pip-version-check "$@" >&2; }
  pip install --target "$place/python" --no-deps $jinja
  pip download --require-hashes --no-deps --no-binary llama_cpp_python --dest "$place/downloads" --requirement requirements.txt
  tar xzf "$place"/downloads/llama_cpp_python-*.tar.gz -C "$place/found/llama-cpp" --wildcards --strip-components=5 '*/models/templates/*.jinja'
  python3 -m zipfile -e "$place"/downloads/trl-*.whl "$place/downloads/trl"
  cp "$place"/downloads/trl/trl/chat_templates/*.jinja "$place/found/trl/"
  rm -rf "$place/downloads"
  touch "$place/ready"
fi
echo "$place"
