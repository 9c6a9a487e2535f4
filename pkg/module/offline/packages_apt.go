package offline

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
)

//go:embed packages_apt.sh
var aptScript string

// apt resolves with apt-get on a machine.
type apt struct{ machine }

func newApt(m *packages, conn connector.Connector, dir string) (*apt, error) {
	var problems []error
	for _, o := range []*origin{&m.Sources, &m.Defaults} {
		lines, err := signedLines(*o)
		o.Sources = lines
		problems = append(problems, err)
	}
	return &apt{machine{m, conn, dir, dir != ""}}, errors.Join(problems...)
}

// sourceForm is a line of sources.list.
var sourceForm = regexp.MustCompile(`^deb(?:\s+\[([^\]]*)\])?\s+(\S.*)$`)

// signedLines checks lines of sources.list, and adds the keyring to those without one.
func signedLines(o origin) ([]string, error) {
	var lines []string
	var problems []error
	for _, line := range o.Sources {
		parts := sourceForm.FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil || strings.ContainsAny(line, "\n\x00") {
			problems = append(problems, fmt.Errorf("%q is not a source of apt: write deb URL SUITE COMPONENT", line))
			continue
		}
		options := strings.Fields(parts[1])
		signed := false
		for _, option := range options {
			name, _, _ := strings.Cut(strings.ToLower(option), "=")
			name = strings.TrimRight(name, "+-")
			signed = signed || name == "signed-by"
			if name == "trusted" || strings.HasPrefix(name, "allow-") {
				problems = append(problems, fmt.Errorf("%q: remove %s: packages that nobody signed are not exported", line,
					option))
			}
		}
		switch {
		case signed:
		case o.Keyring == "":
			problems = append(problems, fmt.Errorf("%q: nothing names the keys that sign it: set keyring, or write "+
				"[signed-by=FILE] in the line", line))
		case strings.ContainsAny(o.Keyring, " \t]"):
			problems = append(problems, fmt.Errorf("keyring: apt cannot read %q: use a path without blanks", o.Keyring))
		default:
			options = append(options, "signed-by="+o.Keyring)
		}
		lines = append(lines, fmt.Sprintf("deb [%s] %s", strings.Join(options, " "), parts[2]))
	}
	return lines, errors.Join(problems...)
}

func (a *apt) resolve(ctx context.Context) ([]pkg, error) {
	answer, err := a.run(ctx, aptScript+`
apt_resolve "$@"`, a.m.Names)
	if err != nil {
		return nil, err
	}
	return debs(answer.Get("files"), answer.Get("records"))
}

func (a *apt) fetch(ctx context.Context, specs []string) (string, error) {
	_, err := a.run(ctx, aptScript+`
apt_fetch "$@"`, specs)
	return path.Join(a.dir, "fetched"), err
}

// fileLine is what apt-get --print-uris prints for a file: 'URI' NAME_VERSION_ARCH.deb SIZE HASH.
var fileLine = regexp.MustCompile(`^'[^']*' (([^_ ]+)_([^_ ]+)_([^_. ]+)\.deb) ([0-9]+) `)

// debs pairs what apt-get would install with the records of its signed package lists.
func debs(files, records string) ([]pkg, error) {
	type key struct{ name, version, arch, size string }
	found := map[key]stanza{}
	for text := range strings.SplitSeq(records, "\n\n") {
		s := stanza(strings.Trim(text, "\n"))
		k := key{s.field("Package"), s.field("Version"), s.field("Architecture"), s.field("Size")}
		if _, twice := found[k]; !twice && isSHA256(s.field("SHA256")) {
			found[k] = s
		}
	}
	var all []pkg
	for line := range strings.Lines(files) {
		parts := fileLine.FindStringSubmatch(line)
		if parts == nil {
			return nil, fmt.Errorf("apt-get printed %q where a package was expected", strings.TrimSpace(line))
		}
		version, err := url.PathUnescape(parts[3])
		if err != nil {
			return nil, fmt.Errorf("apt-get printed the version %q of %s", parts[3], parts[2])
		}
		size, _ := strconv.ParseInt(parts[5], 10, 64)
		p := pkg{name: parts[2], version: version, arch: parts[4], size: size, fetched: parts[1],
			spec: parts[2] + "=" + version}
		record, ok := found[key{p.name, p.version, p.arch, parts[5]}]
		if !ok {
			return nil, fmt.Errorf("the package lists have no sha256 for %s", parts[1])
		}
		p.sha256 = record.field("SHA256")
		name := fmt.Sprintf("%s_%s_%s.deb", p.name, afterEpoch(version), p.arch)
		if !fileForm.MatchString(name) {
			return nil, fmt.Errorf("%q is not a name of a file that a repository can have", name)
		}
		p.file = "pool/" + name
		p.record = record.in(p.file)
		all = append(all, p)
	}
	return all, nil
}

func afterEpoch(version string) string {
	_, after, found := strings.Cut(version, ":")
	if !found {
		return version
	}
	return after
}

// stanza is a paragraph of a Debian control file.
type stanza string

// field returns the first line of a field.
func (s stanza) field(name string) string {
	for line := range strings.Lines(string(s)) {
		if key, text, ok := strings.Cut(line, ":"); ok && strings.EqualFold(key, name) {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// replaced are the fields that a repository of its own has other values of, or none: a phased update is
// chosen by chance on each host.
var replaced = []string{"filename", "phased-update-percentage"}

// in returns the record for a repository that has the package in file.
func (s stanza) in(file string) string {
	var b strings.Builder
	skip := false
	for line := range strings.Lines(string(s) + "\n") {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			key, _, _ := strings.Cut(line, ":")
			skip = slices.Contains(replaced, strings.ToLower(key))
		}
		if !skip {
			b.WriteString(line)
		}
	}
	fmt.Fprintf(&b, "Filename: %s\n", file)
	return b.String()
}

// metadata makes the repository's Packages and Release. Their date, which apt requires, is constant: the same
// packages make the same bytes.
func (a *apt) metadata(_ context.Context, _ string, all []pkg) (map[string][]byte, error) {
	var b bytes.Buffer
	for _, p := range all {
		fmt.Fprintf(&b, "%s\n", p.record)
	}
	release := fmt.Sprintf("Origin: kk\nLabel: kk\nSuite: %s\nDate: Thu, 01 Jan 1970 00:00:00 UTC\n"+
		"Architectures: %s\nSHA256:\n %x %d Packages\n",
		a.m.Distribution, a.m.Arch, sha256.Sum256(b.Bytes()), b.Len())
	return map[string][]byte{"Packages": b.Bytes(), "Release": []byte(release)}, nil
}
