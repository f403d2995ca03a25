# Sets and exports JUDGE, the program of tests/it/judge.rs, and builds it unless the caller has set it. A judge sources this file
# in its directory, before it changes HOME.

if [[ ! ${JUDGE:-} ]]; then
  JUDGE=$(cd ../.. && cargo build --locked --quiet -p nuncio-it --example judge && realpath "${CARGO_TARGET_DIR:-target}")
  JUDGE+=/debug/examples/judge
fi
export JUDGE
