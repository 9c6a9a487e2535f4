// Package facts gathers the facts of a host: system, hardware, network, users, custom facts.
// It needs one round trip: one script prints raw data in sections, and the rest is computed
// here.
package facts

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/shell"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

//go:embed gather.sh
var script string

// DefaultFactPath is where a host keeps its custom facts.
const DefaultFactPath = "/etc/ansible/facts.d"

// DefaultTimeout bounds each slow command of the script.
const DefaultTimeout = 10 * time.Second

// Options say what to gather. The zero value gathers everything.
type Options struct {
	// Subset names parts: all, min, hardware, network, virtual, local, and !NAME to skip one;
	// naming a part overrides skipping it. min, and local with it, is always included unless
	// !min is given. Ansible's finer names select the part that contains them; with !min only
	// facts of that name are kept.
	Subset []string
	// Filter is shell patterns. Only facts whose name matches one, with or without the prefix
	// ansible_, are returned. None returns all.
	Filter   []string
	FactPath string        // folder of *.fact files on the host; DefaultFactPath when ""
	Timeout  time.Duration // of each slow command, in whole seconds; DefaultTimeout when 0
}

// Check validates the options before a host is connected to.
func (o Options) Check() error {
	if _, err := subsets(o.Subset); err != nil {
		return err
	}
	_, err := filtered(value.NewDict(), o.Filter)
	return err
}

// Gather returns the facts of a host by their plain names (without ansible_). Facts that the
// host does not provide are omitted. A host without a usable shell is an error.
func Gather(ctx context.Context, conn connector.Connector, o Options) (found *value.Dict, err error) {
	defer connector.Recover(&err) // also for those who are no task
	parts, err := subsets(o.Subset)
	if err != nil {
		return nil, err
	}
	if _, err := filtered(value.NewDict(), o.Filter); err != nil {
		return nil, err
	}
	sections, err := collect(ctx, conn, parts, o)
	if err != nil {
		return nil, err
	}
	found = build(sections, parts)
	if slices.Contains(o.Subset, "!min") && !slices.Contains(o.Subset, "min") && slices.Contains(parts, "min") {
		rest := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "min" })
		found = selectSubset(found, build(sections, rest), o.Subset)
	}
	return filtered(found, o.Filter)
}

// collect runs the script and splits its output into sections.
func collect(ctx context.Context, conn connector.Connector, parts []string, o Options) (sections, error) {
	mark := "kk-facts-" + rand.Text()
	limit := o.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	folder := o.FactPath
	if folder == "" {
		folder = DefaultFactPath
	}
	seconds := strconv.Itoa(max(1, int(limit.Seconds())))
	line := shell.Script(script, mark, " "+strings.Join(parts, " ")+" ", folder, seconds)
	out, err := connector.Collect(ctx, conn, connector.Command{Line: line, Probe: true}, connector.MaxAnswer)
	if err != nil {
		if large := (*connector.TooMuchError)(nil); errors.As(err, &large) {
			err = fmt.Errorf("gather facts: %w: does an executable in %s print too much?", err, folder)
		}
		return nil, err
	}
	found := cut(string(out.Stdout), mark)
	if _, whole := found["end"]; !whole {
		return nil, fmt.Errorf("gather facts: the host's shell exited with %d: %s", out.Code, strings.TrimSpace(out.Stderr))
	}
	return found, nil
}

// sections are the outputs of the script's parts by their names.
type sections map[string]string

func cut(out, mark string) sections {
	found := sections{}
	for _, part := range strings.Split("\n"+out, "\n"+mark+" ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		found[name] = text
	}
	return found
}

