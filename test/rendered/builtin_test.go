package rendered

import (
	"context"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/builtin"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/facts"
)

// blind are commands that do more than they know of.
var blind = map[string]*regexp.Regexp{
	"flushes the rules of others":            regexp.MustCompile(`\bip6?tables(-\S+)?\s.*(-F|--flush|-X|--delete-chain)\s*$|\bnft\s+flush\s+ruleset|\bipvsadm\s+(-C|--clear)`),
	"ends processes by their names":          regexp.MustCompile(`\b(pkill|killall)\b|\bpgrep\b.*\|\s*xargs|\|\s*xargs\s+kill`),
	"shows a password on a command line":     regexp.MustCompile(`\bcurl\b.*\s(-u|--user)\s|--password[= ]`),
	"lets anyone write":                      regexp.MustCompile(`\bmkdir\s.*-m\s*0?777\b|\bchmod\s+(-R\s+)?0?777\b|\bmode:\s*"?0?777\b`),
	"works in a folder that anyone writes":   regexp.MustCompile(`(dest|path|src|creates):\s*"?/tmp/|>\s*/tmp/`),
	"trusts a server that it does not know":  regexp.MustCompile(`--discovery-token-unsafe-skip-ca-verification|StrictHostKeyChecking=no`),
	"fetches a program and runs it unlooked": regexp.MustCompile(`\b(curl|wget)\b.*\|\s*(ba)?sh\b`),
}

// The volumes of Pods are for users that nobody knows before.
const volumes = "roles/storage/templates/local_path.yaml"

