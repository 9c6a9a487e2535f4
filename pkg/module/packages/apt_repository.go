package packages

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed apt_repository.sh
var aptRepositoryScript string

// AptRepository is the module apt_repository.
type AptRepository struct {
	Repo          string          `kk:"repo,required" doc:"a line of sources.list: deb [OPTIONS] URI SUITE COMPONENT..."`
	State         string          `kk:"state" default:"present" choices:"absent,present" doc:"whether the repository is used"`
	Filename      string          `kk:"filename" doc:"name of the file in /etc/apt/sources.list.d, without .list. Default: made of the URI"`
	Mode          schema.FileMode `kk:"mode" default:"0644" doc:"mode of a file that is written"`
	UpdateCache   bool            `kk:"update_cache,alias=update-cache" default:"yes" doc:"read the lists of the repositories after a change"`
	Retries       int             `kk:"update_cache_retries" default:"5" doc:"times to try that again"`
	MaxDelay      int             `kk:"update_cache_retry_max_delay" default:"12" doc:"seconds between two tries, at most"`
	InstallPython bool            `kk:"install_python_apt" default:"yes" doc:"without effect: hosts need no Python"`
}

func aptRepositorySpec() module.Spec {
	return module.Spec{
		Name:    "apt_repository",
		Summary: "Keeps repositories of apt in files of one line each.",
		Notes: []string{
			"A line that is there in any file is found; one that is commented out is put in use. If the lists cannot be read after a change, the files become what they were.",
			"Launchpad's `ppa:` names are refused: write the line that they stand for, and its key (deb822_repository brings both). Files .sources of deb822 are not looked at.",
		},
		Examples: []string{
			"- name: Packages that came later\n  apt_repository:\n    repo: deb http://deb.debian.org/debian bookworm-backports main\n    filename: backports\n    update_cache: false",
		},
		Returns: []module.Return{
			{Key: "repo", Type: "str", Doc: "the argument"},
			{Key: "state", Type: "str", Doc: "the argument"},
			{Key: "sources_added", Type: "list", Doc: "files that were made"},
			{Key: "sources_removed", Type: "list", Doc: "files that were removed, since nothing was left in them"},
		},
		New: func() module.Runner { return new(AptRepository) },
	}
}

// Run implements module.Runner.
func (m *AptRepository) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	want, err := m.check()
	if err != nil {
		return module.Result{}, err
	}
	read := hostscript.New(aptRepositoryScript, "apt_repository_read")
	read.Probe = true
	a, err := read.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return module.Result{}, err
	}
	files := m.edit(a, want)
	r := module.Result{Data: value.NewDict("repo", m.Repo, "state", m.State)}
	var added, removed []string
	for _, f := range files {
		if !f.Exists() {
			added = append(added, f.Path)
		}
		if f.Remove {
			removed = append(removed, f.Path)
		}
		if err := f.Save(ctx, c, module.FileAttrs{}, &r); err != nil {
			return r, err
		}
	}
	r.Data.Set("sources_added", value.List(added))
	r.Data.Set("sources_removed", value.List(removed))
	if r.Changed && m.UpdateCache && !c.Check {
		err = m.refresh(ctx, c, files)
	}
	return r, err
}

func (m *AptRepository) check() (want string, err error) {
	if strings.HasPrefix(m.Repo, "ppa:") {
		return "", fmt.Errorf("%s: kk does not look up names of Launchpad: write the line deb [signed-by=FILE] https://ppa.launchpadcontent.net/... and install its key", m.Repo)
	}
	if strings.ContainsAny(strings.TrimSpace(m.Repo), "\r\n\x00") || strings.ContainsAny(m.Filename, "/\r\n\x00") {
		return "", errors.New("repo and filename must be one line each, and filename has no slash")
	}
	s, ok := parseSource(m.Repo)
	if !ok || !s.enabled || len(strings.Fields(s.spec)) < 3 {
		return "", fmt.Errorf("Invalid repository string: %s", m.Repo) //nolint:staticcheck // the text users know
	}
	return s.spec, nil
}

