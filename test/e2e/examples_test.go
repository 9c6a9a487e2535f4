package e2e

import (
	"fmt"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
)

// example is a module whose examples in the manual are run on a host as they are.
type example struct {
	module   string
	packages string            // that the host needs
	prepare  string            // what the examples take for granted
	always   int               // tasks that count as a change each time
	files    map[string]string // of the control node, beside the playbook
	vars     string            // of the play, as YAML
	handlers string            // likewise
	groups   string            // of an inventory of its own, beside the lab's; HOST is the host's name
	facts    bool              // the play gathers facts
}

// examples are in an order in which one may use what another made.
func examples() []example {
	return []example{
		{module: "archive", packages: "xz-utils",
			prepare: "mkdir -p /etc/app /etc/app.d /var/backups; touch /etc/app/a /etc/app/b.tmp /etc/app.d/c.conf; echo log >/var/log/app.log.1"},
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
		// an image in the place of a disk
		{module: "filesystem", packages: "e2fsprogs", prepare: "rm -f /dev/vdb; truncate -s 64M /dev/vdb"},
		{module: "parted", packages: "parted", prepare: "rm -f /dev/vdb; truncate -s 64M /dev/vdb"},
		{module: "git", packages: "git", prepare: `rm -rf /srv/git /srv/app /etc/app/config; mkdir -p /srv/git /etc/app; cd /srv/git
git init -q -b main one; cd one; echo 1 >file; git add file; git -c user.name=t -c user.email=t@example.org commit -q -m one; git tag v1.4.2
git config --system url./srv/git/one.insteadOf https://git.example.org/app.git
git config --system --add url./srv/git/one.insteadOf git@git.example.org:ops/config.git`},
		{module: "subversion", packages: "subversion",
			prepare: "rm -rf /srv/svn /srv/app; mkdir -p /srv/svn; cd /srv/svn; svnadmin create app; svn mkdir -q -m trunk file:///srv/svn/app/trunk"},
		{module: "git_config", packages: "git", prepare: "rm -f /etc/gitconfig /srv/deploy.gitconfig"},
		{module: "openssl_privatekey"},
		{module: "openssl_privatekey_info"},
		{module: "openssl_publickey"},
		{module: "openssl_csr"},
		{module: "openssl_csr_info"},
		{module: "openssh_keypair", prepare: "mkdir -p /root/.ssh; rm -f /root/.ssh/backup /root/.ssh/backup.pub"},
		{module: "openssl_dhparam", packages: "openssl", prepare: "rm -f /etc/ssl/dhparams.pem"},
		{module: "x509_certificate", packages: "openssl", prepare: `cd /etc/ssl
openssl req -x509 -newkey rsa:2048 -nodes -keyout private/ca.pem -out ca.crt -days 30 -subj /CN=ca 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout private/test.pem -out test.csr -subj /CN=test 2>/dev/null`},
		{module: "openssl_pkcs12", packages: "openssl",
			prepare: "cd /etc/ssl; rm -f private/web.p12; openssl req -x509 -newkey rsa:2048 -nodes -keyout private/web.pem -out web.crt -days 30 -subj /CN=web 2>/dev/null"},
		{module: "make", packages: "make", prepare: `mkdir -p /srv/app; rm -f /srv/app/app; printf 'app:\n\techo $(PREFIX) >app\n' >/srv/app/Makefile`},
		{module: "patch", packages: "patch", prepare: "mkdir -p /srv/app; cd /srv/app; printf '#!/bin/sh\nold\n' >start.sh; echo 1 >version\n" +
			`printf -- '--- a/version\n+++ b/version\n@@ -1 +1 @@\n-1\n+2\n' >release.patch`,
			files: map[string]string{"start.patch": "--- start.sh\n+++ start.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-old\n+new\n"}},
		{module: "expect", always: 1, prepare: `id ada >/dev/null 2>&1 || useradd ada
mkdir -p /opt/app; rm -f /opt/app/installed
printf '#!/bin/sh\nprintf "Accept? [y/n]"; read -r a; printf "Folder:"; read -r b; echo "$a $b" >/opt/app/installed\n' >/opt/app/install; chmod 755 /opt/app/install`},
	}
}

// TestExamples runs what the manual shows: twice, and the second time nothing
// is left to do.
func TestExamples(t *testing.T) {
	g := newTarget(t)
	t.Cleanup(func() {
		g.sh("iptables -F; iptables -t nat -F; iptables -X APP; ip6tables -X APP; userdel ada; rm -rf /etc/app /etc/app.d /etc/docker /etc/nginx /srv/app /srv/git /opt/app /dev/vdb /etc/gitconfig /srv/deploy.gitconfig; true")
	})
	runExamples(t, g, examples())
}

func runExamples(t *testing.T, g target, list []example) {
	t.Helper()
	c := newController(t)
	for _, e := range list {
		t.Run(e.module, func(t *testing.T) {
			g := g.in(t)
			if e.packages != "" {
				g.needs(e.packages)
			}
			g.sh(e.prepare + "\n:")
			for name, text := range e.files {
				c.write(t, name, text)
			}
			playbook, inventory := e.playbook(t, g.name()),
				c.write(t, "groups.ini", strings.ReplaceAll(e.groups, "HOST", g.name()))
			c.play(t, playbook, "-i", inventory).exits(t, 0)
			again := c.play(t, playbook, "-i", inventory)
			again.exits(t, 0)
			again.recap(t, g.name(), "changed="+string(rune('0'+e.always)), "failed=0")
		})
	}
}

// playbook is the examples in a play.
func (e example) playbook(t *testing.T, host string) string {
	t.Helper()
	text := fmt.Sprintf("- hosts: %s\n  gather_facts: %t\n  vars:\n    ada_password: a password\n%s  tasks:\n", host,
		e.facts, e.vars)
	for _, tasks := range moduletest.Find(t, allModules(t), e.module).Examples {
		text += "    " + strings.ReplaceAll(strings.TrimSpace(tasks), "\n", "\n    ") + "\n"
	}
	if e.handlers != "" {
		text += "  handlers:\n" + e.handlers
	}
	return text
}
