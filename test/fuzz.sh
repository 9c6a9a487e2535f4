#!/usr/bin/env bash
# Run every fuzz target of the tree for a while: fuzz.sh DURATION
set -euo pipefail

cd "$(dirname "$0")/.."
targets=$(git grep -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go' || [ $? -eq 1 ])
sed -nE 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*)\(.*|\1 \2|p' <<<"$targets" |
  while read -r folder target; do
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "./$folder" </dev/null
  done
