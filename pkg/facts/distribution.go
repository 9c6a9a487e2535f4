package facts

import (
	"strings"

	"kubekey/pkg/value"
)

// distro is the name and family for an ID of os-release.
type distro struct{ name, family string }

// distroOf returns the systems whose names differ from their IDs, with the family of each.
func distroOf(id string) (distro, bool) {
	table := [...]struct {
		id string
		distro
	}{
		{"ubuntu", distro{"Ubuntu", "Debian"}},
		{"debian", distro{"Debian", "Debian"}},
		{"linuxmint", distro{"Linux Mint", "Debian"}},
		{"raspbian", distro{"Raspbian", "Debian"}},
		{"kali", distro{"Kali", "Debian"}},
		{"deepin", distro{"Deepin", "Debian"}},
		{"uos", distro{"Uos", "Debian"}},
		{"centos", distro{"CentOS", "RedHat"}},
		{"rhel", distro{"RedHat", "RedHat"}},
		{"fedora", distro{"Fedora", "RedHat"}},
		{"rocky", distro{"Rocky", "RedHat"}},
		{"almalinux", distro{"AlmaLinux", "RedHat"}},
		{"ol", distro{"OracleLinux", "RedHat"}},
		{"amzn", distro{"Amazon", "RedHat"}},
		{"kylin", distro{"Kylin Linux Advanced Server", "RedHat"}},
		{"openEuler", distro{"openEuler", "RedHat"}},
		{"euleros", distro{"EulerOS", "RedHat"}},
		{"anolis", distro{"Anolis", "RedHat"}},
		{"alinux", distro{"Alibaba", "RedHat"}},
		{"tencentos", distro{"TencentOS", "RedHat"}},
		{"cloudlinux", distro{"CloudLinux", "RedHat"}},
		{"virtuozzo", distro{"Virtuozzo", "RedHat"}},
		{"sles", distro{"SLES", "Suse"}},
		{"opensuse-leap", distro{"openSUSE Leap", "Suse"}},
		{"opensuse-tumbleweed", distro{"openSUSE Tumbleweed", "Suse"}},
		{"alpine", distro{"Alpine", "Alpine"}},
		{"arch", distro{"Archlinux", "Archlinux"}},
		{"manjaro", distro{"Manjaro", "Archlinux"}},
		{"gentoo", distro{"Gentoo", "Gentoo"}},
		{"flatcar", distro{"Flatcar", "Flatcar"}},
	}
	for _, row := range table {
		if strings.EqualFold(row.id, id) {
			return row.distro, true
		}
	}
	return distro{}, false
}

func distribution(f *value.Dict, s sections) {
	if s.line("uname", 0) == "Darwin" {
		darwin(f, s)
		return
	}
	release := map[string]string{}
	for k, v := range s.pairs("os-release") {
		release[k] = strings.Trim(v, `"'`)
	}
	d := identify(release)
	version := distroVersion(d.name, release, s)
	f.Set("distribution", d.name)
	f.Set("os_family", d.family)
	f.Set("distribution_version", version)
	f.Set("distribution_major_version", before(version, "."))
	f.Set("distribution_release", codename(release))
	put(f, "distribution_file_variety", d.name)
	f.Set("distribution_file_path", releaseFile(d.family))
	f.Set("distribution_file_parsed", true)
	if _, rest, ok := strings.Cut(version, "."); ok {
		f.Set("distribution_minor_version", before(rest, "."))
	}
	put(f, "distribution_pretty_name", release["PRETTY_NAME"])
}

// releaseFile is the file that contains the version of a family's systems.
func releaseFile(family string) string {
	switch family {
	case "RedHat":
		return "/etc/redhat-release"
	case "Alpine":
		return "/etc/alpine-release"
	case "Archlinux":
		return "/etc/arch-release"
	}
	return "/etc/os-release"
}

// identify names a system by its os-release; the family of an unknown one comes from
// ID_LIKE.
func identify(release map[string]string) distro {
	// Both lines of UOS have the ID uos: servers with the platform uel20 or uelc20 have packages of rpm.
	if strings.EqualFold(release["ID"], "uos") && strings.HasPrefix(release["PLATFORM_ID"], "platform:uel") {
		return distro{"UnionTech", "RedHat"}
	}
	if d, ok := distroOf(release["ID"]); ok {
		return d
	}
	name := before(release["NAME"], " ")
	if name == "" {
		name = "Linux"
	}
	for _, like := range strings.Fields(release["ID_LIKE"]) {
		if d, ok := distroOf(like); ok {
			return distro{name, d.family}
		}
	}
	return distro{name, name}
}

// distroVersion is the most precise version available: os-release of Debian and CentOS omits
// the minor version.
func distroVersion(name string, release map[string]string, s sections) string {
	precise := ""
	switch name {
	case "Debian":
		precise = s.line("debian_version", 0)
	case "CentOS":
		for _, w := range strings.Fields(s.line("centos-release", 0)) {
			if number(w) > 0 {
				parts := strings.SplitN(w, ".", 3)
				precise = strings.Join(parts[:min(2, len(parts))], ".")
			}
		}
	}
	if number(precise) > 0 {
		return precise
	}
	if v := release["VERSION_ID"]; v != "" {
		return v
	}
	if v := before(release["VERSION"], " "); v != "" {
		return v
	}
	return "NA"
}

func codename(release map[string]string) string {
	for _, key := range []string{"VERSION_CODENAME", "UBUNTU_CODENAME"} {
		if release[key] != "" {
			return release[key]
		}
	}
	_, rest, ok := strings.Cut(release["VERSION"], "(")
	if name := before(rest, ")"); ok && name != "" {
		return name
	}
	return "NA"
}

func darwin(f *value.Dict, s sections) {
	version := s.line("darwin", 0)
	f.Set("distribution", "MacOSX")
	f.Set("os_family", "Darwin")
	f.Set("distribution_version", version)
	f.Set("distribution_major_version", before(version, "."))
	f.Set("distribution_release", s.line("uname", 2))
	f.Set("memtotal_mb", number(s.line("darwin", 1))>>20)
	f.Set("processor_vcpus", number(s.line("darwin", 2)))
}
