#!/usr/bin/env bash
# Bring up a lab of three hosts, run a playbook on it twice, take it down: run.sh KK
set -euo pipefail

cd "$(dirname "$0")/../.."
kk=$1
lab() { go run ./test/lab/cmd "$1" -name demo "${@:2}"; }

trap 'lab down' EXIT
inventory=$(lab up -n 3)
for _ in first second; do
  "$kk" run test/demo/site.yaml -i "$inventory"
done
