package rendered

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"gopkg.in/yaml.v3"

	"kubekey/builtin"
	"kubekey/pkg/value"
	"kubekey/test/simulated"
)

// findings collects what clusters come to, and tells each thing that is wrong once.
type findings struct {
	mu        sync.Mutex
	printed   map[string]bool
	looked    map[[32]byte]bool            // texts that were looked at
	templates map[string]bool              // that were rendered
	scripts   map[string]string            // by their text: where they are from
	settings  map[string]map[string]origin // of programs that check them, by program and text
	unitSets  map[string]map[string]string // texts by path, by their digest
}

func newFindings(*testing.T) *findings {
	return &findings{printed: map[string]bool{}, looked: map[[32]byte]bool{}, templates: map[string]bool{},
		scripts:  map[string]string{},
		settings: map[string]map[string]origin{}, unitSets: map[string]map[string]string{}}
}

// once tells of something that is wrong, unless another cluster has it too.
func (s *findings) once(t *testing.T, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	known := s.printed[text]
	s.printed[text] = true
	s.mu.Unlock()
	if !known {
		t.Error(text)
	}
}

func (s *findings) failed(t *testing.T, playbook string, code int, out string) {
	t.Helper()
	fails := failures(out)
	if len(fails) == 0 {
		s.once(t, "%s: exit code %d: %s", playbook, code, out)
	}
	for _, f := range fails {
		s.once(t, "%s: exit code %d: %s", playbook, code, f)
	}
}

func (s *findings) events(t *testing.T, playbook, out string, secrets map[string]string) {
	t.Helper()
	for what, secret := range secrets {
		if i := strings.Index(out, secret); i >= 0 {
			line := out[strings.LastIndexByte(out[:i], '\n')+1:]
			line, _, _ = strings.Cut(line, "\n")
			s.once(t, "%s: an event shows the secret %s: %.300s", playbook, what, line)
		}
	}
}

// shows tells which of the secrets a text has, as it is or in base64.
func shows(text string, secrets map[string]string) (what string) {
	for what, secret := range secrets {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)),
			base64.StdEncoding.EncodeToString([]byte("me:" + secret))} {
			if len(secret) >= 8 && strings.Contains(text, form) {
				return what
			}
		}
	}
	return ""
}

// call looks at the arguments of a module.
func (s *findings) call(t *testing.T, c simulated.Call, secrets map[string]string) {
	t.Helper()
	switch c.Module {
	case "command", "shell", "raw", "script":
		s.command(t, c, secrets)
	case "lineinfile", "blockinfile", "replace":
		if what := shows(value.Str(c.Args), secrets); what != "" && !private(c.Args.String("mode")) {
			s.once(t, "%s: %s: a secret (%s) in a file that others may read", c.At, c.Task, what)
		}
	case "helm":
		s.values(t, c)
	}
}

func (s *findings) command(t *testing.T, c simulated.Call, secrets map[string]string) {
	t.Helper()
	line := c.Args.Copy()
	line.Delete("stdin")
	if what := shows(value.Str(line), secrets); what != "" {
		s.once(t, "%s: %s: a secret (%s) on the command line", c.At, c.Task, what)
	}
	if c.Module == "shell" || c.Module == "raw" {
		text := line.String("cmd")
		if text == "" {
			text = line.String("_raw_params")
		}
		s.script(c.At.String()+": "+c.Task, text)
	}
}

func (s *findings) script(from, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scripts[text] == "" {
		s.scripts[text] = from
	}
}

// values looks at the values of a chart: an image has a tag.
func (s *findings) values(t *testing.T, c simulated.Call) {
	t.Helper()
	v, _ := c.Args.Get("values")
	text, err := value.JSON(v, value.JSONOptions{})
	if err != nil {
		s.once(t, "%s: %s: values: %v", c.At, c.Task, err)
		return
	}
	var tree any
	if err := json.Unmarshal([]byte(text), &tree); err == nil {
		s.images(t, c.Task, tree)
	}
}

// images wants each image of a tree to have a tag or a digest.
func (s *findings) images(t *testing.T, where string, tree any) {
	t.Helper()
	switch tree := tree.(type) {
	case map[string]any:
		for key, v := range tree {
			if ref, ok := v.(string); ok && key == "image" && strings.Contains(ref, "/") && !tagged.MatchString(ref) &&
				tree["tag"] == nil && tree["version"] == nil {
				s.once(t, "%s: the image %s has no tag", where, ref)
			}
			s.images(t, where, v)
		}
	case []any:
		for _, v := range tree {
			s.images(t, where, v)
		}
	}
}

var tagged = regexp.MustCompile(`(:[A-Za-z0-9_][A-Za-z0-9_.-]*|@sha256:[0-9a-f]{64})$`)

