#!/usr/bin/env bash
# Look for known vulnerabilities in the code that kk calls; what is found there fails. Where the
# database of them cannot be had nothing is known, which is said, and fails nothing.
# GOVULNDB is another database than that of Go.
set -euo pipefail

cd "$(dirname "$0")/.."
test/need.sh curl:curl
db=${GOVULNDB:-https://vuln.go.dev}
if ! why=$(curl -fsS --connect-timeout 5 --max-time 15 -o /dev/null "$db/index/db.json" 2>&1); then
  echo "govulncheck is left out: its database $db cannot be reached ($why)"
  exit 0
fi
go tool -modfile=test/tools/go.mod govulncheck -db "$db" ./...
