#!/usr/bin/env bash
# A cluster of three nodes on hosts of a lab, from the lab's mirror of upstream: run.sh FOLDER-OF-KK [offline]
# With offline, kk exports everything into one file, then the network is cut, and the cluster comes from the file.
# The lab goes when it is done and when it fails; what the mirror built stays for the next time.
set -euo pipefail

PATH=$(realpath "$1"):$PATH
root=$(realpath "$(dirname "$0")/../..")
cd "$root"
work=$(mktemp -d -t kk-demo.XXXXXX)
export KK_WORKDIR=$work/.kk
show() { printf '\n$ %s\n' "$*"; "$@"; }

mirror=
finish() {
  [ -z "$mirror" ] || kill "$mirror" 2>/dev/null || true
  cd "$root"
  go run ./test/lab/cmd down -name demo
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

echo 'building the mirror of upstream, unless it is there: half an hour the first time'
go build -o "$work/upstream" ./test/upstream/cmd
"$work/upstream" build
lab=$(dirname "$(go run ./test/lab/cmd up -n 3 -name demo)")
"$work/upstream" serve -lab demo >"$work/mirror.log" 2>&1 &
mirror=$!
until grep -q '^serving' "$work/mirror.log"; do
  kill -0 "$mirror" 2>/dev/null || { cat "$work/mirror.log" >&2; exit 1; }
  sleep 0.2
done

# The inventory and how to reach its hosts; the config says what is special about the lab.
cp "$lab/config.yaml" "$work"
mkdir "$work/group_vars"
cat >"$work/group_vars/all.yaml" <<END
ansible_ssh_private_key_file: $lab/id_ed25519
ansible_ssh_common_args: -o UserKnownHostsFile=$lab/known_hosts
END
nodes=$(sed -n 's/^    \(node[0-9]*\):$/\1=/p; s/^      ansible_host: \(.*\)/\1,/p' "$lab/inventory.yaml" | tr -d '\n')
cd "$work"
kk create inventory --nodes "${nodes%,}" >inventory.yaml

if [ "${2:-}" = offline ]; then
  show kk artifact export -i inventory.yaml -c config.yaml --os debian-12 -o kubernetes.tar
  show kk artifact verify kubernetes.tar
  kill "$mirror"
  wait "$mirror" || true
  mirror=
  rm -rf "$KK_WORKDIR"
  outpost=$(cd "$root" && go run ./test/lab/cmd cut -name demo)
  cut() { ip netns exec "$outpost" "$@"; }
  show cut kk run playbooks/create_cluster.yaml -i inventory.yaml -c config.yaml --set "artifact.files=[\"$work/kubernetes.tar\"]"
else
  cut() { "$@"; }
  show kk run playbooks/create_cluster.yaml -i inventory.yaml -c config.yaml
fi
# kubectl as kk downloaded it, with the kubeconfig that kk left on this machine.
install -D -t bin "$KK_WORKDIR"/cache/kubectl/*/*/kubectl
PATH=$work/bin:$PATH
export KUBECONFIG=$KK_WORKDIR/clusters/kk/kubeconfig
show cut kubectl get nodes,pods -A -o wide
