package packages

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed deb822.sh
var deb822Script string

// Deb822Repository is the module deb822_repository. Struct fields with a tag deb822
// are fields of sources.list(5), in the order in which they are written.
type Deb822Repository struct {
	AllowDowngrade *bool           `kk:"allow_downgrade_to_insecure" deb822:"Allow-Downgrade-To-Insecure" doc:"allow a signed repository to become unsigned"`
	AllowInsecure  *bool           `kk:"allow_insecure" deb822:"Allow-Insecure" doc:"allow the repository even without a valid signature"`
	AllowWeak      *bool           `kk:"allow_weak" deb822:"Allow-Weak" doc:"allow signatures with a weak algorithm"`
	Architectures  []string        `kk:"architectures" deb822:"Architectures" doc:"architectures to use. Default: those of the host"`
	ByHash         *bool           `kk:"by_hash" deb822:"By-Hash" doc:"fetch package lists by their digest"`
	CheckDate      *bool           `kk:"check_date" deb822:"Check-Date" doc:"check that package lists are not dated in the future"`
	CheckValid     *bool           `kk:"check_valid_until" deb822:"Check-Valid-Until" doc:"check that package lists have not expired"`
	Components     []string        `kk:"components" deb822:"Components" doc:"components of the repository, such as main; none if suites are exact paths"`
	DateMaxFuture  *int            `kk:"date_max_future" deb822:"Date-Max-Future" doc:"maximum number of seconds that package lists may be dated in the future"`
	Enabled        *bool           `kk:"enabled" deb822:"Enabled" doc:"whether the repository is enabled"`
	Exclude        []string        `kk:"exclude" deb822:"Exclude" doc:"packages to ignore in the repository (apt 3)"`
	Include        []string        `kk:"include" deb822:"Include" doc:"packages to use from the repository; all others are ignored (apt 3)"`
	InRelease      string          `kk:"inrelease_path" deb822:"Inrelease-Path" doc:"path of the InRelease file, relative to its usual location"`
	Languages      []string        `kk:"languages" deb822:"Languages" doc:"languages of package descriptions to fetch"`
	Name           string          `kk:"name,required" deb822:"X-Repolib-Name" doc:"name of the repository; its file has the same name in lower case, with dashes"`
	PDiffs         *bool           `kk:"pdiffs" deb822:"Pdiffs" doc:"fetch package lists as diffs"`
	SignedBy       []string        `kk:"signed_by" deb822:"Signed-By" doc:"signing key: a file on the host, a URL that the host fetches into /etc/apt/keyrings, an armored key, or a fingerprint; or a list with at most one URL or armored key"`
	Suites         []string        `kk:"suites" deb822:"Suites" doc:"suites, such as bookworm, or exact paths with a trailing slash"`
	Targets        []string        `kk:"targets" deb822:"Targets" doc:"index files to fetch"`
	Trusted        *bool           `kk:"trusted" deb822:"Trusted" doc:"treat the repository as signed, or as unsigned, without verification"`
	Types          []string        `kk:"types" default:"deb" choices:"deb,deb-src" deb822:"Types" doc:"binary packages, source packages, or both"`
	URIs           []string        `kk:"uris" deb822:"URIs" doc:"URIs of the repository"`
	State          string          `kk:"state" default:"present" choices:"absent,present" doc:"whether the repository and its key should exist"`
	Mode           schema.FileMode `kk:"mode" default:"0644" doc:"mode of the file"`
	InstallPython  bool            `kk:"install_python_debian" default:"no" doc:"without effect: hosts need no Python"`
}

