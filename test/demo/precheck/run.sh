#!/usr/bin/env bash
# The checks of hosts, on three of a lab of which one is faulty: run.sh FOLDER-OF-KK
set -euo pipefail

PATH=$(realpath "$1"):$PATH
cd "$(dirname "$0")/../../.."
KK_WORKDIR=$(mktemp -d -t kk-demo.XXXXXX)
export KK_WORKDIR
trap 'go run ./test/lab/cmd down -name demo; rm -rf "$KK_WORKDIR"' EXIT
trap 'exit 130' INT TERM
hosts=$(go run ./test/demo/precheck)

# The lab's inventory says how to reach the hosts, cluster.yaml what they are for.
printf '\n$ kk precheck -i hosts.yaml -i cluster.yaml -c config.yaml\n'
code=0
kk precheck -i "$hosts" -i test/demo/precheck/cluster.yaml -c test/demo/precheck/config.yaml || code=$?
[ "$code" = 2 ] || { echo "exit code $code: the faulty host was not found" >&2; exit 1; }