func TestNothingIsDoneBlindly(t *testing.T) {
	for what, line := range map[string]string{
		"flushes the rules of others":          "iptables -t nat -F",
		"ends processes by their names":        "pgrep -f kube | xargs kill -9",
		"shows a password on a command line":   "curl -s -u admin:secret https://registry",
		"lets anyone write":                    "mkdir -p -m 777 /opt/bin",
		"works in a folder that anyone writes": `    dest: "/tmp/ca.key"`,
	} {
		if !blind[what].MatchString(line) {
			t.Errorf("%q is not seen: it %s", line, what)
		}
	}
	err := fs.WalkDir(builtin.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(name, "catalog/") || name == volumes {
			return err
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		for i, line := range strings.Split(string(text), "\n") {
			for what, pattern := range blind {
				if code, _, _ := strings.Cut(line, " #"); pattern.MatchString(code) {
					t.Errorf("%s:%d %s: %s", name, i+1, what, strings.TrimSpace(line))
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What several roles do by one rule stands in one place.
func TestEachRuleStandsInOnePlace(t *testing.T) {
	for _, rule := range []struct {
		what    string
		pattern string
		places  []string
	}{
		{"cuts the name of an image, whose parts the catalog has", `catalog\.images\.\w+\.ref\s*\|`, nil},
		{"asks whether check mode ends here", `foresee_bare`,
			[]string{"playbooks/foresee.yaml", "playbooks/foresee_end.yaml"}},
		{"compares files with the start of a service", `-newercm`, []string{"roles/restart_if_stale/tasks/compare.yaml"}},
		{"gives a module the kubeconfig of the control plane", `kubeconfig: "\{\{ cluster_admin_conf`,
			[]string{"roles/cluster/vars/main.yaml"}},
		{"names the chart of a network plugin by a condition", `when: "\{\{ cni\.type == '`, nil},
	} {
		pattern := regexp.MustCompile(rule.pattern)
		var found []string
		err := fs.WalkDir(builtin.FS(), ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasPrefix(name, "roles/") && !strings.HasPrefix(name, "playbooks/") {
				return err
			}
			text, err := fs.ReadFile(builtin.FS(), name)
			if pattern.Match(text) {
				found = append(found, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(found, rule.places) {
			t.Errorf("%q %s: it is for %q", found, rule.what, rule.places)
		}
	}
}

func readYAML(t testing.TB, name string, into any) {
	t.Helper()
	text, err := fs.ReadFile(builtin.FS(), name)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// A distribution that the checks let pass gets packages.
func TestEveryDistributionHasPackages(t *testing.T) {
	var checks struct {
		Defaults struct {
			Distributions map[string]any `yaml:"supported_os_distributions"`
		} `yaml:"precheck_defaults"`
	}
	var packages struct {
		Distributions map[string]struct{ ID, Kind string } `yaml:"packages_distributions"`
		Tables        map[string]struct {
			Packages []string
			Chrony   struct{ Package, Service, Conf string }
			NFS      string
			Server   struct{ Package, Service string } `yaml:"nfs_server"`
			Zones    string                            `yaml:"timezones"`
		} `yaml:"packages_tables"`
	}
	readYAML(t, "roles/precheck/defaults/main.yaml", &checks)
	readYAML(t, "roles/packages/vars/main.yaml", &packages)
	for _, name := range []string{"Debian", "Ubuntu", "Rocky", "AlmaLinux", "openEuler"} {
		if checks.Defaults.Distributions[name] == nil {
			t.Errorf("%s is not supported", name)
		}
	}
	for name := range checks.Defaults.Distributions {
		row := packages.Distributions[name]
		table := packages.Tables[row.Kind]
		if !slices.Contains(table.Packages, "socat") || table.Chrony.Package == "" || table.Chrony.Service == "" ||
			table.Chrony.Conf == "" || table.NFS == "" || table.Server.Package == "" || table.Server.Service == "" ||
			table.Zones == "" {
			t.Errorf("%s: it is known as %q, whose packages are %+v", name, row.Kind, table)
		}
		id := row.ID
		if name == "UnionTech" {
			id += "\nPLATFORM_ID=platform:uel20"
		}
		if facts := systemOf(t, id); facts != name {
			t.Errorf("%s: the ID %q is that of %q", name, row.ID, facts)
		}
	}
}

var factsMark = regexp.MustCompile("kk-facts-[0-9A-Z]+")

// systemOf is the name that facts give a host with this ID in os-release.
func systemOf(t *testing.T, id string) string {
	t.Helper()
	host := &connectortest.Fake{Answer: func(_ context.Context, c connectortest.Call) connectortest.Answer {
		mark := factsMark.FindString(c.Command.Line)
		return connectortest.Answer{Stdout: "\n" + mark + " os-release\nID=" + id + "\n\n" + mark + " end\n"}
	}}
	found, err := facts.Gather(t.Context(), host, facts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return found.String("distribution")
}

var startsProgram = regexp.MustCompile(`(?m)^ExecStart=\{\{ cluster_bin \}\}/([\w-]+)`)

// A program of a service that is replaced is restarted: the task that puts
// it there notifies a handler, or the program is among the files that the role
// compares with what runs (*_reads).
func TestNewProgramsAreStarted(t *testing.T) {
	services := map[string][]string{} // programs that units of a role start
	reads := map[string]string{}      // lines of a role's variables
	err := fs.WalkDir(builtin.FS(), "roles", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		role := strings.Split(name, "/")[1]
		if strings.Contains(name, "/templates/") {
			for _, m := range startsProgram.FindAllStringSubmatch(string(text), -1) {
				services[role] = append(services[role], m[1])
			}
		}
		if strings.Contains(name, "/vars/") {
			reads[role] += strings.Join(comparedFiles.FindAllString(string(text), -1), "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	installed := programsOfBinaries(t)
	looked := 0
	for _, w := range tasks(t) {
		parts := strings.Split(w.file, "/")
		if parts[0] != "roles" {
			continue
		}
		for _, program := range services[parts[1]] {
			if !w.puts(program) && !(w.installsBinaries() && installed(program)) {
				continue
			}
			looked++
			if !w.has("notify") && !regexp.MustCompile(`/`+program+`['"]`).MatchString(reads[parts[1]]) {
				t.Errorf("%s:%d: the program %s is replaced, and nothing restarts it", w.file, w.line, program)
			}
		}
	}
	if looked < 6 {
		t.Errorf("only %d programs of services are put on hosts", looked)
	}
}

var comparedFiles = regexp.MustCompile(`(?m)^\w+_reads:.*$`)

// programsOfBinaries returns whether the role binaries can install a program. Of an archive that is extracted whole,
// the programs begin with its name.
func programsOfBinaries(t *testing.T) func(program string) bool {
	t.Helper()
	text, err := fs.ReadFile(builtin.FS(), "roles/binaries/vars/main.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var vars struct {
		Programs []string `yaml:"binaries_programs"`
		Archives map[string]struct {
			Include yaml.Node // a list, or a template
		} `yaml:"binaries_archives"`
	}
	if err := yaml.Unmarshal(text, &vars); err != nil {
		t.Fatal(err)
	}
	return func(program string) bool {
		for name, archive := range vars.Archives {
			if strings.Contains(archive.Include.Value, "/"+program+"'") {
				return true
			}
			for _, member := range archive.Include.Content {
				base := path.Base(member.Value)
				if base == program || base == "*" && strings.HasPrefix(program, name) {
					return true
				}
			}
		}
		return slices.Contains(vars.Programs, program)
	}
}

// installsBinaries tells whether a task imports the role binaries.
func (w written) installsBinaries() bool {
	var args struct{ Name string }
	n := w.keys["import_role"]
	return n != nil && n.Decode(&args) == nil && args.Name == "binaries"
}

// puts tells whether a task puts a program into the folder of programs.
func (w written) puts(program string) bool {
	const folder = "{{ cluster_bin }}"
	for _, module := range []string{"copy", "unarchive"} {
		var args struct {
			Dest    string
			Include []string
		}
		if n := w.keys[module]; n == nil || n.Decode(&args) != nil {
			continue
		}
		if module == "copy" {
			return args.Dest == folder+"/"+program
		}
		return args.Dest == folder && slices.ContainsFunc(args.Include, func(name string) bool {
			return path.Base(name) == program || path.Base(name) == "*"
		})
	}
	return false
}
