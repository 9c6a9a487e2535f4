package settings_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/settings"
	"kubekey/pkg/source"
)

// place is a machine with these files: HOME/ and ETC/ begin the names of
// those that are not in the working folder.
func place(t *testing.T, environ []string, files map[string]string) settings.Places {
	t.Helper()
	root := t.TempDir()
	p := settings.Places{Environ: environ, Dir: filepath.Join(root, "here"), Home: filepath.Join(root, "HOME"),
		Etc: filepath.Join(root, "ETC")}
	for name, text := range files {
		dir := p.Dir
		if strings.HasPrefix(name, "HOME/") || strings.HasPrefix(name, "ETC/") {
			dir = root
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func load(t *testing.T, p settings.Places) *settings.Loaded {
	t.Helper()
	l, ds := settings.Load(p)
	for _, d := range ds {
		t.Error(d)
	}
	return l
}

func TestPrecedence(t *testing.T) {
	files := map[string]string{
		"kk.yaml":     "forks: 3\ntimeout: 4\n",
		"ansible.cfg": "[defaults]\nforks = 2\ntimeout: 5\nremote_user = cfg\n",
	}
	for _, c := range []struct {
		environ       []string
		forks         int
		forksOrigin   string
		timeout       int
		timeoutOrigin string
	}{
		{nil, 3, "kk.yaml:1:8", 4, "kk.yaml:2:10"},
		{[]string{"ANSIBLE_FORKS=6"}, 6, "environment variable ANSIBLE_FORKS", 4, "kk.yaml:2:10"},
		{[]string{"ANSIBLE_FORKS=6", "KK_FORKS=7"}, 7, "environment variable KK_FORKS", 4, "kk.yaml:2:10"},
		{[]string{"ANSIBLE_FORKS=", "KK_CONFIG=/dev/null"}, 2, "ansible.cfg:2:9", 5, "ansible.cfg:3:10"},
		{[]string{"KK_CONFIG=/dev/null", "ANSIBLE_CONFIG=/dev/null"}, 50, "default", 10, "default"},
	} {
		l := load(t, place(t, c.environ, files))
		forks, timeout := l.Get("forks"), l.Get("timeout")
		if l.Forks != c.forks || forks.Value != c.forks || forks.Origin != c.forksOrigin {
			t.Errorf("%v: forks %d (%v) of %s", c.environ, l.Forks, forks.Value, forks.Origin)
		}
		if l.Timeout != c.timeout || timeout.Origin != c.timeoutOrigin {
			t.Errorf("%v: timeout %d of %s", c.environ, l.Timeout, timeout.Origin)
		}
	}
}

func TestWhereFilesAreFound(t *testing.T) {
	files := map[string]string{
		"kk.yaml": "forks: 1", "HOME/.config/kk/kk.yaml": "forks: 2", "ETC/kk/kk.yaml": "forks: 3", "other.yaml": "forks: 4",
		"ansible.cfg": "[defaults]\ntimeout=1", "HOME/.ansible.cfg": "[defaults]\ntimeout=2",
		"ETC/ansible/ansible.cfg": "[defaults]\ntimeout=3", "sub/other.cfg": "[defaults]\ntimeout=4",
	}
	for _, want := range []struct{ forks, timeout int }{{1, 1}, {2, 2}, {3, 3}, {50, 10}} {
		l := load(t, place(t, nil, files))
		if l.Forks != want.forks || l.Timeout != want.timeout {
			t.Errorf("got %d, %d, want %v", l.Forks, l.Timeout, want)
		}
		named := load(t, place(t, []string{"KK_CONFIG=other.yaml", "ANSIBLE_CONFIG=sub/other.cfg"}, files))
		if named.Forks != 4 || named.Timeout != 4 {
			t.Errorf("named: got %d, %d", named.Forks, named.Timeout)
		}
		folder := load(t, place(t, []string{"ANSIBLE_CONFIG=../ETC/ansible"},
			map[string]string{"ETC/ansible/ansible.cfg": files["sub/other.cfg"], "x": ""}))
		if folder.Timeout != 4 {
			t.Errorf("folder: got %d", folder.Timeout)
		}
		for _, order := range [][]string{{"kk.yaml", "HOME/.config/kk/kk.yaml", "ETC/kk/kk.yaml"},
			{"ansible.cfg", "HOME/.ansible.cfg", "ETC/ansible/ansible.cfg"}} {
			for _, name := range order {
				if _, there := files[name]; there {
					delete(files, name)
					break
				}
			}
		}
	}
}

func TestPaths(t *testing.T) {
	p := place(t, []string{"ANSIBLE_ROLES_PATH=r:~/s:$X/t", "X=/x", "KK_LOG_PATH=log"}, map[string]string{
		"sub/ansible.cfg": "[defaults]\ninventory = hosts, /abs\nprivate_key_file = key",
	})
	p.Environ = append(p.Environ, "ANSIBLE_CONFIG=sub/ansible.cfg")
	l := load(t, p)
	sub := filepath.Join(p.Dir, "sub")
	for _, c := range []struct{ got, want any }{
		{l.RolesPath, []string{"r", p.Home + "/s", "/x/t"}},
		{l.Inventory, []string{sub + "/hosts", "/abs"}},
		{l.PrivateKeyFile, sub + "/key"},
		{l.LogPath, "log"},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	plain := load(t, place(t, nil, nil))
	if !strings.HasSuffix(plain.RolesPath[0], "/HOME/.ansible/roles") || len(plain.RolesPath) != 3 {
		t.Errorf("default roles path is %v", plain.RolesPath)
	}
	hosts := load(t, place(t, nil, map[string]string{"kk.yaml": "inventory: 'a,b,'"}))
	if !slices.Equal(hosts.Inventory, []string{"a,b,"}) {
		t.Errorf("hosts are %v", hosts.Inventory)
	}
}

func TestWordsOfAnsible(t *testing.T) {
	for _, c := range []struct {
		cfg  string
		name string
		want any
	}{
		{"[defaults]\nhost_key_checking = False", "ssh_host_key", "insecure"},
		{"[defaults]\nhost_key_checking = yes", "ssh_host_key", "strict"},
		{"[defaults]\nstdout_callback = ansible.posix.json", "output", "ansible-json"},
		{"[defaults]\nstdout_callback = yaml", "output", "text"},
		{"[defaults]\ntransport = paramiko", "connection", "ssh"},
		{"[defaults]\nfact_caching = jsonfile", "fact_caching", "jsonfile"},
		{"[privilege_escalation]\nbecome = 1", "become", true},
		{"[ssh_connection]\nssh_args = -o A=b ; why\n  -J c", "ssh_args", "-o A=b\n-J c"},
		{"[diff]\nalways: on", "diff", true},
	} {
		l := load(t, place(t, nil, map[string]string{"ansible.cfg": c.cfg}))
		if got := l.Get(c.name).Value; got != c.want {
			t.Errorf("%q: %s is %v, want %v", c.cfg, c.name, got, c.want)
		}
	}
}

func TestQuiet(t *testing.T) {
	load(t, place(t, []string{"ANSIBLE_NOCOWS=1", "ANSIBLE_PIPELINING=1", "ANSIBLE_RETRY_FILES_ENABLED=no",
		"ANSIBLE_GALAXY_SERVER=x", "KK_RENDER_ALL=1", "OTHER=1"}, map[string]string{
		"ansible.cfg": "[defaults]\nnocows = 1\ninterpreter_python=auto\nerror_on_undefined_vars = true\n[colors]\nok = green\n[ssh_connection]\npipelining = True\ncontrol_path = %%h\n[callback_x]\na=b\n",
	}))
}

// TestProblems compares what is said of files and variables; W begins warnings.
func TestProblems(t *testing.T) {
	for _, c := range []struct {
		name    string
		environ []string
		files   map[string]string
		want    []string
	}{
		{"typo", nil, map[string]string{"kk.yaml": "forks: 2\nfrks: 3\n"},
			[]string{`kk.yaml:2:1: unknown setting "frks" (did you mean "forks"?)`}},
		{"nothing near", nil, map[string]string{"kk.yaml": "zzzzzz: 3\n"},
			[]string{`kk.yaml:1:1: unknown setting "zzzzzz" (kk config list prints all settings)`}},
		{"bad values", nil, map[string]string{"kk.yaml": "forks: many\nbecome: perhaps\ngathering: smrt\n"}, []string{
			`kk.yaml:1:8: value of forks must be an int, got "many"`,
			`kk.yaml:2:9: value of become must be a bool (yes or no), got "perhaps"`,
			`kk.yaml:3:12: value of gathering must be one of: implicit, explicit, smart, got: smrt`}},
		{"too small", nil, map[string]string{"kk.yaml": "forks: 0"},
			[]string{`kk.yaml:1:8: value of forks must be at least 1, got 0`}},
		{"twice", nil, map[string]string{"kk.yaml": "forks: 1\nforks: 2"},
			[]string{`kk.yaml:2:1: key "forks" is set twice in this mapping (first on line 1) (remove or rename one: the last would silently win)`}},
		{"a list", nil, map[string]string{"kk.yaml": "- forks"},
			[]string{"kk.yaml:1:1: settings must be a mapping of names to values (for example: forks: 20)"}},
		{"loser", []string{"KK_FORKS=3"}, map[string]string{"kk.yaml": "forks: x"},
			[]string{`kk.yaml:1:8: value of forks must be an int, got "x"`}},
		{"environment", []string{"KK_FORKS=x", "ANSIBLE_BECOME=x"}, nil, []string{
			`environment variable KK_FORKS: value of forks must be an int, got "x"`,
			`environment variable ANSIBLE_BECOME: value of become must be a bool (yes or no), got "x"`}},
		{"no file", []string{"KK_CONFIG=gone.yaml"}, map[string]string{"x": ""},
			[]string{"environment variable KK_CONFIG: open DIR/gone.yaml: no such file or directory"}},
		{"ini", nil, map[string]string{"ansible.cfg": "a=b\n[defaults]\nforks = x\nbare\nforks = 2\n"}, []string{
			`ansible.cfg:1:1: "a=b" comes before the first section (put most keys under [defaults])`,
			`ansible.cfg:3:9: value of forks must be an int, got "x"`,
			`ansible.cfg:4:1: a line must be [section] or key = value, not "bare"`,
			`ansible.cfg:5:1: [defaults] forks is defined twice (first on line 3) (remove one of them)`}},
		{"not ours", []string{"ANSIBLE_LIBRARY=x", "KK_FROKS=1"},
			map[string]string{"ansible.cfg": "[defaults]\n  forkz = 3\nerror_on_undefined_vars = no\nstrategy = mitogen_linear\n"}, []string{
				"W environment variable ANSIBLE_LIBRARY is ignored: kk has no such setting (put modules of a project into the folder library next to the playbook, or of a role)",
				"W kk does not know the environment variable KK_FROKS (did you mean KK_FORKS?)",
				`W ansible.cfg:2:3: setting [defaults] forkz is ignored: kk has no such setting (did you mean "forks"?)`,
				"W ansible.cfg:3:1: setting [defaults] error_on_undefined_vars is ignored: kk has no such setting (use the filter default where a name can be undefined)",
				`W ansible.cfg:4:12: kk has no strategy "mitogen_linear": linear is used`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := place(t, c.environ, c.files)
			_, ds := settings.Load(p)
			var got []string
			for _, d := range ds {
				text := strings.ReplaceAll(d.Error(), p.Dir, "DIR")
				if d.Severity == source.Warning {
					text = "W " + text
				}
				got = append(got, text)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestWorldWritable: who may write to the folder could put words into kk's mouth.
func TestWorldWritable(t *testing.T) {
	p := place(t, nil, map[string]string{"kk.yaml": "forks: 1", "ansible.cfg": "[defaults]\ntimeout = 1"})
	if err := os.Chmod(p.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	l, ds := settings.Load(p)
	if l.Forks != 50 || l.Timeout != 10 || len(ds) != 2 || ds.Err() != nil {
		t.Errorf("forks %d, timeout %d: %v", l.Forks, l.Timeout, ds)
	}
	p.Environ = []string{"KK_CONFIG=kk.yaml", "ANSIBLE_CONFIG=ansible.cfg"}
	if l = load(t, p); l.Forks != 1 || l.Timeout != 1 {
		t.Errorf("named: forks %d, timeout %d", l.Forks, l.Timeout)
	}
}

// TestTable checks what the compiler cannot: each source sets one setting,
// defaults and words are values that the setting can have.
func TestTable(t *testing.T) {
	seen := map[string]string{}
	for _, s := range settings.Table() {
		sources := append([]string{s.OwnEnv()}, s.Env...)
		for _, k := range s.INI {
			sources = append(sources, k.String())
		}
		for _, name := range sources {
			if other := seen[name]; other != "" {
				t.Errorf("%s sets %s and %s", name, other, s.Name)
			}
			seen[name] = s.Name
		}
		if s.Doc == "" || s.Doc != strings.TrimSuffix(s.Doc, ".") {
			t.Errorf("%s: doc %q", s.Name, s.Doc)
		}
	}
}

// TestExample: what kk config init prints changes nothing, and neither does
// it with the comments taken off.
func TestExample(t *testing.T) {
	plain := load(t, place(t, nil, nil))
	for _, text := range []string{settings.Example(), uncommented(settings.Example())} {
		l := load(t, place(t, nil, map[string]string{"kk.yaml": text}))
		for i, v := range l.Values {
			if want := plain.Values[i]; !strings.Contains(v.Setting.Type, "path") && !reflect.DeepEqual(v.Value, want.Value) &&
				len(v.Texts()) > 0 {
				t.Errorf("%s is %v, by default %v", v.Setting.Name, v.Value, want.Value)
			}
		}
	}
}

func uncommented(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "# "), ":")
		for _, s := range settings.Table() {
			if s.Name == name {
				b.WriteString(strings.TrimPrefix(line, "# ") + "\n")
			}
		}
	}
	return b.String()
}

func FuzzLoad(f *testing.F) {
	f.Add("forks: 1", "[defaults]\nforks = 2")
	f.Add("a: &a [*a]", "[x\n =\n[]\n:")
	f.Fuzz(func(t *testing.T, yaml, ini string) {
		p := place(t, nil, map[string]string{"kk.yaml": yaml, "ansible.cfg": ini})
		if l, _ := settings.Load(p); l == nil || len(l.Values) != len(settings.Table()) {
			t.Error("not all settings came back")
		}
	})
}
