package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// kkYAML reads the first kk.yaml that exists. Unknown keys are errors.
func (r *reader) kkYAML() {
	f := r.first("KK_CONFIG", true,
		filepath.Join(r.places.Dir, "kk.yaml"),
		r.home(".config/kk/kk.yaml"),
		filepath.Join(r.places.Etc, "kk/kk.yaml"))
	if f == nil {
		return
	}
	docs, ds := source.ParseYAML(f.File)
	r.ds.Add(ds...)
	if ds.Err() != nil || len(docs) == 0 || len(docs[0].Content) == 0 {
		return
	}
	root := docs[0].Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
	case root.Kind != yaml.MappingNode:
		r.ds.Add(source.Errorf(source.NodePos(f.File, root), "settings must be a mapping of names to values").
			WithHelp("for example: forks: 20"))
	default:
		for i := 0; i+1 < len(root.Content); i += 2 {
			r.yamlKey(f, root.Content[i], root.Content[i+1])
		}
	}
}

func (r *reader) yamlKey(f *settingsFile, key, val *yaml.Node) {
	s, ok := r.row(key.Value)
	if !ok {
		help := source.DidYouMean(key.Value, r.names())
		if help == "" {
			help = "kk config list prints all settings"
		}
		d := source.Errorf(source.NodePos(f.File, key), "unknown setting %q", key.Value).WithHelp("%s", help)
		d.Width = utf8.RuneCountInString(key.Value)
		r.ds.Add(d)
		return
	}
	v, err := value.FromYAML(val)
	var bad *value.YAMLError
	switch {
	case errors.As(err, &bad):
		r.ds.Add(source.Errorf(source.Pos{File: f.File, Line: bad.Line, Col: bad.Col}, "%s", bad.Msg))
		return
	case err != nil:
		r.ds.Add(source.Errorf(source.NodePos(f.File, val), "%s", err))
		return
	case v == nil, v == "": // as if it were missing
		return
	}
	at := source.NodePos(f.File, val)
	r.add(s, candidate{raw: v, origin: at.String(), at: at, width: utf8.RuneCountInString(val.Value), dir: f.dir})
}

// settingsFile is a file that was found.
type settingsFile struct {
	*source.File
	path, dir string
}

func (r *reader) home(rest string) string {
	if r.places.Home == "" {
		return ""
	}
	return filepath.Join(r.places.Home, rest)
}

// first opens the file that a variable names, else the first that exists: the one in the working
// folder, then others. must means that a file named by the variable has to exist.
func (r *reader) first(variable string, must bool, here string, others ...string) *settingsFile {
	if name := r.env[variable]; name != "" {
		name = r.path(name, r.places.Dir)
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			name = filepath.Join(name, filepath.Base(here))
		}
		f, err := r.open(name)
		switch {
		case err == nil:
			return f
		case must || !errors.Is(err, fs.ErrNotExist):
			r.ds.Add(source.Errorf(source.Pos{}, "environment variable %s: %s", variable, err))
			return nil
		}
	}
	if info, err := os.Stat(here); err == nil && info.Mode().IsRegular() {
		if !worldWritable(r.places.Dir) {
			return r.opened(here)
		}
		r.ds.Add(source.Warningf(source.Pos{}, "%s is not read: everybody can write to its folder", filepath.Base(here)).
			WithHelp("name it in %s if you trust it", variable))
	}
	for _, name := range others {
		if info, err := os.Stat(name); name != "" && err == nil && info.Mode().IsRegular() {
			return r.opened(name)
		}
	}
	return nil
}

// opened is open, with the error reported as a problem of the settings.
func (r *reader) opened(name string) *settingsFile {
	f, err := r.open(name)
	if err != nil {
		r.ds.Add(source.Errorf(source.Pos{}, "read settings: %s", err))
	}
	return f
}

func (r *reader) open(name string) (*settingsFile, error) {
	text, err := r.places.Files.Raw().Read(name, source.MaxFile)
	if err != nil {
		return nil, err
	}
	shown := name
	if rel, err := filepath.Rel(r.places.Dir, name); err == nil && !strings.HasPrefix(rel, "..") {
		shown = rel
	}
	r.files = append(r.files, shown)
	return &settingsFile{source.NewFile(shown, text), name, filepath.Dir(name)}, nil
}

func worldWritable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o002 != 0
}
