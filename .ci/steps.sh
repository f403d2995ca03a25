# Steps of checks, for .ci/run and .ci/issue, which source this file: times, budgets, a summary, and the judges.
# Needs $root, the checkout.

export CI=true CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
exec </dev/null

# Public protocol schemas may be next to the checkout; a test that needs them says when it goes without.
if [[ -d $root/../shared/fixtures ]]; then
  NUNCIO_FIXTURES=$(cd "$root/../shared/fixtures" && pwd)
  export NUNCIO_FIXTURES
fi

# The demo and the clients start from nothing, and leave nothing.
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT

# Runs a command in a shell of its own, whose `times` are those of the command, and adds a line `WALL CPU NAME` to
# $scratch/steps.
step() { # NAME COMMAND…
  local name=$1 started=$SECONDS cpu
  shift
  printf '\n=== %s\n' "$name"
  (
    "$@"
    times >"$scratch/times-$name"
  )
  # The second line has the times of the shell's children: 1m2.345s 0m6.789s.
  cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, time, /[ms]/); sum += 60 * time[1] + time[2] } printf "%d", sum }' "$scratch/times-$name")
  printf '=== %s: %s s, %s s CPU\n' "$name" $((SECONDS - started)) "$cpu"
  echo "$((SECONDS - started)) $cpu $name" >>"$scratch/steps"
}

# A step whose failure does not end the run.
try_step() { # NAME COMMAND…
  local name=$1
  shift
  step "$name" run_or_note "$name" "$@"
}
run_or_note() {
  local name=$1
  shift
  "$@" 2>&1 | tee "$scratch/output-$name" || { echo "FAILED: $name"; echo "$name" >>"$scratch/failed"; }
}

# Runs a chain of steps next to others. Its output is shown at the end.
beside() { # NAME COMMAND…
  local log=$scratch/beside-$1
  shift
  "$@" >"$log" 2>&1
  cat "$log"
}

# Debian's packages for the commands that are missing; none when all are there.
install_packages() { # EXTRA…
  local packages=("$@")
  while read -r command package; do
    command -v "$command" >/dev/null || packages+=("$package")
  done <<'LIST'
cc build-essential
git git
curl curl
npm npm
pip3 python3-pip
chromium chromium
clangd clangd
tmux tmux
jq jq
nginx nginx
caddy caddy
openssl openssl
pgbouncer pgbouncer
strace strace
LIST
  ((${#packages[@]})) || { echo "nothing to install"; return; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${packages[@]}"
}

# The program shows its demo, and the session replays.
demo() { # PROGRAM
  local out session
  export NUNCIO_HOME=$scratch/home
  out=$(TMPDIR=$scratch "$1" demo --yes)
  printf '%s\n' "$out"
  session=$(grep -oE 'nuncio sessions show [^ ]+' <<<"$out" | awk '{ print $NF }')
  "$1" sessions show "$session" >"$scratch/replay"
  grep -q 'all three tests pass' "$scratch/replay" || { echo "the session does not replay:"; cat "$scratch/replay"; return 1; }
  "$1" sessions show --json "$session" >"$scratch/replay.json"
  grep -q '"turn.completed"' "$scratch/replay.json" || { echo "the session's events do not replay"; return 1; }
}

# Installs what the judges need, which mostly waits. A judge whose installation fails installs again when it runs.
install_judges() {
  local judge
  for judge in agents browser catalogue clients format llama mcp openapi programs recordings terminal vscode; do
    INSTALL_ONLY=yes "tests/$judge/run" /bin/true || echo "$judge: not installed"
  done
  INSTALL_ONLY=yes tests/docs/site "$scratch/site" || echo "site: not installed"
}

# All judges, in two chains of about equal length. Most of them wait. Then the one that starts three agents at a time.
judges() { # PROGRAM
  beside screens judge_screens "$1" &
  judge_protocols "$1"
  wait
  try_step "agents" tests/agents/run "$1"
}
judge_screens() {
  try_step "browser" tests/browser/run "$1"
  try_step "vscode" tests/vscode/run "$1"
  try_step "llama" tests/llama/run "$1"
  try_step "format" tests/format/run "$1"
  try_step "terminal" tests/terminal/run "$1"
}
judge_protocols() {
  try_step "openapi" tests/openapi/run "$1"
  try_step "mcp" tests/mcp/run "$1"
  try_step "clients" tests/clients/run "$1"
  try_step "recordings" tests/recordings/run "$1"
  try_step "programs" tests/programs/run "$1"
  try_step "docs" tests/docs/run "$1"
  try_step "site" tests/docs/site "$scratch/site"
  try_step "catalogue" tests/catalogue/run
}

# Prints each step with its wall and CPU seconds, and fails if a step that did not end the run failed.
finish() {
  printf '\n%8s %8s %8s  step\n' "wall s" "budget" "CPU s"
  while read -r wall cpu name; do
    local most=${budget[$name]:-}
    printf '%8s %8s %8s  %s%s\n' "$wall" "${most:--}" "$cpu" "$name" "$([[ $most && $wall -gt $most ]] && echo '  OVER ITS BUDGET')"
  done <"$scratch/steps"
  if [[ -e $scratch/failed ]]; then
    # The output of a step that failed is far above.
    while read -r name; do
      printf '\n=== %s: lines that name a failure, and the last ones\n' "$name"
      grep -nE -A3 'FAIL|^problem|Traceback|[Ee]rror:|panicked' "$scratch/output-$name" | cut -c1-300 | sed -n 1,30p || true
      tail -n 5 "$scratch/output-$name" | cut -c1-300
    done <"$scratch/failed"
    printf '\nfailed in %s s: %s\n' "$SECONDS" "$(paste -sd ' ' "$scratch/failed")"
    return 1
  fi
  printf '\nall passed in %s s\n' "$SECONDS"
}
