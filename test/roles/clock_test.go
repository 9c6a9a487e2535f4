package roles

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kubekey/test/lab"
)

// etcdOnADay sets the clock of a host, runs two etcd members there with the certificates that kk made, and prints
// whether they answer, or why not. The programs and certificates are those of this machine.
const etcdOnADay = `set -u
mkdir -p /mnt/programs /mnt/pki
mountpoint -q /mnt/programs || mount -t hostfs -o '%s' none /mnt/programs
umount /mnt/pki 2>/dev/null; mount -t hostfs -o '%s' none /mnt/pki
date -s '@%d' >/dev/null
rm -rf /var/tmp/etcd && mkdir /var/tmp/etcd && cd /mnt/pki
for n in 1 2; do
	setsid /mnt/programs/etcd --name node$n --data-dir /var/tmp/etcd/node$n --heartbeat-interval 500 \
		--election-timeout 5000 --listen-client-urls https://127.0.0.1:${n}2379 --advertise-client-urls \
		https://127.0.0.1:${n}2379 --cert-file server-node$n.crt --key-file server-node$n.key --trusted-ca-file ca.crt \
		--client-cert-auth --listen-peer-urls https://127.0.0.1:${n}2380 --initial-advertise-peer-urls \
		https://127.0.0.1:${n}2380 --peer-cert-file peer-node$n.crt --peer-key-file peer-node$n.key --peer-trusted-ca-file \
		ca.crt --peer-client-cert-auth --initial-cluster node1=https://127.0.0.1:12380,node2=https://127.0.0.1:22380 \
		>/var/tmp/etcd/log$n 2>&1 </dev/null &
done
result=healthy n=0
until /mnt/programs/etcdctl --endpoints https://127.0.0.1:12379,https://127.0.0.1:22379 --cacert ca.crt \
	--cert client.crt --key client.key endpoint health >/var/tmp/etcd/health 2>&1; do
	n=$((n + 1))
	result=$(grep -ho 'certificate has expired' /var/tmp/etcd/log* /var/tmp/etcd/health | head -n 1)
	[ $n -lt 20 ] && [ -z "$result" ] || break
	result=healthy
	sleep 1
done
pkill -KILL -x etcd
wait
date +%%F
echo "${result:-$(tail -n 3 /var/tmp/etcd/log* /var/tmp/etcd/health)}"`

// etcdAfter runs etcd as it would after some days, on a host with a clock of its own.
func (p *project) etcdAfter(t *testing.T, l *lab.Lab, days int) string {
	t.Helper()
	programs, _ := upstream(t, "etcd")
	day := time.Now().AddDate(0, 0, days).UTC()
	out := onHost(t, l, 0, fmt.Sprintf(etcdOnADay, programs, p.path("work/clusters/kk/pki/etcd"), day.Unix()))
	date, result, _ := strings.Cut(out, "\n")
	if want := day.Format(time.DateOnly); date != want {
		t.Errorf("etcd ran on %s, want %s", date, want)
	}
	return result
}
