package facts_test

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/connector/local"
	"kubekey/pkg/facts"
	"kubekey/pkg/value"
)

// differences are the facts of Ansible that kk lacks or that have another type, with the
// reason. Patterns are those of package path.
func differences() map[string]string {
	return map[string]string{
		"discovered_interpreter_python": "kk needs no Python on hosts",
		"selinux_python_present":        "about a Python library that kk does not use",
		"devices/loop*":                 "only real disks are listed",
		"devices/ram*":                  "only real disks are listed",
		"devices/zram*":                 "only real disks are listed",
		"devices/sr*":                   "only real disks are listed",
		"devices/*/host":                "needs lspci",
		"devices/*/virtual":             "empty on most machines",
		"devices/*/sas_*":               "addresses of SAS disks are not gathered",
		"env/*":                         "the environments of the two programs",
		"*/speed":                       "of virtual interfaces that appear meanwhile",
		"*/features":                    "needs ethtool",
		"*/hw_timestamp_filters":        "needs ethtool",
		"*/timestamping":                "needs ethtool",
		"*/phc_index":                   "needs ethtool",
		"virtualization_tech_*/*":       "only the technology in use is listed",
	}
}

// TestSameNamesAsAnsible compares the facts of this machine with those that Ansible gathers:
// each of Ansible's facts must exist with the same type.
func TestSameNamesAsAnsible(t *testing.T) {
	if _, err := exec.LookPath("ansible"); err != nil {
		t.Skip("ansible is not installed (ansible-core): nothing to compare with")
	}
	none := filepath.Join(t.TempDir(), "none.cfg")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.Command("ansible", "localhost", "-i", "localhost,", "-c", "local", "-m", "setup")
	cmd.Env = append(cmd.Environ(), "ANSIBLE_LOAD_CALLBACK_PLUGINS=0", "ANSIBLE_NOCOLOR=1",
		"ANSIBLE_STDOUT_CALLBACK=minimal", "ANSIBLE_CONFIG="+none)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ansible: %v: %s", err, errs.String())
	}
	_, text, _ := bytes.Cut(out, []byte("=> "))
	v, err := value.FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	result, _ := v.(*value.Dict).Get("ansible_facts")
	theirs := value.NewDict()
	for k, v := range result.(*value.Dict).All() {
		if name, ok := strings.CutPrefix(k.(string), "ansible_"); ok {
			theirs.Set(name, v)
		}
	}
	ours := gather(t, local.New(), facts.Options{})
	unseen := map[string]bool{}
	for _, name := range namesOf(ours, "interfaces") {
		unseen[name] = true // ignore those that appeared meanwhile
	}
	for k, their := range theirs.All() {
		name := k.(string)
		if d, ok := their.(*value.Dict); ok && d.Has("device") && !unseen[name] {
			continue
		}
		our, ok := ours.Get(name)
		compare(t, name, their, our, ok)
	}
	for _, name := range []string{"hostname", "nodename", "machine", "distribution", "distribution_version",
		"distribution_major_version", "distribution_release", "distribution_file_path", "distribution_minor_version",
		"os_family", "kernel", "kernel_version", "processor_vcpus", "processor_cores", "processor_count", "memtotal_mb",
		"swaptotal_mb", "pkg_mgr", "user_id", "user_dir", "user_shell", "system_capabilities_enforced",
		"cmdline", "proc_cmdline", "lsb", "dns", "fips", "form_factor", "lvm"} {
		their, _ := theirs.Get(name)
		our, _ := ours.Get(name)
		if !value.Equal(their, our) {
			t.Errorf("%s is %s, Ansible has %s", name, value.Repr(our), value.Repr(their))
		}
	}
	theirTime, _ := theirs.Get("date_time")
	ourTime, _ := ours.Get("date_time")
	if a, b := theirTime.(*value.Dict), ourTime.(*value.Dict); a.String("date") == b.String("date") &&
		a.String("weeknumber") != b.String("weeknumber") {
		t.Errorf("the week is %s, Ansible has %s", b.String("weeknumber"), a.String("weeknumber"))
	}
}

func namesOf(d *value.Dict, key string) (out []string) {
	v, _ := d.Get(key)
	list, _ := v.([]any)
	for _, e := range list {
		out = append(out, value.Str(e))
	}
	return out
}

// compare reports missing values and other types, down to the keys of dictionaries and the
// first element of lists.
func compare(t *testing.T, at string, their, our any, there bool) {
	for pattern := range differences() {
		if ok, _ := path.Match(pattern, at); ok {
			return
		}
	}
	a, b := value.TypeName(their), value.TypeName(our)
	numbers := []string{"int", "float"}
	switch {
	case !there:
		t.Errorf("%s is missing: Ansible has %s", at, value.Repr(their))
		return
	case a != b && !(slices.Contains(numbers, a) && slices.Contains(numbers, b)) && their != nil:
		t.Errorf("%s is a %s, Ansible has a %s", at, b, a)
		return
	}
	switch their := their.(type) {
	case *value.Dict:
		for k, v := range their.All() {
			member, ok := our.(*value.Dict).Get(k)
			compare(t, at+"/"+value.Str(k), v, member, ok)
		}
	case []any:
		if list := our.([]any); len(their) > 0 && len(list) > 0 {
			compare(t, at+"/0", their[0], list[0], true)
		}
	}
}
