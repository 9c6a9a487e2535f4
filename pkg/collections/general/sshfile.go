package general

import (
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// sshFile is an ssh configuration file that is edited line by line: see ssh_config(5). Other lines are not
// modified.
type sshFile struct {
	lines                   []string
	added, changed, removed bool
	old, new                []sshOption // options of the changed entry
}

// manyTimes are the options that an entry can contain more than once.
var manyTimes = []string{"identityfile", "certificatefile", "localforward", "remoteforward", "dynamicforward",
	"sendenv", "setenv"}

// parseSSHLine parses "name value" or "name=value". The name is "" for comments and empty lines.
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

// find returns the range of the first entry for a host. An entry ends after its last line that is not a comment.
// start is -1 if there is none.
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

// entry returns the options of an entry.
func (f *sshFile) entry(start, end int) []sshOption {
	var out []sshOption
	for _, line := range f.lines[start+1 : end] {
		if o := parseSSHLine(line); o.name != "" {
			out = append(out, o)
		}
	}
	return out
}

// remove removes all entries for the host.
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

// keep sets the options in the entry for the host, and adds an entry if there is none. If there are several, the
// first is changed, because ssh uses its values.
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

// add appends an entry. An entry without options has no effect and is not added.
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

// set sets an option of an entry, and returns the new end of the entry. It changes the first line with the option's
// name and removes further ones: either they have no effect, or they are other values of an option that can be used
// several times.
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

// indent returns the indentation of the options in an entry.
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

// optionsDict returns options by name. Options that can be used several times are lists.
func optionsDict(options []sshOption) *value.Dict {
	d := value.NewDict()
	for _, o := range options {
		have, there := d.Get(o.name)
		switch {
		case slices.Contains(manyTimes, o.name):
			list, _ := have.([]any)
			d.Set(o.name, append(list, o.value))
		case !there: // ssh ignores further ones
			d.Set(o.name, o.value)
		}
	}
	return d
}
