package facts

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/value"
)

func platform(f *value.Dict, s sections) {
	node, machine := s.line("uname", 1), s.line("uname", 3)
	f.Set("system", s.line("uname", 0))
	f.Set("kernel", s.line("uname", 2))
	f.Set("kernel_version", s.line("uname", 4))
	f.Set("machine", machine)
	f.Set("architecture", machine)
	f.Set("userspace_architecture", machine)
	bits := "32"
	if strings.Contains(machine, "64") || machine == "s390x" {
		bits = "64"
	}
	f.Set("userspace_bits", bits)
	f.Set("nodename", node)
	f.Set("hostname", before(node, "."))
	fqdn := s.line("fqdn", 0)
	if fqdn == "" || fqdn == "localhost" || strings.Contains(fqdn, " ") {
		fqdn = node
	}
	f.Set("fqdn", fqdn)
	_, domain, _ := strings.Cut(fqdn, ".")
	f.Set("domain", domain)
}

func before(s, sep string) string {
	head, _, _ := strings.Cut(s, sep)
	return head
}

func dateTime(f *value.Dict, s sections) {
	epoch, err := strconv.ParseInt(s.line("date", 0), 10, 64)
	if err != nil {
		return
	}
	offset, zone := s.line("date", 1), s.line("date", 2)
	at := time.Unix(epoch, 0).In(time.FixedZone(zone, seconds(offset)))
	utc := at.UTC()
	// as %W of strftime: weeks begin on Monday, the first may be short
	week := (at.YearDay() + 6 - (int(at.Weekday())+6)%7) / 7
	text := strconv.FormatInt(epoch, 10)
	f.Set("date_time", value.NewDict(
		"year", at.Format("2006"), "month", at.Format("01"), "day", at.Format("02"),
		"hour", at.Format("15"), "minute", at.Format("04"), "second", at.Format("05"),
		"weekday", at.Weekday().String(), "weekday_number", strconv.Itoa(int(at.Weekday())), "weeknumber",
		fmt.Sprintf("%02d", week),
		"epoch", text, "epoch_int", text, "date", at.Format("2006-01-02"), "time", at.Format("15:04:05"),
		"iso8601", utc.Format("2006-01-02T15:04:05Z"), "iso8601_micro", utc.Format("2006-01-02T15:04:05.000000Z"),
		"iso8601_basic", at.Format("20060102T150405")+"000000", "iso8601_basic_short", at.Format("20060102T150405"),
		"tz", zone, "tz_dst", zone, "tz_offset", offset,
	))
}

// seconds parses an offset such as +0130.
func seconds(offset string) int {
	if len(offset) != 5 {
		return 0
	}
	n := number(offset[1:3])*3600 + number(offset[3:])*60
	if offset[0] == '-' {
		return -n
	}
	return n
}

func system(f *value.Dict, s sections) {
	f.Set("service_mgr", serviceManager(s.pairs("init")))
	f.Set("pkg_mgr", packageManager(s.lines("pkg")))
	f.Set("cmdline", commandLine(s.line("cmdline", 0), false))
	f.Set("proc_cmdline", commandLine(s.line("cmdline", 0), true))
	f.Set("dns", resolver(s.lines("resolv")))
	f.Set("lsb", lsb(s))
	f.Set("env", environment(s["env"]))
	for _, l := range s.lines("hostkeys") {
		if words := strings.Fields(l); len(words) >= 3 {
			kind := strings.TrimSuffix(strings.TrimPrefix(path.Base(words[0]), "ssh_host_"), "_key.pub")
			f.Set("ssh_host_key_"+kind+"_public", words[2])
			f.Set("ssh_host_key_"+kind+"_public_keytype", words[1])
		}
	}
	python(f, s)
	capabilities(f, s)
	// Not a fact of Ansible's. Other C libraries have no version that programs need.
	if words := strings.Fields(s.line("glibc", 0)); len(words) == 2 && words[0] == "glibc" {
		f.Set("glibc_version", words[1])
	}
}

func serviceManager(init map[string]string) string {
	switch {
	case init["systemd"] != "":
		return "systemd"
	case init["openrc"] != "":
		return "openrc"
	}
	switch comm := init["comm"]; comm {
	case "init", "procd", "runit-init", "s6-svscan", "launchd":
		return map[string]string{"init": "sysvinit", "procd": "openwrt_init", "runit-init": "runit", "s6-svscan": "s6",
			"launchd": "launchd"}[comm]
	}
	return "service"
}

func packageManager(found []string) string {
	if len(found) == 0 {
		return "unknown"
	}
	if found[0] == "apt-get" {
		return "apt"
	}
	return found[0]
}

