package project

import (
	"slices"
	"strings"

	"kubekey/pkg/module"
)

// isElsewhere reports whether a name that no module of kk has is one that
// Ansible's other collections have: a full name, or a plain one from the time
// when all modules were Ansible's own.
func isElsewhere(name string) bool {
	if strings.Contains(name, ".") {
		return module.IsForeign(name)
	}
	return slices.Contains(elsewhereNames, name) ||
		slices.ContainsFunc(elsewhereFamilies, func(family string) bool { return strings.HasPrefix(name, family) })
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
