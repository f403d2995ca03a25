# Keeps what judges install, so that a new clone does not install it again. A judge sources this
# file and calls, in its directory and before it changes HOME:
#
#   install_cached NAME COMMAND FILE…
#
# COMMAND runs in a new directory that contains copies of the FILEs. It can call the functions that
# are defined at this time. The directories that it creates are linked into the current directory.
# They are kept in ~/.cache/nuncio-tests/NAME-HASH; if that fails, in `.installs` of the current
# directory. HASH covers COMMAND, the functions, the FILEs, and the versions of node, Python and the
# system. Entries of NAME that were not used for 30 days are removed when a new one is created. With
# INSTALL_ONLY in the environment, a judge ends after that.

npm_packages() { # ARGUMENT…
  npm install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error "$@"
}

pip_packages() { # ARGUMENT…
  python3 -m pip install --quiet --no-warn-conflicts --disable-pip-version-check --root-user-action=ignore \
    --target site-packages -r requirements.txt "$@"
}

install_cached() {
  local name=$1 command=$2 hash cache entry
  shift 2
  hash=$({ sha256sum "$@"; echo "$command"; declare -f; install_platform; } | sha256sum | cut -c1-16)
  cache=${XDG_CACHE_HOME:-${HOME:-none}/.cache}/nuncio-tests
  entry=$cache/$name-$hash
  if ! install_once "$entry" "$command" "$@"; then
    echo "$name: installing in $PWD/.installs, because installing in $cache failed" >&2
    entry=$PWD/.installs/$name-$hash
    # npm fails if it cannot write its cache, which is in HOME, too.
    npm_config_cache=$PWD/.installs/npm install_once "$entry" "$command" "$@"
  fi
  link_directories "$entry"
}

# Prints what decides which builds npm and pip choose, and the interpreter that pip writes into
# scripts.
install_platform() {
  uname -sm
  getconf GNU_LIBC_VERSION || true
  node --version || true
  python3 -c 'import sys; print(sys.version, sys.executable)' || true
} 2>/dev/null

# Creates ENTRY if it is missing or damaged: ENTRY COMMAND FILE…
install_once() (
  entry=$1 command=$2
  shift 2
  # A relative path is no cache: HOME is not set, or XDG_CACHE_HOME is wrong.
  [[ $entry == /* ]] || exit
  # Touched first, so that no other run removes the entry because it is old.
  touch -c "$entry" 2>/dev/null || true
  ! is_complete "$entry" || exit 0
  mkdir -p "${entry%/*}" 2>/dev/null || exit
  new=$(mktemp -d "$entry.XXXXXX" 2>/dev/null) || exit
  trap 'rm -rf "$new"' EXIT
  if [[ -e $entry ]]; then
    # Renamed before it is removed, so that no other run uses a part of it.
    mv -T "$entry" "$new/damaged" 2>/dev/null || exit
    rm -rf "$new/damaged" || exit
  fi
  cp "$@" "$new" || exit
  # In another process: this function is called in a condition, in which bash ignores `set -e`.
  (cd "$new" && exec bash -euo pipefail -c "$(declare -f)"$'\n'"$command" </dev/null) || exit
  list_files "$new" >"$new/.files" || exit
  chmod 755 "$new" || exit
  # Fails if another run has created the entry in the meantime.
  mv -T "$new" "$entry" 2>/dev/null || is_complete "$entry" || exit
  name=$(basename "${entry%-*}")
  find "${entry%/*}" -maxdepth 1 -regex ".*/$name-[0-9a-f]+\(\..*\)?" ! -newermt '30 days ago' \
    -exec rm -rf {} + || true
)

# Returns true if no file of an entry is missing or has become smaller. Some programs write to
# their packages, for example a cache or the certificate of a proxy.
is_complete() { # ENTRY
  [[ -s $1/.files ]] && awk '
    { name = substr($0, index($0, " ") + 1) }
    FILENAME == ARGV[1] { size[name] = $1; next }
    !(name in size) || size[name] < $1 { exit 1 }
  ' <(list_files "$1") "$1/.files"
}

# Prints the size and the name of each file.
list_files() { # DIRECTORY
  (cd "$1" && find . ! -type d ! -path ./.files -printf '%s %P\n')
}

link_directories() { # ENTRY
  local directory name
  for directory in "$1"/*/; do
    directory=${directory%/} name=$(basename "$directory")
    [[ $(readlink "$name") != "$directory" ]] || continue
    # A directory is from an installation without this file.
    [[ -L $name ]] || rm -rf "$name"
    ln -sfn "$directory" "$name"
  done
}
