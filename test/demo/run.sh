#!/usr/bin/env bash
# Bring up a lab of three hosts, one of them faulty; check them, run a playbook
# on them twice, take the lab down: run.sh KK
set -euo pipefail

cd "$(dirname "$0")/../.."
kk=$1
say() { printf '\n$ %s\n' "$*"; }

trap 'go run ./test/lab/cmd down -name demo' EXIT
inventory=$(go run ./test/demo/faulty)
workdir=$(mktemp -d)
trap 'rm -rf "$workdir"; go run ./test/lab/cmd down -name demo' EXIT

# The lab's inventory says how to reach the hosts, cluster.yaml what they are for.
address() { sed -n "/^    $1:/,/ansible_host/s/.*ansible_host: //p" "$inventory"; }
for n in node1 node2 node3; do
  sed -i "s/^    $n:\$/&\n      internal_ipv4: $(address "$n")/" "$inventory"
done

say kk precheck -i hosts.yaml -i cluster.yaml -c config.yaml
code=0
"$kk" precheck -i "$inventory" -i test/demo/cluster.yaml -c test/demo/config.yaml --workdir "$workdir" || code=$?
echo "exit code $code"
[ "$code" = 2 ] || { echo "the faulty host was not found" >&2; exit 1; }

for _ in first second; do
  say kk run site.yaml -i hosts.yaml
  "$kk" run test/demo/site.yaml -i "$inventory" --workdir "$workdir"
done
