#!/usr/bin/env bash
# Fail when generated pages under docs/ are not what "make docs" writes.
set -euo pipefail

cd "$(dirname "$0")/.."
mkdir -p docs
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
cp -R docs "$before/docs"
make --no-print-directory docs
diff -ru "$before/docs" docs || {
  echo 'docs/ was stale and is rewritten: commit it' >&2
  exit 1
}