func deb822RepositorySpec() module.Spec {
	return module.Spec{
		Name:    "deb822_repository",
		Summary: "Manages an apt repository in deb822 format, with its signing key.",
		Notes: []string{
			"The file is /etc/apt/sources.list.d/NAME.sources. The package lists are not updated: set `update_cache` on the " +
				"next apt task.",
			"A key given by URL is fetched in each run, to detect changes.",
		},
		Examples: []string{
			"- name: Add the backports repository\n  deb822_repository:\n    name: backports\n    types: deb\n" +
				"    uris: http://deb.debian.org/debian\n    suites: bookworm-backports\n    components: main\n" +
				"    signed_by: /usr/share/keyrings/debian-archive-keyring.gpg",
		},
		Returns: []module.Return{
			{Key: "dest", Type: "str", Doc: "the file"},
			{Key: "key_filename", Type: "str", Doc: "file with the key, if there is one"},
			{Key: "key_filenames", Type: "list of str", Doc: "files with the keys"},
			{Key: "repo", Type: "str", Doc: "content of the file, null with state: absent"},
		},
		New: func() module.Runner { return new(Deb822Repository) },
	}
}

var (
	slugDashes = regexp.MustCompile(`[_\s]+`)
	slugOthers = regexp.MustCompile(`[^a-z0-9-]+`)
)

// slugOf is the file name of a repository.
func slugOf(name string) string {
	return slugOthers.ReplaceAllString(slugDashes.ReplaceAllString(strings.ToLower(name), "-"), "")
}

const urisAndSuites = "state is present but all of the following are needed: uris, suites"

func hasSlug(name string) error {
	if slugOf(name) == "" {
		return fmt.Errorf("name %q must contain a letter or a digit: the file is named after it", name)
	}
	return nil
}

func noExactPath(suite string) error {
	if strings.HasSuffix(suite, "/") {
		return fmt.Errorf("suite %s is an exact path: components must not be given with it", suite)
	}
	return nil
}

// Rules implements schema.Ruled.
func (*Deb822Repository) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Parses("a name with a letter or digit", hasSlug, "name"),
		schema.Needs("uris", "suites").If("state", "present").Says(urisAndSuites),
		schema.Entries("uris", 1, schema.NoLimit).If("state", "present").Says(urisAndSuites),
		schema.Entries("suites", 1, schema.NoLimit).If("state", "present").Says(urisAndSuites),
		schema.Parses("names of releases, without components", noExactPath, "suites").With("components"),
	}
}

// Run implements module.Runner.
func (m *Deb822Repository) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	slug := slugOf(m.Name)
	f, err := module.ReadText(ctx, c, path.Join("/etc/apt/sources.list.d", slug+".sources"))
	if err != nil {
		return module.Result{}, err
	}
	ring := path.Join("/etc/apt/keyrings", slug)
	r := module.Result{Data: value.NewDict("dest", f.Path, "key_filename", nil, "key_filenames", []any{}, "repo", nil)}
	if m.State == "absent" {
		f.After, f.Remove = "", true
		if err := f.Save(ctx, c, module.FileAttrs{}, &r); err != nil {
			return r, err
		}
		return r, m.removeKeys(ctx, c, ring, &r)
	}
	signedBy, err := m.key(ctx, c, ring, &r)
	if err != nil {
		return r, err
	}
	if f.After, err = m.text(signedBy); err != nil {
		return r, err
	}
	r.Data.Set("repo", f.After)
	own := module.Result{Data: r.Data}
	err = f.Save(ctx, c, module.FileAttrs{Mode: m.Mode}, &own)
	r.Changed, r.Diff = r.Changed || own.Changed, own.Diff
	return r, err
}

var fingerprint = regexp.MustCompile(`^[0-9A-Fa-f]{40,}!?$`)

// key fetches a key given by URL, and returns the value of the field Signed-By.
func (m *Deb822Repository) key(ctx context.Context, c *module.Call, ring string, r *module.Result) (string, error) {
	if all := strings.Join(m.SignedBy, ","); isArmored([]byte(all)) {
		return foldedKey(all), nil
	}
	var words, files []string
	url := ""
	for _, by := range m.SignedBy {
		word := by
		switch bare := strings.Join(strings.Fields(by), ""); {
		case strings.Contains(by, "://"):
			if url != "" && url != by {
				return "", errors.New("signed_by has more than one URL: set one, and the others as files")
			}
			if url == by {
				continue
			}
			url = by
			file, err := m.fetch(ctx, c, url, ring, r)
			if err != nil {
				return "", err
			}
			word, files = file, append(files, file)
		case strings.HasPrefix(by, "/"):
			files = append(files, by)
		case fingerprint.MatchString(bare):
			word = bare
		}
		words = append(words, word)
	}
	if len(files) > 0 {
		r.Data.Set("key_filename", files[0])
	}
	r.Data.Set("key_filenames", value.List(files))
	return strings.Join(words, " "), nil
}

