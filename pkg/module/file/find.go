package file

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/charset"
	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// Find is the module find.
type Find struct {
	Paths     []string        `kk:"paths,required,path,alias=path|name" doc:"folders on the host to search"`
	Patterns  []string        `kk:"patterns,alias=pattern" doc:"shell patterns, or with use_regex Python regular expressions, one of which must match the name. Default: all names"`
	Excludes  []string        `kk:"excludes,alias=exclude" doc:"names to exclude, in the form of patterns"`
	UseRegex  bool            `kk:"use_regex" default:"no" doc:"patterns and excludes are regular expressions, matched from the start of the name"`
	FileType  string          `kk:"file_type" default:"file" choices:"any,directory,file,link" doc:"type of files to find"`
	Recurse   bool            `kk:"recurse" default:"no" doc:"search subfolders too"`
	Depth     int             `kk:"depth" doc:"maximum depth with recurse; 1 is the folder itself. Default: unlimited"`
	Hidden    bool            `kk:"hidden" default:"no" doc:"also find names that begin with a dot"`
	Follow    bool            `kk:"follow" default:"no" doc:"follow links to folders"`
	Age       string          `kk:"age" doc:"minimum age: 30, 30s, 5m, 2h, 4d, 1w; with a minus sign the maximum age"`
	AgeStamp  string          `kk:"age_stamp" default:"mtime" choices:"atime,ctime,mtime" doc:"timestamp to compare with age"`
	Size      string          `kk:"size" doc:"minimum size: 100, 100b, 10k, 5m, 2g, 1t; with a minus sign the maximum size"`
	Contains  string          `kk:"contains" doc:"Python regular expression that the beginning of a line must match"`
	Encoding  string          `kk:"encoding" doc:"encoding of the files for contains, by Python's name; a file with another encoding is skipped. Default: utf-8, where invalid bytes are matched unchanged"`
	WholeFile bool            `kk:"read_whole_file" default:"no" doc:"match contains anywhere in the whole file instead of line by line"`
	Checksum  bool            `kk:"get_checksum" default:"no" doc:"return the checksums of the files"`
	Algorithm string          `kk:"checksum_algorithm" default:"sha1" choices:"md5,sha1,sha224,sha256,sha384,sha512" doc:"checksum algorithm"`
	Mode      schema.FileMode `kk:"mode" doc:"permission bits that the file must have"`
	ExactMode bool            `kk:"exact_mode" default:"yes" doc:"match exactly the bits of mode; no: any of them"`
	Limit     int             `kk:"limit" doc:"maximum number of files to find"`
}

func findSpec() module.Spec {
	return module.Spec{
		Name:    "find",
		Summary: "Finds files on the host by name, age, size, type or content.",
		Notes:   []string{"Files are sorted by path. Ages are relative to the clock of the host."},
		Examples: []string{
			"- name: Find old logs\n  find:\n    paths: /var/log/app\n    patterns: \"*.log,*.log.gz\"\n    age: 4w\n" +
				"    recurse: yes\n  register: old\n- name: Remove them\n  file:\n    path: \"{{ item.path }}\"\n" +
				"    state: absent\n  loop: \"{{ old.files }}\"",
		},
		Returns: []module.Return{
			{Key: "files", Type: "list of dict", Doc: "found files, each with path and the keys of stat"},
			{Key: "matched", Type: "int", Doc: "number of found files"},
			{Key: "examined", Type: "int", Doc: "number of examined files"},
			{Key: "skipped_paths", Type: "dict", Doc: "paths that could not be searched, and why"},
		},
		New:   func() module.Runner { return new(Find) },
		Check: module.Harmless,
	}
}

// finder is a compiled search.
type finder struct {
	*Find
	patterns, excludes []*pyregex.Regexp
	contains           *pyregex.Regexp
	age, size          *int64
	now                int64

	examined int
	skipped  *value.Dict // maps paths to reasons
	warnings []string
	root     map[*entry]string // the search root of each result
}

