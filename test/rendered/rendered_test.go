package rendered

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// commands are what is done with a cluster, in order: the hosts keep what the one before left.
// One in five clusters gets all; the others are made and deleted.
var commands = [][]string{
	{"run", "playbooks/create_cluster.yaml"},
	{"run", "playbooks/add_nodes.yaml"},
	{"run", "playbooks/certs_renew.yaml"},
	{"run", "playbooks/delete_nodes.yaml", "-e", `{"delete_nodes": ["n3", "n5"]}`},
	{"run", "playbooks/init_os.yaml"},
	{"run", "playbooks/init_registry.yaml"},
	{"run", "playbooks/delete_cluster.yaml", "-e", "delete_all=true", "-e", "delete_with_data=true"},
	{"run", "playbooks/delete_registry.yaml", "-e", "delete_with_data=true"},
}

func TestRendered(t *testing.T) {
	ds := dimensions(t)
	clusters := pairwise(ds)
	if os.Getenv("KK_RENDER_ALL") != "" {
		clusters = all(ds)
	}
	t.Logf("%d clusters", len(clusters))
	seen := newFindings(t)
	t.Run("clusters", func(t *testing.T) {
		for i, c := range clusters {
			run := commands
			if i%5 != 0 {
				run = [][]string{commands[0], commands[len(commands)-2]}
			}
			t.Run(c.name(ds), func(t *testing.T) {
				t.Parallel()
				c.render(t, seen, run)
			})
		}
	})
	seen.check(t)
}

// render runs commands on a cluster.
func (c cluster) render(t *testing.T, seen *findings, commands [][]string) {
	dir := t.TempDir()
	c.write(t, dir)
	fleet := &simulated.Fleet{Record: true, Nodes: c.layout().Hosts()}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, command := range commands {
		if !applies(command[1], c) {
			continue
		}
		args := append(command[:len(command):len(command)], "-i", in("inventory.yaml"), "-c", in("config.yaml"), "-e",
			"kk_yes=true", "--workdir", in("work"), "-o", "json")
		var out bytes.Buffer
		if code := fleet.Run(t.Context(), &out, args...); code != 0 {
			seen.failed(t, command[1], code, strings.ReplaceAll(out.String(), dir, ""))
			break
		}
		if command[1] == commands[0][1] {
			seen.whole(t, fleet, in("work"))
		}
		seen.events(t, command[1], out.String(), known(t, in("work")))
	}
	for _, line := range fleet.Stray() {
		seen.once(t, "a module reached for a host: %s", line)
	}
	secrets := known(t, in("work"))
	for _, f := range fleet.Files() {
		seen.file(t, c, f, secrets)
	}
	for _, call := range fleet.Calls() {
		seen.call(t, call, secrets)
	}
	seen.units(fleet.Files())
}

// applies tells whether a playbook makes sense for a cluster.
func applies(playbook string, c cluster) bool {
	return !strings.Contains(playbook, "registry") || c["registry"] != "none"
}

// known are the secrets of a run: those that were planted, and those that it made.
func known(t *testing.T, work string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for what, s := range planted {
		all[what] = s
	}
	made, _ := filepath.Glob(filepath.Join(work, "clusters/*/*"))
	for _, name := range made {
		text, err := os.ReadFile(name)
		if base := filepath.Base(name); err == nil &&
			(strings.HasSuffix(base, "key") || strings.HasSuffix(base, "password")) {
			all["of the file "+base] = strings.TrimSpace(string(text))
		}
	}
	return all
}

// onHost is what differs between hosts that have the same problem.
var onHost = regexp.MustCompile(` on n\d+`)

// failures are the messages of what failed in a run.
func failures(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		var e struct {
			Type, Status string
			Ignored      bool
			Item         any
			Task         struct {
				Name string
				Role string
				At   struct {
					File string
					Line int
				}
			}
			Result struct {
				Msg    any
				Failed bool
			}
			Err     string
			Message string
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			all = append(all, strings.TrimSpace(line))
			continue
		}
		if e.Status == "failed" && !e.Ignored {
			msg, _ := json.Marshal(e.Result.Msg)
			all = append(all, onHost.ReplaceAllString(e.Task.At.File+": "+e.Task.Name+": "+string(msg), ""))
		}
		if e.Err != "" {
			all = append(all, e.Err)
		}
	}
	return all
}
