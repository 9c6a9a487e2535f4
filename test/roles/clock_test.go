package roles

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"testing"
	"time"
)

// etcdOnADay is the init of a kernel whose clock is some days ahead. Its files are those of this machine, read-only. It
// runs two etcd members with the certificates that kk made, and prints whether they answer, or why not.
const etcdOnADay = `#!/bin/sh
[ $$ -eq 1 ] || exit 1
exec 2>&1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t tmpfs -o size=768M tmpfs /run
ip link set lo up
date -s "@$(($(date +%%s) + days * 86400))" >/run/date
cd '%[2]s'
for n in 1 2; do
	'%[1]s'/etcd --name node$n --data-dir /run/node$n --listen-client-urls https://127.0.0.1:${n}2379 \
		--advertise-client-urls https://127.0.0.1:${n}2379 --cert-file server-node$n.crt --key-file server-node$n.key \
		--trusted-ca-file ca.crt --client-cert-auth --listen-peer-urls https://127.0.0.1:${n}2380 \
		--initial-advertise-peer-urls https://127.0.0.1:${n}2380 --peer-cert-file peer-node$n.crt --peer-key-file \
		peer-node$n.key --peer-trusted-ca-file ca.crt --peer-client-cert-auth --initial-cluster \
		node1=https://127.0.0.1:12380,node2=https://127.0.0.1:22380 --heartbeat-interval 500 --election-timeout 5000 \
		>/run/log$n 2>&1 &
done
n=0
until '%[1]s'/etcdctl --endpoints https://127.0.0.1:12379,https://127.0.0.1:22379 --cacert ca.crt --cert client.crt \
	--key client.key endpoint health >/run/health 2>&1; do
	n=$((n + 1))
	if [ $n -ge 20 ] || grep -q 'has expired' /run/log* /run/health; then
		echo "RESULT $(date +%%F) $(grep -ho 'certificate has expired' /run/log* /run/health | head -1) <"
		poweroff -ff
	fi
	sleep 1
done
echo "RESULT $(date +%%F) healthy <"
poweroff -ff
`

var resultOfEtcd = regexp.MustCompile(`RESULT (\S+) (.*) <`)

// etcdAfter runs etcd as it would after some days: in a kernel of its own (User Mode Linux), for the hosts of the lab
// have the clock of this machine.
func (p *project) etcdAfter(t *testing.T, days int) string {
	t.Helper()
	kernel, err := exec.LookPath("linux.uml")
	if err != nil {
		t.Skip("linux.uml is not installed: the clock of etcd cannot be turned")
	}
	programs, _ := upstream(t, "etcd")
	p.write(t, "init.sh", fmt.Sprintf(etcdOnADay, programs, p.path("work/clusters/kk/pki/etcd")))
	p.command(t, "chmod", "+x", "init.sh")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, kernel, "mem=1G", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
		fmt.Sprint("days=", days), "init="+p.path("init.sh"), "uml_dir="+p.path("uml"), "con=null", "con0=fd:0,fd:1",
		"quiet").CombinedOutput()
	m := resultOfEtcd.FindSubmatch(out)
	if m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := time.Now().AddDate(0, 0, days).UTC().Format(time.DateOnly); string(m[1]) != want {
		t.Errorf("etcd ran on %s, want %s", m[1], want)
	}
	return string(m[2])
}
