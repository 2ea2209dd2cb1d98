# Sourced by the install scripts of this folder.

# make_environment PLACE PYTHON REQUIREMENTS: PLACE/venv with the pinned wheels, by a uv of its own in PLACE/tools.
make_environment() {
  local place=$1 python=$2 requirements=$3
  rm -rf "$place/tools" "$place/venv"
  if ! python3 -m venv "$place/tools" >&2; then
    echo "python3 cannot make a virtual environment: sudo apt-get install -y python3-venv" >&2
    return 1
  fi
  "$place/tools/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9 >&2
  "$place/tools/bin/uv" venv --quiet --python "$python" "$place/venv" >&2
  # --no-deps: what the wheels ask for is contradictory, or gigabytes that are never called; the pins name all that is needed.
  "$place/tools/bin/uv" pip install --quiet --python "$place/venv" --no-deps --requirement "$requirements" >&2
}

# python_3_12: one of this machine. pyenv's shims are on the path and run only for a version that was chosen, so its folders
# are looked at too; without any, uv fetches one of its own builds.
python_3_12() {
  local candidate
  for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12; do
    if "$candidate" -c 'import venv' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  echo 3.12
}

# install_pinned NAME: a Python 3.11 with requirements.txt below ~/.cache/alidade/NAME/<hash of the pins> (ALIDADE_CACHE moves it);
# prints the folder. place.ts makes the same name.
install_pinned() {
  local place=${ALIDADE_CACHE:-$HOME/.cache/alidade}/$1/$(sha256sum requirements.txt | cut -c1-12)
  mkdir -p "$place"
  exec 9>"$place/lock"
  flock 9
  if [ ! -f "$place/ready" ]; then
    make_environment "$place" 3.11 requirements.txt
    touch "$place/ready"
  fi
  echo "$place"
}
