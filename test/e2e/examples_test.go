package e2e

import (
	"strings"
	"testing"
)

// example is a module whose examples in the manual are run on a host as they are.
type example struct {
	module   string
	packages string // that the host needs
	prepare  string // what the examples take for granted
	always   int    // tasks that count as a change each time
}

// examples are in an order in which one may use what another made.
func examples() []example {
	return []example{
		{module: "archive", packages: "xz-utils", prepare: "mkdir -p /etc/app /etc/app.d /var/backups; touch /etc/app/a /etc/app/b.tmp /etc/app.d/c.conf; echo log >/var/log/app.log.1"},
		{module: "ini_file"},
		{module: "xml", prepare: `mkdir -p /etc/app /srv/app
echo '<Server><Connector protocol="HTTP/1.1" port="80"/></Server>' >/etc/app/server.xml
echo '<users/>' >/etc/app/users.xml
echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><version>1</version></project>' >/srv/app/pom.xml`},
		{module: "json_patch", prepare: `mkdir -p /etc/docker /etc/app; echo '{"version": 1, "listen": ":80", "server": {}}' >/etc/app/config.json`},
		{module: "htpasswd", prepare: "mkdir -p /etc/nginx"},
		{module: "acl", packages: "acl", prepare: "id ada >/dev/null 2>&1 || useradd ada; mkdir -p /srv/app"},
		{module: "xattr", packages: "attr", prepare: "mkdir -p /srv/app; touch /srv/app/data"},
		{module: "iptables"},
		{module: "filesystem", packages: "e2fsprogs", prepare: "rm -f /dev/vdb; truncate -s 64M /dev/vdb"}, // an image in the place of a disk
		{module: "parted", packages: "parted", prepare: "rm -f /dev/vdb; truncate -s 64M /dev/vdb"},
		{module: "git", packages: "git", prepare: `rm -rf /srv/git /srv/app /etc/app/config; mkdir -p /srv/git /etc/app; cd /srv/git
git init -q -b main one; cd one; echo 1 >file; git add file; git -c user.name=t -c user.email=t@example.org commit -q -m one; git tag v1.4.2
git config --system url./srv/git/one.insteadOf https://git.example.org/app.git
git config --system --add url./srv/git/one.insteadOf git@git.example.org:ops/config.git`},
		{module: "openssl_privatekey"},
		{module: "openssl_publickey"},
		{module: "openssl_csr"},
		{module: "x509_certificate", packages: "openssl", prepare: `cd /etc/ssl
openssl req -x509 -newkey rsa:2048 -nodes -keyout private/ca.pem -out ca.crt -days 30 -subj /CN=ca 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout private/test.pem -out test.csr -subj /CN=test 2>/dev/null`},
		{module: "expect", always: 1, prepare: `id ada >/dev/null 2>&1 || useradd ada
mkdir -p /opt/app; rm -f /opt/app/installed
printf '#!/bin/sh\nprintf "Accept? [y/n]"; read -r a; printf "Folder:"; read -r b; echo "$a $b" >/opt/app/installed\n' >/opt/app/install; chmod 755 /opt/app/install`},
	}
}

// TestExamples runs what the manual shows: twice, and the second time nothing
// is left to do.
func TestExamples(t *testing.T) {
	g := newTarget(t)
	c := newController(t)
	t.Cleanup(func() {
		g.sh("iptables -F; iptables -t nat -F; iptables -X APP; ip6tables -X APP; userdel ada; rm -rf /etc/app /etc/app.d /etc/docker /etc/nginx /srv/app /srv/git /opt/app /dev/vdb /etc/gitconfig; true")
	})
	for _, e := range examples() {
		t.Run(e.module, func(t *testing.T) {
			g := target{t, g.conn}
			if e.packages != "" {
				g.needs(e.packages)
			}
			g.sh(e.prepare + "\n:")
			playbook := "- hosts: node1\n  gather_facts: false\n  vars:\n    ada_password: a password\n  tasks:\n"
			for _, text := range g.spec(e.module).Examples {
				playbook += "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
			}
			c.play(t, playbook).exits(t, 0)
			again := c.play(t, playbook)
			again.exits(t, 0)
			again.recap(t, "node1", "changed="+string(rune('0'+e.always)), "failed=0")
		})
	}
}
