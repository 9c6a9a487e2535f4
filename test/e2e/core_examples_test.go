package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"slices"
	"testing"

	"kubekey/pkg/cli"
	"kubekey/pkg/module"
)

// ownFile are examples that need a playbook or roles around them: test/language has those.
const ownFile = "needs files around it, which the cases of test/language have"

// notAsTheyAre are modules whose examples are not run on a host as the manual has them.
var notAsTheyAre = map[string]string{
	"import_playbook": ownFile,
	"import_role":     ownFile,
	"import_tasks":    ownFile,
	"include_role":    ownFile,
	"include_tasks":   ownFile,
	"include_vars":    ownFile,
	"meta":            ownFile,
	"add_hostvars":    ownFile,
	"async_status":    "waits for minutes; async_test.go has jobs of seconds",
	"pause":           "waits for a person",
	"reboot":          "a host of the lab does not start again by itself; faults_reboot_test.go starts it",
	"firewalld":       "TestFirewalld has the same tasks where the daemon runs",
	"ufw":             "would shut out the test itself; TestUFW has the same rules",
	"lvg":             "the kernel has no device mapper",
	"lvol":            "the kernel has no device mapper",
	"download":        "fetches from the internet; pkg/module/net has a server of its own",
	"get_url":         "fetches from the internet; pkg/module/net has a server of its own",
	"http_get_file":   "fetches from the internet; pkg/module/net has a server of its own",
	"uri":             "asks a registry; pkg/module/net has a server of its own",
	"image":           "copies from the internet; pkg/module/image has registries of its own",
	"helm":            "needs a cluster; pkg/module/kube has an API server",
	"helm_repository": "asks a server of charts; pkg/module/kube has one of its own",
	"k8s":             "needs a cluster; pkg/module/kube has an API server",
	"k8s_info":        "needs a cluster; pkg/module/kube has an API server",
}

// Every module's examples are run, by playbooks or by systemFamily, or it is said why they are not.
func TestEveryModuleHasItsExamplesRun(t *testing.T) {
	run := inPlaybooks(t)
	for _, s := range allModules(t) {
		if run[s.Name] && notAsTheyAre[s.Name] != "" {
			t.Errorf("the examples of %s are run: take out the reason why not", s.Name)
		}
	}
	family := systemFamily(t)
	for name := range notHere {
		if !slices.ContainsFunc(family, func(s module.Spec) bool { return s.Name == name }) {
			t.Errorf("the examples of %s are not run in this way: take out the reason why not", name)
		}
	}
}

// inPlaybooks are the modules whose examples are run as playbooks.
func inPlaybooks(t *testing.T) map[string]bool {
	run := map[string]bool{}
	for _, e := range slices.Concat(examples(), coreExamples(t), mariaDBExamples(), postgreSQLExamples()) {
		run[e.module] = true
	}
	return run
}

// systemFamily are the other modules, whose examples are tasks of one host.
func systemFamily(t *testing.T) []module.Spec {
	run := inPlaybooks(t)
	return slices.DeleteFunc(allModules(t), func(s module.Spec) bool { return run[s.Name] || notAsTheyAre[s.Name] != "" })
}

func allModules(t *testing.T) []module.Spec {
	t.Helper()
	all, err := cli.Modules()
	if err != nil {
		t.Fatal(err)
	}
	var specs []module.Spec
	for _, s := range all.Specs() {
		specs = append(specs, *s)
	}
	return specs
}

const app = "mkdir -p /etc/app; printf '#!/bin/sh\\nexit 0\\n' >/usr/local/bin/app; chmod 755 /usr/local/bin/app; id app >/dev/null 2>&1 || useradd app"