// fetch stores the key from a URL in a file.
func (m *Deb822Repository) fetch(ctx context.Context, c *module.Call, url, ring string,
	r *module.Result) (file string, err error) {
	read := hostscript.New(deb822Script, "deb822_read").Set("ring", ring).Set("url", url)
	a, err := c.Probe(ctx, read)
	if err != nil {
		return "", err
	}
	data, err := base64.StdEncoding.DecodeString(a.Get("key"))
	if err != nil {
		return "", err
	}
	if keys, err := pgpKeys(data); err != nil || len(keys) == 0 {
		return "", fmt.Errorf("the content of %s is not an OpenPGP key: %w", url, errors.Join(err, errIfNone(keys)))
	}
	file = ring + ".gpg"
	if isArmored(data) {
		file = ring + ".asc"
	}
	if err := a.Together("ring", "ring_key", "ring_mode"); err != nil {
		return "", err
	}
	for i, there := range a["ring"] {
		if there == file && a["ring_key"][i] == a.Get("key") && a["ring_mode"][i] == "644" {
			return file, nil
		}
	}
	r.Changed = true
	if c.Check {
		return file, nil
	}
	act := hostscript.New(deb822Script, "deb822_key").Set("ring", file)
	act.Stdin = strings.NewReader(a.Get("key"))
	_, err = act.Run(ctx, c.Conn, c.Check)
	return file, err
}

func errIfNone(keys []pgpKey) error {
	if len(keys) == 0 {
		return errors.New("no key found")
	}
	return nil
}

// removeKeys removes the files of the key.
func (m *Deb822Repository) removeKeys(ctx context.Context, c *module.Call, ring string, r *module.Result) error {
	read := hostscript.New(deb822Script, "deb822_read").Set("ring", ring)
	a, err := c.Probe(ctx, read)
	if err != nil || !a.Has("ring") {
		return err
	}
	r.Changed = true
	r.Data.Set("key_filename", a.Get("ring"))
	if c.Check {
		return nil
	}
	act := hostscript.New(deb822Script, `deb822_remove "$@"`)
	act.Words = a["ring"]
	_, err = act.Run(ctx, c.Conn, c.Check)
	return err
}

// foldedKey is an armored key as the value of a field: each line is indented,
// and an empty one is a dot.
func foldedKey(key string) string {
	var out strings.Builder
	for _, line := range module.Lines(strings.TrimSpace(key)) {
		if line = strings.TrimSpace(line); line == "" {
			line = "."
		}
		out.WriteString("\n    " + line)
	}
	return out.String()
}

// text is the content of the file.
func (m *Deb822Repository) text(signedBy string) (string, error) {
	var out strings.Builder
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i).Tag.Get("deb822")
		if field == "" || v.Field(i).IsZero() {
			continue
		}
		text := ""
		switch f := v.Field(i).Interface().(type) {
		case string:
			text = f
		case *int:
			text = strconv.Itoa(*f)
		case *bool:
			text = map[bool]string{true: "yes", false: "no"}[*f]
		case []string:
			text = strings.Join(f, " ")
		}
		if strings.ContainsAny(text, "\r\n\x00") && field != "Signed-By" {
			return "", fmt.Errorf("value of %s must be one line", field)
		}
		if field == "Signed-By" {
			text = signedBy
		}
		if text != "" {
			out.WriteString(strings.TrimRight(field+": "+text, " ") + "\n")
		}
	}
	return strings.ReplaceAll(out.String(), ": \n", ":\n"), nil
}
