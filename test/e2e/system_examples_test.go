package e2e

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// notHere are modules whose examples a host of Debian cannot run.
var notHere = map[string]string{
	"artifact_check":      "needs an offline file; its package, test/roles and test/cluster have some",
	"artifact_distribute": "needs an offline file; its package, test/roles and test/cluster have some",
	"artifact_export":     "needs an offline file; its package, test/roles and test/cluster have some",
	"artifact_known":      "needs an offline file; its package, test/roles and test/cluster have some",
	"artifact_packages":   "needs an offline file; its package, test/roles and test/cluster have some",
	"artifact_repository": "needs an offline file; its package, test/roles and test/cluster have some",
	"image_load":          "needs an offline file; its package, test/roles and test/cluster have some",
	"zypper":              "the host has no repository of SUSE",
	"apk":                 "Debian has no apk",
	"dnf":                 "its example installs from a repository that is not there; TestDNF has one",
	"selinux":             "the kernel of the lab has no SELinux",
	"seboolean":           "the kernel of the lab has no SELinux",
	"mount":               "its example wants a second disk",
	"npm":                 "Debian's npm is 372 packages, which take minutes",
}

// beforeExamples is what the examples of a module find on the host, and
// afterExamples takes away what they leave.
var (
	beforeExamples = map[string]string{
		"systemd": standIn("containerd"),
		"service": standIn("chrony"),
		"apt":     "apt-get update -q >/dev/null 2>&1; true",
		"rpm_key": "{ apt-get update -q; apt-get -q -y install --no-install-recommends rpm gnupg; } >/dev/null 2>&1; mkdir -p /etc/pki/rpm-gpg; " +
			"gpg -q --no-default-keyring --keyring " + debianKey + " --armor --export >/etc/pki/rpm-gpg/RPM-GPG-KEY-kubernetes",
		"sysvinit":       initScript,
		"pip":            wheels,
		"apache2_module": "{ apt-get update -q; apt-get -q -y install --no-install-recommends apache2; } >/dev/null 2>&1",
		"locale_gen":     "{ apt-get update -q; apt-get -q -y install --no-install-recommends locales; } >/dev/null 2>&1",
		"pamd":           "cp -a /etc/pam.d /root/pam.d",
		"package":        "apt-get update -q >/dev/null 2>&1; true",
		"capabilities":   "{ apt-get update -q; apt-get -q -y install --no-install-recommends libcap2-bin; } >/dev/null 2>&1; cp /bin/true /usr/local/bin/server",
	}
	afterExamples = map[string]string{
		"systemd":           "systemctl disable -q --now containerd; rm /etc/systemd/system/containerd.service",
		"service":           "systemctl disable -q --now chrony; rm /etc/systemd/system/chrony.service",
		"capabilities":      "rm /usr/local/bin/server",
		"cronvar":           "rm /etc/cron.d/backup",
		"authorized_key":    "sed -i '/ team$/d' /root/.ssh/authorized_keys",
		"sysvinit":          noInitScript,
		"pip":               noWheels,
		"apache2_module":    "apt-get -q -y purge --autoremove apache2 apache2-bin apache2-data apache2-utils >/dev/null 2>&1",
		"locale_gen":        "apt-get -q -y purge locales >/dev/null 2>&1; rm -f /etc/locale.gen; true",
		"pam_limits":        "rm /etc/security/limits.d/90-files.conf",
		"pamd":              "cp -a /root/pam.d/. /etc/pam.d/; rm -r /root/pam.d",
		"known_hosts":       "rm /etc/ssh/ssh_known_hosts",
		"ssh_config":        "rm /root/.ssh/config",
		"sudoers":           "rm /etc/sudoers.d/operators",
		"apt_repository":    "rm /etc/apt/sources.list.d/backports.list",
		"deb822_repository": "rm /etc/apt/sources.list.d/backports.sources",
		"yum_repository":    "rm /etc/yum.repos.d/kubernetes.repo",
		"rpm_key":           "rpm --erase --allmatches gpg-pubkey; rm -r /etc/pki",
		"dpkg_selections":   "echo tar install | dpkg --set-selections",
	}
)

// standIn is a script that makes a service of the name, which sleeps.
func standIn(name string) string {
	return "printf '[Service]\\nExecStart=sleep 9999\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/" +
		name + ".service; systemctl daemon-reload"
}

// TestExamplesOfTheSystemFamily runs what the manual shows, twice: the second
// time nothing is to do.
func TestExamplesOfTheSystemFamily(t *testing.T) {
	all := newTarget(t)
	for _, s := range systemFamily(t) {
		t.Run(s.Name, func(t *testing.T) {
			if why := notHere[s.Name]; why != "" {
				t.Skip(why)
			}
			g := all.in(t)
			g.sh(beforeExamples[s.Name])
			if after := afterExamples[s.Name]; after != "" {
				t.Cleanup(func() { g.sh(after) })
			}
			for _, text := range s.Examples {
				for _, args := range g.exampleTasks(s, text) {
					g.example(s, args)
				}
			}
		})
	}
}

// exampleTasks are the arguments of the tasks of an example.
func (g target) exampleTasks(s module.Spec, text string) []*value.Dict {
	g.t.Helper()
	text = strings.ReplaceAll(text, "{{ inventory_hostname }}", g.name())
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		g.t.Fatalf("%s: %v", text, err)
	}
	v, err := value.FromYAML(&doc)
	tasks, ok := v.([]any)
	if err != nil || !ok {
		g.t.Fatalf("%s is no list of tasks: %v", text, err)
	}
	var out []*value.Dict
	for _, task := range tasks {
		args, there := task.(*value.Dict).Get(s.Name)
		if !there {
			g.t.Fatalf("an example does not use the module: %s", text)
		}
		dict, _ := args.(*value.Dict)
		if dict == nil {
			dict = value.NewDict()
		}
		out = append(out, dict)
	}
	return out
}

// example runs the arguments in check mode and twice.
func (g target) example(s module.Spec, args *value.Dict) {
	g.t.Helper()
	o := moduletest.Options{Conn: g.conn, Diff: true}
	dry := o
	dry.Check = true
	predicted := moduletest.Run(g.t, s, args, dry)
	first := moduletest.Run(g.t, s, args, o)
	second := moduletest.Run(g.t, s, args, o)
	if first.Failed || second.Failed || predicted.Failed {
		g.t.Errorf("%s failed: %s %s %s", value.Repr(args), predicted.Msg, first.Msg, second.Msg)
	}
	if predicted.Changed != first.Changed && !predicted.Skipped {
		g.t.Errorf("%s: check mode predicts changed=%v, and it is %v", value.Repr(args), predicted.Changed, first.Changed)
	}
	if second.Changed {
		g.t.Errorf("%s changes something the second time", value.Repr(args))
	}
}