// coreExamples are those of the modules that every playbook has.
func coreExamples(t *testing.T) []example {
	return []example{
		{module: "add_host", always: 1},
		{module: "assemble", prepare: app + "; mkdir -p /etc/app/conf.d; echo a >/etc/app/conf.d/1; echo b >/etc/app/conf.d/2"},
		{module: "assert", vars: "    kube_version: '1.34'\n", groups: "[etcd]\nHOST\n"},
		{module: "blockinfile"},
		{module: "command", prepare: "printf '#!/bin/sh\\nmkdir -p /var/lib/app; touch /var/lib/app/done\\n' >/usr/local/bin/init; chmod 755 /usr/local/bin/init"},
		{module: "copy", prepare: app, files: map[string]string{"conf.d/a.conf": "a\n", "conf.d/more/b.conf": "b\n"}},
		{module: "debug", vars: "    name: someone\n"},
		{module: "fail", facts: true},
		{module: "fetch", prepare: "mkdir -p /etc/app /etc/kubernetes; echo cert >/etc/app/tls.crt; echo conf >/etc/kubernetes/admin.conf"},
		{module: "file", prepare: app + "; rm -rf /opt/app /opt/app-1.2; mkdir -p /opt/app-1.2; touch /var/log/old.log"},
		{module: "find", prepare: "mkdir -p /var/log/app; touch -d '60 days ago' /var/log/app/a.log; touch /var/log/app/b.log"},
		{module: "gen_cert"},
		{module: "gen_secret"},
		{module: "group_by", always: 1, facts: true},
		{module: "lineinfile", prepare: "echo '10.0.0.1 old.example.org' >>/etc/hosts"},
		{module: "ping"},
		{module: "raw", always: 1},
		{module: "replace", prepare: "echo '/swap none swap sw 0 0' >>/etc/fstab"},
		{module: "result", vars: "    vip: 10.0.0.1\n"},
		{module: "script", packages: "python3-minimal", always: 1, files: map[string]string{
			"setup.sh": "#!/bin/sh\n[ \"$1\" = --fast ]\n", "setup.py": "open('/etc/app.conf', 'w').write('x')\n"}},
		{module: "set_fact", groups: "[etcd]\nHOST\n"},
		{module: "set_stats"},
		{module: "setup"},
		{module: "shell", always: 1, prepare: "mkdir -p /backup; printf '#!/bin/sh\\ntouch \"$3\"\\n' >/usr/local/bin/etcdctl; chmod 755 /usr/local/bin/etcdctl"},
		{module: "slurp", prepare: "mkdir -p /etc/app; echo key >/etc/app/key.pub"},
		{module: "stat", always: 1, prepare: app + "; touch /etc/app.conf"},
		{module: "tempfile", always: 1},
		{module: "template", prepare: app, handlers: "    - {name: restart app, debug: {}}\n",
			files: map[string]string{"templates/app.conf.j2": "{{ inventory_hostname }}\n"}},
		{module: "unarchive", packages: "zip unzip",
			files:   map[string]string{"files/tools.tar.gz": archive(t, "tools-1/bin/kk-tool", "x")},
			prepare: "rm -rf /opt/app /tmp/app.zip; mkdir -p /opt/app /tmp/zip/bin; touch /tmp/zip/bin/app; cd /tmp/zip; zip -q -r ../app.zip bin; rm -r /tmp/zip"},
		{module: "validate_argument_spec", vars: "    port: 80\n"},
		{module: "wait_for", prepare: "systemd-run -q --unit kk-listens --collect systemd-socket-activate -l 6443 --inetd -a cat; mkdir -p /var/log/app; echo 'ready in 7 ms' >/var/log/app.log"},
		{module: "wait_for_connection"},
		{module: "x509_certificate_info", packages: "openssl",
			prepare: "mkdir -p /etc/kubernetes/pki; cd /etc/kubernetes/pki; openssl req -x509 -newkey rsa:2048 -nodes -keyout apiserver.key -out apiserver.crt -days 90 -subj /CN=api 2>/dev/null"},
	}
}

// archive is a packed file.
func archive(t *testing.T, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestExamplesOfTheCore is TestExamples for the modules that every playbook has.
func TestExamplesOfTheCore(t *testing.T) {
	g := newTarget(t)
	g.sh("mkdir -p /root/kept; cp -a /etc/hosts /etc/fstab /etc/motd /etc/ssh/sshd_config /root/kept/")
	t.Cleanup(func() {
		g.sh(`cp -a /root/kept/hosts /root/kept/fstab /root/kept/motd /etc/; cp -a /root/kept/sshd_config /etc/ssh/; systemctl stop kk-listens 2>/dev/null
userdel app; rm -rf /root/kept /etc/app /etc/app.conf /etc/kubernetes /var/lib/app /var/log/app /var/log/app.log /opt/app /opt/app-1.2 /backup /tmp/app.zip \
	/usr/local/bin/app /usr/local/bin/init /usr/local/bin/etcdctl /usr/local/bin/kk-tool /tmp/ansible.*.build; true`)
	})
	runExamples(t, g, coreExamples(t))
}