// lines returns the lines of a section without blank ones.
func (s sections) lines(name string) []string {
	var lines []string
	for _, l := range strings.Split(s[name], "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// line returns line n of a section, "" if there is none.
func (s sections) line(name string, n int) string {
	lines := s.lines(name)
	if n >= len(lines) {
		return ""
	}
	return lines[n]
}

// pairs returns the k=v lines of a section.
func (s sections) pairs(name string) map[string]string {
	pairs := map[string]string{}
	for _, l := range s.lines(name) {
		if k, v, ok := strings.Cut(l, "="); ok {
			pairs[k] = strings.TrimSpace(v)
		}
	}
	return pairs
}

var partNames = [...]string{"min", "hardware", "network", "virtual", "local"}

// partOf returns the part that contains a finer subset of Ansible; "" is accepted and gathers
// nothing.
func partOf(subset string) (string, bool) {
	switch subset {
	case "min", "hardware", "network", "virtual", "local":
		return subset, true
	case "facter", "ohai":
		return "", true
	case "interfaces", "default_ipv4", "default_ipv6", "all_ipv4_addresses", "all_ipv6_addresses":
		return "network", true
	case "devices", "mounts", "processor", "processor_cores", "processor_count", "memtotal_mb", "dmi", "memory",
		"uptime_seconds",
		"loadavg", "lvm", "processor_vcpus", "processor_nproc", "processor_threads_per_core", "swaptotal_mb":
		return "hardware", true
	case "virtualization_type", "virtualization_role", "virtualization_tech_guest", "virtualization_tech_host":
		return "virtual", true
	case "distribution", "platform", "date_time", "env", "cmdline", "dns", "fips", "lsb", "pkg_mgr", "service_mgr",
		"selinux",
		"apparmor", "ssh_pub_keys", "user", "caps", "python", "chroot", "is_chroot", "system", "kernel", "hostname",
		"architecture", "machine", "machine_id", "kernel_version", "os_family",
		"distribution_version", "distribution_release", "distribution_major_version",
		"domain", "fqdn", "glibc_version", "nodename", "python_version", "system_capabilities",
		"system_capabilities_enforced",
		"systemd", "iscsi", "fibre_channel_wwn", "nvme", "ssh_host_pub_keys", "ssh_host_key_rsa_public",
		"ssh_host_key_dsa_public", "ssh_host_key_ecdsa_public", "ssh_host_key_ed25519_public",
		"user_id", "user_uid", "user_gid", "user_dir", "user_shell", "user_gecos",
		"real_user_id", "effective_user_id", "real_group_id", "effective_group_ids":
		return "min", true
	}
	return "", false
}

// selectSubset drops the facts of min that were not requested by name.
func selectSubset(all, withoutMin *value.Dict, subset []string) *value.Dict {
	out := value.NewDict()
	for k, v := range all.All() {
		name := value.Str(k)
		asked := slices.ContainsFunc(subset, func(s string) bool { return strings.HasPrefix(name, factPrefix(s)) })
		if asked || withoutMin.Has(k) {
			out.Set(name, v)
		}
	}
	return out
}

// factPrefix is the prefix of the facts of a finer subset.
func factPrefix(subset string) string {
	switch subset {
	case "ssh_pub_keys", "ssh_host_pub_keys":
		return "ssh_host_key"
	case "user":
		return "user_"
	case "caps":
		return "system_capabilities"
	case "chroot":
		return "is_chroot"
	}
	return subset
}

// subsets returns the requested parts in a fixed order. A named part overrides its exclusion;
// if all names are exclusions, min remains.
func subsets(names []string) ([]string, error) {
	want, not := map[string]bool{}, map[string]bool{}
	if len(names) == 0 {
		want["all"] = true
	}
	for _, n := range names {
		name, minus := strings.CutPrefix(strings.TrimSpace(n), "!")
		set := want
		if minus {
			set = not
		}
		if name == "all" {
			set["all"] = true
			continue
		}
		part, known := partOf(name)
		if !known {
			return nil, unknownSubset(n, name)
		}
		set[part] = true
	}
	basic := slices.Contains(names, "min") || !not["min"]
	var parts []string
	for _, p := range partNames {
		always := basic && (p == "min" || p == "local") // custom facts belong to min
		if want[p] || (always || want["all"]) && !not[p] {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

func unknownSubset(written, name string) error {
	known := append([]string{"all"}, partNames[:]...)
	msg := fmt.Sprintf("Bad subset '%s' given: known are %s", written, strings.Join(known, ", "))
	if near := source.DidYouMean(name, known); near != "" {
		msg += " (" + near + ")"
	}
	return fmt.Errorf("%s", msg)
}

// filtered returns the facts whose names match a pattern.
func filtered(facts *value.Dict, patterns []string) (*value.Dict, error) {
	if len(patterns) == 0 || (len(patterns) == 1 && (patterns[0] == "*" || patterns[0] == "")) {
		return facts, nil
	}
	out := value.NewDict()
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("filter %q: %w", p, err)
		}
		for k, v := range facts.All() {
			name := value.Str(k)
			plain, _ := path.Match(p, name)
			prefixed, _ := path.Match(p, "ansible_"+name)
			if plain || prefixed {
				out.Set(name, v)
			}
		}
	}
	return out, nil
}

// build computes facts from the sections.
func build(s sections, parts []string) *value.Dict {
	f := value.NewDict()
	platform(f, s)
	dateTime(f, s)
	for _, p := range parts {
		switch p {
		case "min":
			distribution(f, s)
			system(f, s)
			user(f, s)
			security(f, s)
			storage(f, s)
		case "hardware":
			processor(f, s)
			memory(f, s)
			mounts(f, s)
			devices(f, s)
			firmware(f, s)
			f.Set("lvm", volumes(s))
		case "network":
			network(f, s)
		case "virtual":
			virtualization(f, s)
		case "local":
			f.Set("local", custom(s))
		}
	}
	names := make([]any, len(parts))
	for i, p := range parts {
		names[i] = p
	}
	f.Set("gather_subset", names)
	f.Set("module_setup", true)
	return f
}

// number is the integer at the start of text, 0 if there is none.
func number(text string) int {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(text[:end])
	if err != nil {
		return 0
	}
	return n
}

// put sets a fact unless its text is empty.
func put(f *value.Dict, name, text string) {
	if text != "" {
		f.Set(name, text)
	}
}
