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
	Repo          string          `kk:"repo,required" doc:"line for sources.list: deb [OPTIONS] URI SUITE COMPONENT..., or ppa:OWNER/NAME on Launchpad"`
	State         string          `kk:"state" default:"present" choices:"absent,present" doc:"whether the repository is enabled"`
	Filename      string          `kk:"filename" doc:"name of the file in /etc/apt/sources.list.d, without .list. Default: derived from the URI"`
	Codename      string          `kk:"codename" doc:"release of a PPA. Default: that of the host"`
	Mode          schema.FileMode `kk:"mode" default:"0644" doc:"mode of a written file"`
	UpdateCache   bool            `kk:"update_cache,alias=update-cache" default:"yes" doc:"update the package lists after a change"`
	Retries       int             `kk:"update_cache_retries" default:"5" doc:"retries if that fails"`
	MaxDelay      int             `kk:"update_cache_retry_max_delay" default:"12" doc:"maximum delay between retries, in seconds"`
	Validate      bool            `kk:"validate_certs" default:"yes" doc:"verify the TLS certificate of Launchpad"`
	InstallPython bool            `kk:"install_python_apt" default:"yes" doc:"without effect: hosts need no Python"`
}

func aptRepositorySpec() module.Spec {
	return module.Spec{
		Name:    "apt_repository",
		Summary: "Manages apt repositories in sources.list files.",
		Notes: []string{
			"An existing line is found in any file; one that is commented out is enabled. If updating the package lists " +
				"fails after a change, the files are restored.",
			"For a PPA, the host queries Launchpad (api.launchpad.net) for the signing key, and fetches it from " +
				"keyserver.ubuntu.com unless apt already trusts it. The key is stored in /etc/apt/trusted.gpg.d, where it is " +
				"trusted for all repositories; deb822_repository and `signed-by` trust a key for one. state: absent does not " +
				"remove the key. In check mode only Launchpad is queried.",
			"Deb822 files (.sources) are not read.",
		},
		Examples: []string{
			"- name: Add the backports repository\n  apt_repository:\n" +
				"    repo: deb http://deb.debian.org/debian bookworm-backports main\n    filename: backports\n" +
				"    update_cache: false",
		},
		Returns: []module.Return{
			{Key: "repo", Type: "str", Doc: "the argument"},
			{Key: "state", Type: "str", Doc: "the argument"},
			{Key: "sources_added", Type: "list", Doc: "created files"},
			{Key: "sources_removed", Type: "list", Doc: "files that were removed because they became empty"},
		},
		New: func() module.Runner { return new(AptRepository) },
	}
}

const repoLines = "repo and filename must be one line each, and filename must not contain a slash"

// Rules implements schema.Ruled.
func (*AptRepository) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("repo").Says("Please set argument 'repo' to a non-empty value"),
		schema.Parses("a line of sources.list, or ppa:OWNER/NAME", isRepository, "repo"),
		schema.Looks("one line", func(repo string) bool { return schema.OneLine(strings.TrimSpace(repo)) },
			"repo").Says(repoLines),
		schema.Looks("the name of a file",
			func(name string) bool { return schema.OneLine(name) && !strings.Contains(name, "/") }, "filename").
			Says(repoLines),
	}
}

// Run implements module.Runner.
func (m *AptRepository) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	read := hostscript.New(aptRepositoryScript, "apt_repository_read")
	a, err := c.Probe(ctx, read)
	if err == nil {
		err = a.Together("file", "text")
	}
	if err != nil {
		return module.Result{}, err
	}
	want, err := m.source(a.Get("codename"))
	if err != nil {
		return module.Result{}, err
	}
	files := m.edit(a, want)
	if want.ppa != nil && len(files) > 0 && m.State == "present" {
		if err := want.ppa.trust(ctx, c, !m.Validate); err != nil {
			return module.Result{}, err
		}
	}
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
		if err := m.refresh(ctx, c, files); err != nil {
			return module.Result{}, err
		}
	}
	return r, nil
}

func isRepository(repo string) error {
	if strings.HasPrefix(repo, "ppa:") {
		return nil
	}
	if strings.TrimSpace(repo) == "" {
		return errors.New("Please set argument 'repo' to a non-empty value") //nolint:staticcheck // the text users know
	}
	s, ok := parseSource(repo)
	if !ok || !s.enabled || len(strings.Fields(s.spec)) < 3 {
		return fmt.Errorf("Invalid repository string: %s", repo) //nolint:staticcheck // the text users know
	}
	return nil
}

// desiredSource is the repository of the task.
type desiredSource struct {
	line  string   // to be written: fields separated by one blank, without a comment
	specs []string // lines without comments, any of which is sufficient
	file  string   // name of a new file, without .list
	ppa   *ppa     // nil if it is not a PPA
}

