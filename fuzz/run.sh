#!/bin/sh
# Fuzzes each target for a time and prints how many inputs it ran.
#
#   fuzz/run.sh SECONDS [TARGET..]     default: all targets; 600 seconds each is what a release asks for
#
# Needs cargo-fuzz (`cargo install cargo-fuzz`). New inputs go to a scratch folder, not to the corpus: see README.md.
set -eu

if [ $# -lt 1 ] || ! [ "$1" -gt 0 ] 2>/dev/null; then
    echo "usage: fuzz/run.sh SECONDS [TARGET..]" >&2
    exit 2
fi
seconds=$1
shift
cd "$(dirname "$0")"
PATH="$PATH:$HOME/.cargo/bin"
command -v cargo-fuzz >/dev/null || { echo "no cargo-fuzz: cargo install cargo-fuzz" >&2; exit 2; }
# The sanitizer's flags on a stable compiler.
export RUSTC_BOOTSTRAP=1

[ $# -gt 0 ] || set -- $(ls fuzz_targets | sed 's/\.rs$//')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=
for target in "$@"; do
    mkdir -p "$scratch/$target"
    log=$scratch/$target.log
    if cargo fuzz run "$target" "$scratch/$target" "corpus/$target" -- \
        -max_total_time="$seconds" -print_final_stats=1 >"$log" 2>&1; then
        outcome=ok
    else
        outcome=FAILED
        failed="$failed $target"
        tail -n 40 "$log"
    fi
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    new=$(ls "$scratch/$target" | wc -l)
    echo "$target: $outcome, ${executions:-no} executions in $seconds s, $new inputs beyond the corpus"
done
[ -z "$failed" ] || { echo "failed:$failed (inputs are in fuzz/artifacts)" >&2; exit 1; }
