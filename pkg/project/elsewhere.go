package project

import (
	"slices"
	"strings"

	"kubekey/pkg/module"
)

// isElsewhere reports whether an unknown module name belongs to one of Ansible's other collections. It is a full
// name, or a plain name from the time when all modules were part of Ansible itself.
func isElsewhere(name string) bool {
	if strings.Contains(name, ".") {
		return module.IsForeign(name)
	}
	return slices.Contains(elsewhereNames, name) ||
		slices.ContainsFunc(elsewhereFamilies, func(family string) bool { return strings.HasPrefix(name, family) })
}

// elsewhereFamilies are prefixes of the names of modules for a single product or for systems other than Linux.
var elsewhereFamilies = []string{
	"aws_", "azure_rm_", "docker_", "ec2_", "gce_", "gcp_", "grafana_", "mongodb_", "mysql_", "openbsd_", "os_",
	"postgresql_",
	"proxysql_", "rabbitmq_", "redis_", "rds_", "s3_", "vmware_", "win_", "zabbix_",
}

// elsewhereNames are modules for package managers and tools of other systems. Roles contain tasks with them next to
// those for systems that kk supports.
var elsewhereNames = []string{
	"aix_lvg", "apt_rpm", "composer", "cpanm", "copr", "dnf_versionlock", "docker", "flatpak", "flatpak_remote", "gem",
	"homebrew", "homebrew_cask",
	"homebrew_tap", "installp", "jenkins_job", "jenkins_plugin", "macports", "opkg", "osx_defaults", "pacman", "pkg5",
	"pkgin", "pkgng",
	"pkgutil", "portage", "portinstall", "redhat_subscription", "rhsm_release", "rhsm_repository", "sefcontext",
	"selinux_permissive", "selogin",
	"seport", "slackpkg", "snap", "sorcery", "svr4pkg", "swdepot", "swupd", "urpmi", "xbps", "yarn", "zypper_repository",
}
