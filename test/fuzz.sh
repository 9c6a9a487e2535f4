#!/usr/bin/env bash
# Run every fuzz target of the tree for a while: fuzz.sh DURATION
set -euo pipefail

cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The go command sometimes reports the end of its own time as a failure, without
# an input that fails: such a run found nothing, and is repeated.
ran_out() { grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; }

fuzz() { # FOLDER TARGET DURATION
  for try in 1 2 3; do
    if go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" "./$1" </dev/null 2>&1 | tee "$log"; then
      return 0
    fi
    ran_out || return 1
    echo "$2: out of time in the middle of an input (try $try)"
  done
  return 1
}

targets=$(git grep -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go' || [ $? -eq 1 ])
sed -nE 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*)\(.*|\1 \2|p' <<<"$targets" |
  while read -r folder target; do
    fuzz "$folder" "$target" "$1"
  done