// Rules implements schema.Ruled.
func (*Find) Rules() schema.Rules {
	return schema.Rules{
		amountRule("age", ageUnits),
		amountRule("size", sizeUnits),
	}
}

// Run implements module.Runner.
func (m *Find) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	f, err := m.compile()
	if err != nil {
		return module.Result{}, err
	}
	found, err := f.search(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if found, err = f.read(ctx, c, found); err != nil {
		return module.Result{}, err
	}
	if m.Limit > 0 && len(found) > m.Limit {
		found = found[:m.Limit]
	}
	files := make([]any, len(found))
	for i, e := range found {
		d := value.NewDict("path", e.path)
		e.self.details(d)
		if m.Checksum && e.digest != "" {
			d.Set("checksum", e.digest)
		}
		files[i] = d
	}
	msg := "All paths examined"
	if f.skipped.Len() > 0 {
		msg = "Not all paths examined, check warnings for details"
	}
	data := value.NewDict("examined", f.examined, "skipped_paths", f.skipped, "files", files, "matched", len(files))
	return module.Result{Data: data, Msg: msg, Warnings: f.warnings}, nil
}

func (m *Find) compile() (*finder, error) {
	f := &finder{Find: m, skipped: value.NewDict(), root: map[*entry]string{}}
	var err error
	if f.patterns, err = m.names(m.Patterns); err != nil {
		return nil, err
	}
	if f.excludes, err = m.names(m.Excludes); err != nil {
		return nil, err
	}
	if m.Contains != "" {
		if f.contains, err = compilePattern(m.Contains, 0); err != nil {
			return nil, err
		}
	}
	if f.age, err = amount("age", m.Age, ageUnits); err != nil {
		return nil, err
	}
	f.size, err = amount("size", m.Size, sizeUnits)
	return f, err
}

