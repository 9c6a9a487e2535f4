package rendered

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// whole looks at what belongs together in all that made a cluster.
func (s *findings) whole(t *testing.T, fleet *simulated.Fleet, work string) {
	t.Helper()
	s.checkStarted(t, fleet)
	s.checkCache(t, fleet.Calls(), filepath.Join(work, "cache"))
	s.checkJoins(t, fleet.Calls())
	s.checkKept(t, filepath.Join(work, "clusters"))
}

var starts = regexp.MustCompile(`(?m)^ExecStart=(/usr/local/\S+)`)

// checkStarted wants what units start on a host to have been put there, and
// each timer to have a service.
func (s *findings) checkStarted(t *testing.T, fleet *simulated.Fleet) {
	t.Helper()
	type place struct{ host, path string }
	put := map[place]bool{}
	for _, f := range fleet.Files() {
		put[place{f.Host, f.Path}] = true
	}
	for _, c := range fleet.Calls() {
		if c.Module == "copy" || c.Module == "unarchive" {
			put[place{c.Target, strings.TrimSuffix(c.Args.String("dest"), "/")}] = true
		}
	}
	for _, f := range fleet.Files() {
		if !strings.HasPrefix(f.Path, unitFolder) {
			continue
		}
		for _, m := range starts.FindAllStringSubmatch(f.Content, -1) {
			// An archive's files are where it was unpacked.
			if program := m[1]; !put[place{f.Host, program}] &&
				!(put[place{f.Host, path.Dir(program)}] && !strings.Contains(path.Base(program), "kk-")) {
				s.once(t, "%s: %s starts %s, which no task put there", f.Task, f.Path, program)
			}
		}
		if timed, isTimer := strings.CutSuffix(f.Path, ".timer"); isTimer && !put[place{f.Host, timed + ".service"}] {
			s.once(t, "%s: %s has no service", f.Task, f.Path)
		}
	}
}

// checkCache wants every file that is read from the cache to have been downloaded.
func (s *findings) checkCache(t *testing.T, calls []simulated.Call, cache string) {
	t.Helper()
	var have []string
	for _, c := range calls {
		if c.Module == "download" {
			have = append(append(have, c.Texts("items", "dest")...), c.Texts("items", "file")...)
		}
	}
	for _, c := range calls {
		for _, arg := range []string{"src", "chart", "chart_ref"} {
			name, inCache := strings.CutPrefix(c.Args.String(arg), cache+"/")
			if inCache && !slices.Contains(have, name) {
				s.once(t, "%s: %s reads %s of the cache, which was not downloaded", c.At, c.Task, name)
			}
		}
	}
}

const joinTasks = "roles/kubernetes/tasks/join.yaml"

// checkJoins wants a control plane to have joined before the next begins.
func (s *findings) checkJoins(t *testing.T, calls []simulated.Call) {
	t.Helper()
	var order []string // hosts by turns
	for _, c := range calls {
		isJoining := strings.HasSuffix(c.At.File.Name, joinTasks) && (c.Host == "n2" || c.Host == "n3")
		if isJoining && (len(order) == 0 || order[len(order)-1] != c.Host) {
			order = append(order, c.Host)
		}
	}
	if got := strings.Join(order, " "); got != "n2 n3" {
		s.once(t, "control planes join in the order %q", got)
	}
}

// checkKept wants what kk keeps of a cluster to be the owner's alone.
func (s *findings) checkKept(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		base := filepath.Base(name)
		if err == nil && info.Mode()&0o077 != 0 &&
			(e.IsDir() && name == dir || strings.HasSuffix(base, "key") || strings.HasSuffix(base, "password")) {
			s.once(t, "%s has mode %v", base, info.Mode())
		}
		return err
	})
	if err != nil {
		s.once(t, "what kk keeps of a cluster: %v", err)
	}
}
