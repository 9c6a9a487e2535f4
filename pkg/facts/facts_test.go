package facts_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/facts"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// under runs every line with another shell, and counts the lines.
type under struct {
	connector.Connector
	argv []string
	runs int
}

func (u *under) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	u.runs++
	c.Line = strings.Replace(c.Line, "/bin/sh", shell.Join(u.argv...), 1)
	return u.Connector.Run(ctx, c)
}

func gather(t *testing.T, c connector.Connector, o facts.Options) *value.Dict {
	t.Helper()
	f, err := facts.Gather(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGatherHere(t *testing.T) {
	for _, argv := range [][]string{{"dash"}, {"busybox", "sh"}, {"bash"}} {
		t.Run(argv[0], func(t *testing.T) {
			u := &under{Connector: connector.ReadOnly(local.New()), argv: argv}
			f := gather(t, u, facts.Options{})
			if u.runs != 1 {
				t.Errorf("took %d round trips", u.runs)
			}
			for _, name := range []string{"hostname", "nodename", "fqdn", "distribution", "os_family", "distribution_version",
				"kernel",
				"architecture", "processor_vcpus", "memtotal_mb", "interfaces", "mounts", "service_mgr", "pkg_mgr", "user_id",
				"env",
				"date_time", "uptime_seconds", "virtualization_type", "selinux", "apparmor", "cmdline", "dns", "devices"} {
				if v, _ := f.Get(name); !value.Truth(v) {
					t.Errorf("%s is %s", name, value.Repr(v))
				}
			}
			host, err := os.Hostname()
			if err != nil {
				t.Fatal(err)
			}
			if f.String("nodename") != host {
				t.Errorf("nodename is %q, want %q", f.String("nodename"), host)
			}
			uid, _ := f.Get("user_uid")
			if uid != os.Getuid() {
				t.Errorf("user_uid is %v", uid)
			}
		})
	}
}

func TestSubsets(t *testing.T) {
	cases := []struct {
		subset []string
		want   []any
	}{
		{nil, []any{"min", "hardware", "network", "virtual", "local"}},
		{[]string{"all"}, []any{"min", "hardware", "network", "virtual", "local"}},
		{[]string{"!all"}, []any{"min", "local"}},
		{[]string{"!all", "!min"}, nil},
		{[]string{"!hardware"}, []any{"min", "local"}},
		{[]string{"all", "!hardware"}, []any{"min", "network", "virtual", "local"}},
		{[]string{"!local"}, []any{"min"}},
		{[]string{"network"}, []any{"min", "network", "local"}},
		{[]string{"!all", "network", "facter"}, []any{"min", "network", "local"}},
		{[]string{"default_ipv4"}, []any{"min", "network", "local"}},
		{[]string{"mounts"}, []any{"min", "hardware", "local"}},
		{[]string{"virtualization_type", "!min"}, []any{"virtual"}},
		{[]string{"distribution"}, []any{"min", "local"}},
		{[]string{"!all", "!min", "distribution"}, []any{"min"}},
	}
	for _, c := range cases {
		f := gather(t, local.New(), facts.Options{Subset: c.subset})
		got, _ := f.Get("gather_subset")
		if want := append([]any{}, c.want...); !value.Equal(got, want) {
			t.Errorf("%v: got %s, want %s", c.subset, value.Repr(got), value.Repr(want))
		}
		if min := c.want != nil && c.want[0] == "min"; f.Has("distribution") != min {
			t.Errorf("%v: distribution exists: %v", c.subset, !min)
		}
	}
	_, err := facts.Gather(context.Background(), local.New(), facts.Options{Subset: []string{"!netwrok"}})
	if err == nil || !strings.Contains(err.Error(), `did you mean "network"?`) {
		t.Errorf("got %v", err)
	}
}

// With !min a finer subset returns its own facts, not the rest of min.
func TestFinerSubsets(t *testing.T) {
	for name, c := range map[string]struct{ there, not string }{
		"distribution": {"distribution_version", "user_id"},
		"user":         {"user_uid", "env"},
		"env":          {"env", "distribution"},
		"interfaces":   {"default_ipv4", "env"},
	} {
		f := gather(t, local.New(), facts.Options{Subset: []string{"!all", "!min", name}})
		if !f.Has(c.there) || f.Has(c.not) {
			t.Errorf("%s: %s exists: %v, %s exists: %v", name, c.there, f.Has(c.there), c.not, f.Has(c.not))
		}
	}
}

func TestFilter(t *testing.T) {
	f := gather(t, local.New(), facts.Options{Filter: []string{"ansible_mem*_mb", "hostname"}})
	var got []string
	for k := range f.All() {
		got = append(got, value.Str(k))
	}
	if diff := cmp.Diff([]string{"memtotal_mb", "memfree_mb", "memory_mb", "hostname"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := facts.Gather(context.Background(), local.New(), facts.Options{Filter: []string{"["}}); err == nil {
		t.Error("a bad pattern is accepted")
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestCustomFacts(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"json.fact": `{"a": [1, {"b": true}]}`,
		"ini.fact":  "# c\n[DEFAULT]\na = 1\n[General]\nName = x y\nport: 80\n  81\n\n",
		"bad.fact":  "neither\n",
		"many.fact": "[DEFAULT]\n" + numbered("o%d=1\n", 1000) + numbered("[s%d]\n", 1000), // a million options
		"run.fact":  "#!/bin/sh\necho '{\"made\": 1}'\n",
		"fail.fact": "#!/bin/sh\nexit 3\n",
	}
	for name, text := range files {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	f := gather(t, local.New(), facts.Options{Subset: []string{"!all", "!min", "local"}, FactPath: dir})
	got, _ := f.Get("local")
	want := value.NewDict(
		"bad", "error loading facts as JSON or ini - please check content: bad.fact",
		"fail", "Failure executing fact script (fail.fact), rc: 3",
		"ini", value.NewDict("General", value.NewDict("a", "1", "name", "x y", "port", "80\n81")),
		"json", value.NewDict("a", []any{1, value.NewDict("b", true)}),
		"many", "error loading facts as JSON or ini - please check content: many.fact",
		"run", value.NewDict("made", 1))
	if !value.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", value.Repr(got), value.Repr(want))
	}
}

func TestNoShell(t *testing.T) {
	broken := &under{Connector: local.New(), argv: []string{"/no/shell"}}
	_, err := facts.Gather(context.Background(), broken, facts.Options{})
	if err == nil || !strings.Contains(err.Error(), "gather facts: the host's shell exited with 127") {
		t.Errorf("got %v", err)
	}
}

// Under sudo the environment contains the command, which has several lines.
func TestEnvironmentOfSeveralLines(t *testing.T) {
	const command = "/bin/sh -c PATH=/nowhere\nLC_ALL=C; export LC_ALL\nPATH=$PATH:/x\n"
	t.Setenv("SUDO_COMMAND", command)
	env, _ := gather(t, connector.ReadOnly(local.New()), facts.Options{Subset: []string{"min"}}).Get("env")
	if got := env.(*value.Dict).String("SUDO_COMMAND"); got != command {
		t.Errorf("SUDO_COMMAND is %q", got)
	}
	if got := env.(*value.Dict).String("PATH"); got != os.Getenv("PATH") {
		t.Errorf("PATH is %q, want %q", got, os.Getenv("PATH"))
	}
}