// names compiles name patterns. Shell patterns are converted to regular expressions.
func (m *Find) names(list []string) ([]*pyregex.Regexp, error) {
	var out []*pyregex.Regexp
	for _, s := range list {
		flags := pyregex.AtStart
		if !m.UseRegex {
			s, flags = globPattern(s), pyregex.DotAll
		}
		p, err := compilePattern(s, flags)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// globPattern converts a shell pattern with the semantics of Python's fnmatch: * matches everything.
func globPattern(glob string) string {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(glob); i++ {
		switch ch := glob[i]; ch {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '[':
			end := strings.IndexByte(glob[min(i+2, len(glob)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			set := glob[i+1 : i+2+end]
			if rest, ok := strings.CutPrefix(set, "!"); ok {
				set = "^" + rest
			}
			b.WriteString("[" + strings.ReplaceAll(set, `\`, `\\`) + "]")
			i += 2 + end
		default:
			b.WriteString(regexp.QuoteMeta(string(ch)))
		}
	}
	return b.String() + `\Z`
}

var amountForm = regexp.MustCompile(`(?i)^(-?\d+)([a-z]?)`)

var (
	ageUnits  = map[string]int64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
	sizeUnits = map[string]int64{"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
)

// amountRule returns the rule for arguments that amount parses.
func amountRule(arg string, units map[string]int64) schema.Rule {
	return schema.Parses("a number with a unit", func(text string) error {
		_, err := amount(arg, text, units)
		return err
	}, arg)
}

// amount parses an amount such as 10k or -2d. "" gives nil.
func amount(what, s string, units map[string]int64) (*int64, error) {
	if s == "" {
		return nil, nil
	}
	m := amountForm.FindStringSubmatch(s)
	if m == nil {
		return nil, fmt.Errorf("failed to process %s: %q is no number with a unit", what, s)
	}
	unit, ok := units[strings.ToLower(m[2])]
	n, err := strconv.ParseInt(m[1], 10, 64)
	if !ok || err != nil || n*unit/unit != n {
		return nil, fmt.Errorf("failed to process %s: %q is no number with a unit", what, s)
	}
	n *= unit
	return &n, nil
}

// search lists the folders and keeps the entries that match by their metadata.
func (f *finder) search(ctx context.Context, c *module.Call) ([]*entry, error) {
	s := script{probe: true}
	for _, p := range f.Paths {
		s.line(asked{flags: "n", path: p}.code())
		word, _ := hostWord(strings.TrimRight(p, "/") + "/")
		s.line("[ ! -d " + word + " ] || { " + f.listing(p).code() + "; }")
		s.line(`printf '.\0'`)
	}
	s.line(`printf 'W%s\0.\0' "$(date +%s)"`)
	out, err := s.run(ctx, c)
	if err != nil {
		return nil, err
	}
	var ans answer
	if err := ans.parse(out, "", "", 0); err != nil {
		return nil, err
	}
	f.now = ans.now
	found := f.sift(ans.entries)
	f.hear(s.said)
	return found, nil
}

// hear parses the error output of find: folders that it has no permission to read. Other lines become warnings.
func (f *finder) hear(said string) {
	const denied = ": Permission denied"
	for _, line := range module.Lines(said) {
		folder, ok := strings.CutPrefix(strings.TrimSuffix(line, denied), "find: ")
		if !ok || !strings.HasSuffix(line, denied) {
			f.warnings = append(f.warnings, line)
			continue
		}
		folder = strings.Trim(folder, "'")
		f.skipped.Set(folder, fmt.Sprintf("[Errno 13] Permission denied: '%s'", folder))
	}
}

// skip records why a path was not searched, or only in part.
func (f *finder) skip(root, why string) {
	f.skipped.Set(root, why)
	f.warnings = append(f.warnings, "Skipped '"+root+"' path due to this access issue: "+why)
}

func (f *finder) listing(p string) listing {
	l := listing{root: strings.TrimRight(p, "/") + "/", follow: f.Follow, depth: 1}
	if f.Recurse {
		l.depth = 0
		if f.Depth > 0 {
			l.depth = f.Depth + 1 // the entries of the deepest folders count as examined
		}
	}
	return l
}

// deeper reports whether a path, relative to its root, is below the maximum depth.
func (f *finder) deeper(path string) bool {
	return f.Recurse && f.Depth > 0 && strings.Count(path, "/") >= f.Depth
}

// sift filters the listings. A listing is the path's own entry, the entries below it, and an empty entry.
func (f *finder) sift(entries []*entry) []*entry {
	var found []*entry
	seen := map[string]bool{}
	head := true
	root := ""
	for _, e := range entries[:max(0, len(entries)-1)] {
		switch {
		case e.path == "":
			head = true
		case head:
			head, root = false, e.path
			if !e.followed().is(typeDir) {
				f.skip(e.path, fmt.Sprintf("'%s' is not a directory", e.path))
			}
		case relative(e.path, root) == "" || e.self == nil || seen[e.path]:
		default:
			below := relative(e.path, root)
			e.path = strings.TrimRight(root, "/") + "/" + below
			f.examined++
			seen[e.path] = true
			if !f.deeper(below) && f.matches(e) {
				f.root[e] = root
				found = append(found, e)
			}
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].path < found[j].path })
	return found
}

func (f *finder) matches(e *entry) bool {
	name := path.Base(e.path)
	if strings.HasPrefix(name, ".") && !f.Hidden {
		return false
	}
	return f.typed(e.self) && f.named(name) && f.aged(e.self) && f.sized(e.self) && f.permitted(e.self)
}

func (f *finder) typed(n *inode) bool {
	switch f.FileType {
	case "any":
		return true
	case "directory":
		return n.is(typeDir)
	case "link":
		return n.is(typeLink)
	}
	return n.is(typeFile)
}

func (f *finder) named(name string) bool {
	return (len(f.patterns) == 0 || anyMatch(f.patterns, name)) && !anyMatch(f.excludes, name)
}

func anyMatch(list []*pyregex.Regexp, name string) bool {
	for _, p := range list {
		if m, err := p.Matches(name); err == nil && m {
			return true
		}
	}
	return false
}

func (f *finder) aged(n *inode) bool {
	if f.age == nil {
		return true
	}
	at := n.mtime
	switch f.AgeStamp {
	case "atime":
		at = n.atime
	case "ctime":
		at = n.ctime
	}
	if *f.age >= 0 {
		return f.now-int64(at) >= *f.age
	}
	return f.now-int64(at) <= -*f.age
}

func (f *finder) sized(n *inode) bool {
	switch {
	case f.size == nil:
		return true
	case *f.size >= 0:
		return n.size >= *f.size
	}
	return n.size <= -*f.size
}

func (f *finder) permitted(n *inode) bool {
	if !f.Mode.IsSet() {
		return true
	}
	mode, err := f.Mode.Apply(0, n.is(typeDir))
	bits := schema.UnixMode(mode)
	if err != nil {
		return false
	}
	if f.ExactMode {
		return n.perm() == bits
	}
	return n.perm()&bits != 0
}

// readAtOnce is the maximum number of bytes that one script reads for contains.
const readAtOnce = 8 << 20

// read reads the files for contains and get_checksum.
func (f *finder) read(ctx context.Context, c *module.Call, found []*entry) ([]*entry, error) {
	if f.contains == nil && !f.Checksum {
		return found, nil
	}
	var kept []*entry
	for len(found) > 0 {
		n, size := 0, int64(0)
		for n < len(found) && (n == 0 || size+found[n].self.size <= readAtOnce) {
			size += found[n].self.size
			n++
		}
		some, err := f.readSome(ctx, c, found[:n])
		if err != nil {
			return nil, err
		}
		kept, found = append(kept, some...), found[n:]
	}
	return kept, nil
}

func (f *finder) readSome(ctx context.Context, c *module.Call, some []*entry) ([]*entry, error) {
	s := script{probe: true}
	for _, e := range some {
		word := shell.Quote(e.path)
		if f.contains != nil {
			s.line(fmt.Sprintf("[ ! -f %s ] || kk_content %s %d", word, word, maxEdit))
		}
		if f.Checksum {
			s.line(fmt.Sprintf("[ ! -f %s ] || %s", word, sumCall(f.Algorithm, word)))
		}
		s.line(`printf '.\0'`)
	}
	out, err := s.run(ctx, c)
	if err != nil {
		return nil, err
	}
	var ans answer
	if err := ans.parse(out, "", "", 0); err != nil {
		return nil, err
	}
	if len(ans.entries) != len(some) {
		return nil, fmt.Errorf("the host answered about %d of %d files", len(ans.entries), len(some))
	}
	var kept []*entry
	for i, e := range some {
		e.digest = ans.entries[i].digest + ans.entries[i].md5
		ok, err := f.contained(e, ans.entries[i].content)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// contained reports whether a file matches contains. Files that are not text in the encoding do not match.
func (f *finder) contained(e *entry, content []byte) (bool, error) {
	if f.contains == nil || !e.self.is(typeFile) {
		return true, nil
	}
	text, err := charset.Decode(string(content), f.Encoding)
	switch {
	case !charset.Known(f.Encoding):
		f.skip(f.root[e], "unknown encoding: "+f.Encoding)
		return false, nil
	case err != nil, f.Encoding != "" && !utf8.ValidString(text):
		f.skip(f.root[e], fmt.Sprintf("Failed to read the file %s due to an encoding error. current encoding: %s", e.path,
			f.Encoding))
		return false, nil
	}
	return f.holds(text)
}

// holds reports whether a text matches contains.
func (f *finder) holds(text string) (bool, error) {
	if f.WholeFile {
		m, err := f.contains.Find(text)
		return m != nil, err
	}
	for _, line := range SplitLines(text) {
		m, err := f.contains.Find(Chomp(line))
		if err != nil {
			return false, err
		}
		if m != nil && m[0] == 0 {
			return true, nil
		}
	}
	return false, nil
}