// commandLine returns the kernel's parameters. Of a parameter that is given twice the last one
// is used, or, with all, a list of all.
func commandLine(line string, all bool) *value.Dict {
	d := value.NewDict()
	for _, word := range strings.Fields(line) {
		k, v, ok := strings.Cut(word, "=")
		old, again := d.Get(k)
		list, _ := old.([]any)
		switch {
		case !ok:
			d.Set(word, true)
		case !all || !again:
			d.Set(k, v)
		case list != nil:
			d.Set(k, append(list, v))
		default:
			d.Set(k, []any{old, v})
		}
	}
	return d
}

func resolver(lines []string) *value.Dict {
	d := value.NewDict()
	for _, l := range lines {
		words := strings.Fields(l)
		if len(words) < 2 || strings.ContainsAny(words[0][:1], "#;") {
			continue
		}
		switch words[0] {
		case "nameserver":
			old, _ := d.Get("nameservers")
			list, _ := old.([]any)
			d.Set("nameservers", append(list, words[1]))
		case "domain":
			d.Set("domain", words[1])
		case "search", "sortlist":
			d.Set(words[0], strs(words[1:]))
		case "options":
			options := value.NewDict()
			for _, o := range words[1:] {
				if k, v, ok := strings.Cut(o, ":"); ok {
					options.Set(k, v)
				} else {
					options.Set(o, true)
				}
			}
			d.Set("options", options)
		}
	}
	return d
}

// lsb is the output of lsb_release, or /etc/lsb-release.
func lsb(s sections) *value.Dict {
	said := s.pairs("lsb-release")
	for _, l := range s.lines("lsb") {
		if k, v, ok := strings.Cut(l, ":"); ok {
			said[k] = strings.TrimSpace(v)
		}
	}
	d := value.NewDict()
	for _, key := range [...][3]string{
		{"id", "Distributor ID", "DISTRIB_ID"}, {"release", "Release", "DISTRIB_RELEASE"},
		{"codename", "Codename", "DISTRIB_CODENAME"}, {"description", "Description", "DISTRIB_DESCRIPTION"},
	} {
		put(d, key[0], strings.Trim(cmp.Or(said[key[1]], said[key[2]]), `"`))
	}
	put(d, "major_release", before(d.String("release"), "."))
	return d
}

func strs(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

func user(f *value.Dict, s sections) {
	uid, gid := number(s.line("user", 0)), number(s.line("user", 1))
	f.Set("user_id", s.line("user", 2))
	f.Set("user_uid", uid)
	f.Set("user_gid", gid)
	f.Set("real_user_id", uid)
	f.Set("effective_user_id", uid)
	f.Set("real_group_id", gid)
	f.Set("effective_group_id", gid)
	if entry := strings.Split(s.line("passwd", 0), ":"); len(entry) == 7 {
		f.Set("user_gecos", entry[4])
		f.Set("user_dir", entry[5])
		f.Set("user_shell", entry[6])
	}
}

func security(f *value.Dict, s sections) {
	pairs := s.pairs("security")
	f.Set("fips", pairs["fips"] == "1")
	apparmor := "disabled"
	if pairs["apparmor"] == "Y" {
		apparmor = "enabled"
	}
	f.Set("apparmor", value.NewDict("status", apparmor))
	f.Set("is_chroot", pairs["chroot"] == "1")
	put(f, "machine_id", pairs["machine_id"])
	f.Set("selinux", selinux(s.pairs("selinux")))
}

func selinux(pairs map[string]string) *value.Dict {
	if pairs["present"] == "" {
		return value.NewDict("status", "disabled")
	}
	mode := "permissive"
	if pairs["enforce"] == "1" {
		mode = "enforcing"
	}
	d := value.NewDict("status", "enabled", "mode", mode)
	put(d, "policyvers", pairs["policyvers"])
	put(d, "config_mode", pairs["SELINUX"])
	put(d, "type", pairs["SELINUXTYPE"])
	return d
}

// environment reads the output of env: with NULs between the variables if the host's env
// supports -0. Otherwise a line with "=" in it starts the next variable, which is wrong for
// values with several lines, such as sudo's SUDO_COMMAND.
func environment(text string) *value.Dict {
	between := "\n"
	if strings.Contains(text, "\x00") {
		between = "\x00"
	}
	env := value.NewDict()
	name, lines := "", []string(nil)
	end := func() {
		if name != "" {
			env.Set(name, strings.Join(lines, "\n"))
		}
	}
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n\x00"), between) {
		if k, v, ok := strings.Cut(l, "="); ok {
			end()
			name, lines = k, lines[:0]
			l = v
		}
		lines = append(lines, l)
	}
	end()
	return env
}
