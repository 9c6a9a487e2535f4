package module

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/value"
)

// Elsewhere reports whether a name that no module of kk has is one that
// Ansible's other collections have: a full name, or a plain one from the time
// when all modules were Ansible's own.
func Elsewhere(name string) bool {
	if strings.Contains(name, ".") {
		parts := strings.Split(name, ".")
		return len(parts) >= 3 && !slices.Contains(parts, "") && parts[0] != own &&
			!strings.HasPrefix(name, Builtin+".") && !strings.HasPrefix(name, "ansible.legacy.")
	}
	for _, family := range elsewhereFamilies {
		if strings.HasPrefix(name, family) {
			return true
		}
	}
	return slices.Contains(elsewhereNames, name)
}

// elsewhereFamilies are what names of modules begin with that are about one
// product, or about systems that are not Linux.
var elsewhereFamilies = []string{
	"aws_", "azure_rm_", "docker_", "ec2_", "gce_", "gcp_", "grafana_", "mongodb_", "mysql_", "openbsd_", "os_", "postgresql_",
	"proxysql_", "rabbitmq_", "redis_", "rds_", "s3_", "vmware_", "win_", "zabbix_",
}

// elsewhereNames are the package managers and tools of systems that roles
// carry a task for, among those of the systems that kk knows.
var elsewhereNames = []string{
	"aix_lvg", "apt_rpm", "composer", "cpanm", "copr", "dnf_versionlock", "docker", "flatpak", "flatpak_remote", "gem", "homebrew", "homebrew_cask",
	"homebrew_tap", "installp", "jenkins_job", "jenkins_plugin", "macports", "opkg", "osx_defaults", "pacman", "pkg5", "pkgin", "pkgng",
	"pkgutil", "portage", "portinstall", "redhat_subscription", "rhsm_release", "rhsm_repository", "sefcontext", "selinux_permissive", "selogin",
	"seport", "slackpkg", "snap", "sorcery", "svr4pkg", "swdepot", "swupd", "urpmi", "xbps", "yarn", "zypper_repository",
}

// Missing stands for a module that kk does not have, in a task that hosts may never
// reach: one that reaches it fails.
func Missing(name string) *Spec {
	return &Spec{
		Name: name, Summary: "A module that kk does not have.", AnyArgs: true, Where: OnControl, FreeForm: "_raw_params",
		New: func() Runner { return &missing{name: name, Args: value.NewDict()} },
	}
}

type missing struct {
	name string
	Args *value.Dict `kk:",rest"`
}

// Run implements Runner.
func (m *missing) Run(context.Context, *Call) (Result, error) {
	return Result{}, fmt.Errorf("kk has no module %s: couldn't resolve module/action '%s'", m.name, m.name)
}