// private tells whether a mode lets the owner alone read.
func private(mode string) bool {
	bits, err := strconv.ParseUint(mode, 8, 32)
	return err == nil && bits&0o077 == 0
}

// file looks at a text that a task made on a host.
func (s *findings) file(t *testing.T, c cluster, f simulated.File, secrets map[string]string) {
	t.Helper()
	if f.Template != "" {
		s.mu.Lock()
		s.templates[strings.TrimPrefix(f.Template, "builtin:/")] = true
		s.mu.Unlock()
	}
	if what := shows(f.Content, secrets); what != "" && !private(f.Mode) {
		s.once(t, "%s: %s has a secret (%s) and mode %q", f.Task, f.Path, what, f.Mode)
	}
	s.keep(c, f)
	key := sha256.Sum256([]byte(f.Path + "\x00" + f.Content))
	s.mu.Lock()
	known := s.looked[key]
	s.looked[key] = true
	s.mu.Unlock()
	if !known {
		s.text(t, f)
	}
}

// text parses a file as what it is.
func (s *findings) text(t *testing.T, f simulated.File) {
	t.Helper()
	if leftover.MatchString(f.Content) && f.Template != "" {
		s.once(t, "%s: %s has a word of the template language: %s", f.Task, f.Path, leftover.FindString(f.Content))
	}
	switch kind(f) {
	case "yaml":
		for d := yaml.NewDecoder(strings.NewReader(f.Content)); ; {
			var tree any
			err := d.Decode(&tree)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				s.once(t, "%s: %s: %v\n%s", f.Task, f.Path, err, f.Content)
				break
			}
			s.images(t, f.Path, tree)
		}
	case "json":
		if !json.Valid([]byte(f.Content)) {
			s.once(t, "%s: %s is no JSON\n%s", f.Task, f.Path, f.Content)
		}
	case "toml":
		var tree any
		if err := toml.Unmarshal([]byte(f.Content), &tree); err != nil {
			s.once(t, "%s: %s: %v\n%s", f.Task, f.Path, err, f.Content)
		}
	case "xml":
		if err := xml.Unmarshal([]byte(f.Content), new(struct{ XMLName xml.Name })); err != nil {
			s.once(t, "%s: %s: %v\n%s", f.Task, f.Path, err, f.Content)
		}
	case "script":
		s.script(f.Path, f.Content)
	}
}

// leftover is what no file has, unless a template was not worked out, or a value was none.
var leftover = regexp.MustCompile(`\{\{ |\{% |: None$|\bUndefined\b|<no value>`)

func kind(f simulated.File) string {
	switch ext := path.Ext(f.Path); {
	case strings.HasPrefix(f.Content, "#!"):
		return "script"
	case ext == ".yaml" || ext == ".yml" || strings.HasPrefix(f.Content, "apiVersion:"):
		return "yaml"
	case ext == ".json":
		return "json"
	case ext == ".toml":
		return "toml"
	case ext == ".xml":
		return "xml"
	}
	return ""
}

const unitFolder = "/etc/systemd/system/"

// units keeps the units of each host: those of one host belong together.
func (s *findings) units(files []simulated.File) {
	hosts := map[string]map[string]string{}
	for _, f := range files {
		if rest, ok := strings.CutPrefix(f.Path, unitFolder); ok {
			if hosts[f.Host] == nil {
				hosts[f.Host] = map[string]string{}
			}
			hosts[f.Host][rest] = f.Content
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range hosts {
		s.unitSets[fmt.Sprint(set)] = set
	}
}

// check looks at what all clusters made together.
func (s *findings) check(t *testing.T) {
	t.Run("scripts", s.checkScripts)
	t.Run("units", s.checkUnits)
	for _, j := range checkers() {
		t.Run(j.program, func(t *testing.T) { s.checkSettings(t, j) })
	}
	t.Run("templates", s.checkTemplates)
}

// lookedUp is a template that another text takes in: it is rendered with it.
var lookedUp = regexp.MustCompile(`(?:lookup\('template', |\{% include )'([^']+)'`)

// checkTemplates wants each template of the roles to have been rendered by some cluster.
func (s *findings) checkTemplates(t *testing.T) {
	named := map[string]bool{}
	var templates []string
	err := fs.WalkDir(builtin.FS(), "roles", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		role := strings.Join(strings.SplitN(name, "/", 3)[:2], "/")
		if strings.Contains(name, "/templates/") {
			templates = append(templates, name)
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		for _, m := range lookedUp.FindAllStringSubmatch(string(text), -1) {
			named[role+"/templates/"+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range templates {
		if !s.templates[name] && !named[name] {
			t.Errorf("%s was never rendered", name)
		}
	}
}