// refresh reads the lists. If that fails, the files become what they were.
func (m *AptRepository) refresh(ctx context.Context, c *module.Call, files []*module.TextFile) error {
	s := hostscript.New(aptScript, aptRepositoryScript, "apt_refresh")
	s.Set("retries", strconv.Itoa(m.Retries)).Set("max_delay", strconv.Itoa(m.MaxDelay))
	_, err := s.Run(ctx, c.Conn, c.Check)
	if err == nil {
		return nil
	}
	for _, f := range files {
		if restored := f.Restore(ctx, c); restored != nil {
			return errors.Join(err, fmt.Errorf("put back %s: %w", f.Path, restored))
		}
	}
	return err
}

// edit returns the files that are to change.
func (m *AptRepository) edit(a hostscript.Answer, want string) []*module.TextFile {
	var changed []*module.TextFile
	var all []*module.TextFile
	for i, name := range a["file"] {
		text := strings.TrimSuffix(a["text"][i], "x")
		all = append(all, &module.TextFile{Path: name, Before: text, After: text, Now: hostscript.Answer{"text": {text}}})
	}
	if m.State == "absent" {
		for _, f := range all {
			if f.After = withoutSource(f.Before, want); f.After != f.Before {
				f.Remove = f.After == "" && f.Path != "/etc/apt/sources.list"
				changed = append(changed, f)
			}
		}
		return changed
	}
	if slices.ContainsFunc(all, func(f *module.TextFile) bool { return hasSource(f.Before, want) }) {
		return nil
	}
	for _, f := range all {
		if f.After = enableSource(f.Before, want); f.After != f.Before {
			return []*module.TextFile{f}
		}
	}
	return []*module.TextFile{m.add(all, want)}
}

// add puts the line at the end of its file, which may be new.
func (m *AptRepository) add(all []*module.TextFile, want string) *module.TextFile {
	name := m.Filename
	if name == "" {
		name = sourceFileName(want)
	}
	f := &module.TextFile{Path: path.Join("/etc/apt/sources.list.d", name+".list"), Now: hostscript.Answer{}, Fresh: strconv.FormatUint(uint64(m.mode()), 8)}
	if at := slices.IndexFunc(all, func(old *module.TextFile) bool { return old.Path == f.Path }); at >= 0 {
		f = all[at]
	}
	f.After = module.JoinLines(append(module.Lines(f.Before), strings.TrimSpace(m.Repo)))
	return f
}

func (m *AptRepository) mode() uint32 {
	bits, err := m.Mode.Apply(0o644, false)
	if err != nil {
		return 0o644
	}
	return schema.UnixMode(bits)
}

// aptSource is a line of a sources.list: in use or commented out.
type aptSource struct {
	enabled bool
	spec    string // words one blank apart, without a comment
}

func parseSource(line string) (aptSource, bool) {
	line = strings.TrimSpace(line)
	rest, off := strings.CutPrefix(line, "#")
	spec, _, _ := strings.Cut(rest, "#")
	words := strings.Fields(spec)
	ok := len(words) > 0 && (words[0] == "deb" || words[0] == "deb-src")
	return aptSource{!off, strings.Join(words, " ")}, ok
}

func hasSource(text, want string) bool {
	return slices.ContainsFunc(module.Lines(text), func(line string) bool {
		s, ok := parseSource(line)
		return ok && s.enabled && s.spec == want
	})
}

// enableSource takes the comment sign from the first line that has the source.
func enableSource(text, want string) string {
	all := module.Lines(text)
	for i, line := range all {
		if s, ok := parseSource(line); ok && !s.enabled && s.spec == want {
			all[i] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
			return module.JoinLines(all)
		}
	}
	return text
}

// withoutSource removes the lines that have the source in use.
func withoutSource(text, want string) string {
	if !hasSource(text, want) {
		return text
	}
	return module.JoinLines(slices.DeleteFunc(module.Lines(text), func(line string) bool {
		s, ok := parseSource(line)
		return ok && s.enabled && s.spec == want
	}))
}

var (
	sourceOptions = regexp.MustCompile(`\[[^\]]+\]`)
	sourceScheme  = regexp.MustCompile(`\w+://`)
	notWord       = regexp.MustCompile(`[^a-zA-Z0-9]+`)
)

// sourceFileName makes a file name of the URI, as people find it on hosts.
func sourceFileName(spec string) string {
	words := strings.Fields(sourceScheme.ReplaceAllString(sourceOptions.ReplaceAllString(spec, ""), ""))
	uri := words[1]
	if _, after, login := strings.Cut(uri, "@"); login {
		uri = after
	}
	return strings.Trim(notWord.ReplaceAllString(uri, "_"), "_")
}
