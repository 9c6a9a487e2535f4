package general

import (
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// sshFile is a configuration file of ssh that is edited line by line: see
// ssh_config(5). Lines that nobody asked about stay as they are.
type sshFile struct {
	lines                   []string
	added, changed, removed bool
	old, new                []sshOption // of the entry that changed
}

// manyTimes are the options of which an entry may have several.
var manyTimes = []string{"identityfile", "certificatefile", "localforward", "remoteforward", "dynamicforward",
	"sendenv", "setenv"}

// parseSSHLine reads "name value" or "name=value"; the name is "" if the line is a comment or empty.
func parseSSHLine(line string) sshOption {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return sshOption{}
	}
	end := strings.IndexAny(line, " \t=")
	if end < 0 {
		return sshOption{name: strings.ToLower(line)}
	}
	rest := strings.TrimLeft(line[end:], " \t")
	rest = strings.TrimLeft(strings.TrimPrefix(rest, "="), " \t")
	return sshOption{strings.ToLower(line[:end]), rest}
}

// find is where the first entry of a host begins and ends; the last line that
// is no comment ends it. start is -1 if there is none.
func (f *sshFile) find(host string) (start, end int) {
	start = -1
	want := strings.Fields(host)
	for i, line := range f.lines {
		o := parseSSHLine(line)
		switch {
		case o.name == "host" || o.name == "match":
			if start >= 0 {
				return start, end
			}
			if o.name == "host" && slices.Equal(strings.Fields(o.value), want) {
				start, end = i, i+1
			}
		case o.name != "" && start >= 0:
			end = i + 1
		}
	}
	return start, end
}

// entry is the options of an entry.
func (f *sshFile) entry(start, end int) []sshOption {
	var out []sshOption
	for _, line := range f.lines[start+1 : end] {
		if o := parseSSHLine(line); o.name != "" {
			out = append(out, o)
		}
	}
	return out
}

// remove takes all entries of the host away.
func (f *sshFile) remove(host string) {
	for {
		start, end := f.find(host)
		if start < 0 {
			return
		}
		f.removed = true
		f.lines = slices.Delete(f.lines, start, end)
	}
}

// keep makes the entry of the host have the options, and adds one if there is
// none. Of several it is the first, whose values are the ones that ssh takes.
func (f *sshFile) keep(host string, want []sshOption) {
	start, end := f.find(host)
	if start < 0 {
		f.add(host, want)
		return
	}
	before := f.entry(start, end)
	for _, o := range want {
		end = f.set(start, end, o)
	}
	if after := f.entry(start, end); !slices.Equal(before, after) {
		f.changed, f.old, f.new = true, before, after
	}
}

// add appends an entry. One without options would say nothing.
func (f *sshFile) add(host string, want []sshOption) {
	if len(want) == 0 {
		return
	}
	f.added = true
	f.lines = append(f.lines, "Host "+host)
	for _, o := range want {
		f.lines = append(f.lines, "    "+o.name+" "+o.value)
	}
}

// set gives an entry an option, and returns where the entry ends then. The
// first line of its name is changed, further ones had no meaning, or another
// value of an option that there may be several of.
func (f *sshFile) set(start, end int, want sshOption) int {
	var have []int
	for i := start + 1; i < end; i++ {
		o := parseSSHLine(f.lines[i])
		if o.name != want.name {
			continue
		}
		if o.value == want.value && (len(have) == 0 || slices.Contains(manyTimes, o.name)) {
			return end
		}
		have = append(have, i)
	}
	if len(have) == 0 {
		f.lines = slices.Insert(f.lines, end, f.indent(start, end)+want.name+" "+want.value)
		return end + 1
	}
	f.lines[have[0]] = f.indent(start, end) + want.name + " " + want.value
	for _, i := range slices.Backward(have[1:]) {
		f.lines = slices.Delete(f.lines, i, i+1)
		end--
	}
	return end
}

// indent is how far the options of an entry stand from the left.
func (f *sshFile) indent(start, end int) string {
	for _, line := range f.lines[start+1 : end] {
		if bare := strings.TrimLeft(line, " \t"); bare != "" {
			return line[:len(line)-len(bare)]
		}
	}
	return "    "
}

func (f *sshFile) result(host string) module.Result {
	named := func(on bool) []any {
		if on {
			return []any{host}
		}
		return []any{}
	}
	diff := []any{}
	if f.changed {
		diff = append(diff, value.NewDict(host, value.NewDict("old", optionsDict(f.old), "new", optionsDict(f.new))))
	}
	return module.Result{Changed: f.added || f.changed || f.removed, Data: value.NewDict(
		"hosts_added", named(f.added), "hosts_changed", named(f.changed), "hosts_removed", named(f.removed),
		"hosts_change_diff", diff,
	)}
}

// optionsDict is options by name; those that there may be several of are lists.
func optionsDict(options []sshOption) *value.Dict {
	d := value.NewDict()
	for _, o := range options {
		have, there := d.Get(o.name)
		switch {
		case slices.Contains(manyTimes, o.name):
			list, _ := have.([]any)
			d.Set(o.name, append(list, o.value))
		case !there: // of further ones ssh takes no notice
			d.Set(o.name, o.value)
		}
	}
	return d
}
