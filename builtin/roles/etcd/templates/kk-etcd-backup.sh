#!/bin/sh
# Saves a snapshot of the etcd on this host in {{ etcd.backup.dir }} and keeps the newest {{ etcd.backup.keep }}.
set -eu
umask 077
keep={{ etcd.backup.keep }}
cd {{ etcd.backup.dir | quote }}

set -a
# shellcheck source=/dev/null
. {{ etcd_settings }}/etcdctl.env
set +a
# A snapshot is taken from one member. The flag --endpoints would conflict with the variable.
export ETCDCTL_ENDPOINTS={{ etcd_backup_url | quote }}

work=$(mktemp -d .partial.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
{{ cluster_bin }}/etcdctl snapshot save "$work/snapshot.db"
{{ cluster_bin }}/etcdutl snapshot status "$work/snapshot.db"
mv "$work/snapshot.db" "snapshot-$(date -u +%Y%m%dT%H%M%SZ).db"

# The names sort by time, oldest first.
set -- snapshot-*.db
while [ $# -gt "$keep" ]; do
	rm -f "$1"
	shift
done