// source reads the argument repo, for a host of a release.
func (m *AptRepository) source(codename string) (desiredSource, error) {
	if strings.HasPrefix(m.Repo, "ppa:") {
		if m.Codename != "" {
			codename = m.Codename
		}
		p, err := parsePPA(m.Repo, codename)
		if err != nil {
			return desiredSource{}, err
		}
		all := p.sources()
		return desiredSource{all[0], all, p.fileName(), &p}, nil
	}
	s, _ := parseSource(m.Repo)
	return desiredSource{s.spec, []string{s.spec}, sourceFileName(s.spec), nil}, nil
}

// refresh updates the package lists. If that fails, it restores the files.
func (m *AptRepository) refresh(ctx context.Context, c *module.Call, files []*module.TextFile) error {
	s := hostscript.New(aptScript, aptRepositoryScript, "apt_refresh")
	s.Set("retries", strconv.Itoa(m.Retries)).Set("max_delay", strconv.Itoa(m.MaxDelay))
	_, err := s.Run(ctx, c.Conn, c.Check)
	if err == nil {
		return nil
	}
	for _, f := range files {
		if restored := f.Restore(ctx, c); restored != nil {
			return errors.Join(err, fmt.Errorf("restore %s: %w", f.Path, restored))
		}
	}
	return err
}

// edit returns the files to change.
func (m *AptRepository) edit(a hostscript.Answer, want desiredSource) []*module.TextFile {
	var changed []*module.TextFile
	var all []*module.TextFile
	for i, name := range a["file"] {
		text := strings.TrimSuffix(a["text"][i], "x")
		all = append(all, &module.TextFile{Path: name, Before: text, After: text, Now: hostscript.Answer{"text": {text}}})
	}
	if m.State == "absent" {
		for _, f := range all {
			if f.After = withoutSource(f.Before, want.specs); f.After != f.Before {
				f.Remove = f.After == "" && f.Path != "/etc/apt/sources.list"
				changed = append(changed, f)
			}
		}
		return changed
	}
	if slices.ContainsFunc(all, func(f *module.TextFile) bool { return hasSource(f.Before, want.specs) }) {
		return nil
	}
	for _, f := range all {
		if f.After = enableSource(f.Before, want.specs); f.After != f.Before {
			return []*module.TextFile{f}
		}
	}
	return []*module.TextFile{m.add(all, want)}
}

// add appends the line to its file, which may be new.
func (m *AptRepository) add(all []*module.TextFile, want desiredSource) *module.TextFile {
	name := m.Filename
	if name == "" {
		name = want.file
	}
	f := &module.TextFile{Path: path.Join("/etc/apt/sources.list.d", name+".list"), Now: hostscript.Answer{},
		Fresh: strconv.FormatUint(uint64(m.mode()), 8)}
	if at := slices.IndexFunc(all, func(old *module.TextFile) bool { return old.Path == f.Path }); at >= 0 {
		f = all[at]
	}
	f.After = module.JoinLines(append(module.Lines(f.Before), want.line))
	return f
}

func (m *AptRepository) mode() uint32 {
	bits, err := m.Mode.Apply(0o644, false)
	if err != nil {
		return 0o644
	}
	return schema.UnixMode(bits)
}

// aptSource is a line of a sources.list: enabled or commented out.
type aptSource struct {
	enabled bool
	spec    string // fields separated by one blank, without a comment
}

func parseSource(line string) (aptSource, bool) {
	line = strings.TrimSpace(line)
	rest, off := strings.CutPrefix(line, "#")
	spec, _, _ := strings.Cut(rest, "#")
	words := strings.Fields(spec)
	ok := len(words) > 0 && (words[0] == "deb" || words[0] == "deb-src")
	return aptSource{!off, strings.Join(words, " ")}, ok
}

func hasSource(text string, want []string) bool {
	return slices.ContainsFunc(module.Lines(text), func(line string) bool {
		s, ok := parseSource(line)
		return ok && s.enabled && slices.Contains(want, s.spec)
	})
}

// enableSource uncomments the first line of the source.
func enableSource(text string, want []string) string {
	all := module.Lines(text)
	for i, line := range all {
		if s, ok := parseSource(line); ok && !s.enabled && slices.Contains(want, s.spec) {
			all[i] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
			return module.JoinLines(all)
		}
	}
	return text
}

// withoutSource removes the lines that enable the source.
func withoutSource(text string, want []string) string {
	if !hasSource(text, want) {
		return text
	}
	return module.JoinLines(slices.DeleteFunc(module.Lines(text), func(line string) bool {
		s, ok := parseSource(line)
		return ok && s.enabled && slices.Contains(want, s.spec)
	}))
}

var (
	sourceOptions = regexp.MustCompile(`\[[^\]]+\]`)
	sourceScheme  = regexp.MustCompile(`\w+://`)
	notWord       = regexp.MustCompile(`[^a-zA-Z0-9]+`)
)

// sourceFileName derives the usual file name from the URI.
func sourceFileName(spec string) string {
	words := strings.Fields(sourceScheme.ReplaceAllString(sourceOptions.ReplaceAllString(spec, ""), ""))
	uri := words[1]
	if _, after, login := strings.Cut(uri, "@"); login {
		uri = after
	}
	return strings.Trim(notWord.ReplaceAllString(uri, "_"), "_")
}
