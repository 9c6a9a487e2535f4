package file

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
)

// inode is the stat result of a file.
type inode struct {
	raw                 uint32 // st_mode
	uid, gid            int
	owner, group        string // the number if there is no name
	size                int64
	links               int
	ino, dev            int
	atime, mtime, ctime float64 // seconds, with a fraction if the host reports it
}

// Types of files in st_mode.
const (
	typeMask   = 0o170000
	typeDir    = 0o040000
	typeFile   = 0o100000
	typeLink   = 0o120000
	typeBlock  = 0o060000
	typeChar   = 0o020000
	typeFifo   = 0o010000
	typeSocket = 0o140000
)

func (n *inode) is(kind uint32) bool { return n != nil && n.raw&typeMask == kind }
func (n *inode) perm() uint32        { return n.raw & 0o7777 }
func (n *inode) mode() fs.FileMode   { return schema.ModeOfUnix(n.perm()) }

// state returns the file type as it is named in results.
func (n *inode) state() string {
	switch {
	case n == nil:
		return "absent"
	case n.is(typeLink):
		return "link"
	case n.is(typeDir):
		return "directory"
	case n.is(typeFile) && n.links > 1:
		return "hard"
	}
	return "file"
}

// entry is the probe result of one path.
type entry struct {
	path    string // with ~ and $NAME expanded
	self    *inode // of the path itself; nil if it does not exist
	link    string // target of a link
	target  *inode // the inode of the target; nil for a dangling link
	real    string // the path with all links resolved; "" if the entry is not a link
	parent  *inode // of the parent folder, if the path does not exist and the probe asked for it
	sha256  string // "" if not a regular file or not readable
	sha1    string
	md5     string
	digest  string // of another algorithm
	mime    string // from `file --mime`
	lsattr  string // from `lsattr -vd`
	access  string // of r, w, x
	content []byte
	hasText bool // content was requested and exists
}

func (e *entry) exists() bool { return e.self != nil }
func (e *entry) isLink() bool { return e.self.is(typeLink) }

// followed returns the inode at the path with links followed.
func (e *entry) followed() *inode {
	if e.isLink() {
		return e.target
	}
	return e.self
}

// at returns the inode, with links followed or not.
func (e *entry) at(follow bool) *inode {
	if follow {
		return e.followed()
	}
	return e.self
}

// resolved returns the path with links resolved.
func (e *entry) resolved() string {
	if e.isLink() && e.real != "" {
		return e.real
	}
	return e.path
}

// account is a user or a group of the host.
type account struct {
	name string
	id   int
}

// answer is the parsed output of one probe script.
type answer struct {
	entries      []*entry
	user, group  *account // the requested ones
	self         account  // the user on the host, if something was missing
	selfGroup    account
	umask        uint32
	packing      string // type of an archive, if requested
	listing      string // its members
	now          int64  // the host's clock, if requested
	zone         int    // seconds east of UTC, if requested
	missingUser  bool
	missingGroup bool
}

// asked is one path of a probe, with the flag letters described in host.sh.
type asked struct {
	flags string
	path  string
	limit int64  // maximum size of the content for the flag c, in bytes
	below string // literal part after path and a slash; may be ""
}

// whole returns the complete path, unexpanded.
func (p asked) whole() string {
	if p.below == "" {
		return NormalPath(p.path)
	}
	return strings.TrimRight(NormalPath(p.path), "/") + "/" + p.below
}

// maxEdit is the maximum size in bytes of a file that is read to be edited.
const maxEdit = 64 << 20

// probe queries the host about paths, and about an owner and a group unless they are "", in one round trip.
func probe(ctx context.Context, c *module.Call, owner, group string, paths ...asked) (*answer, error) {
	s := script{probe: true}
	for _, p := range paths {
		s.line(p.code())
	}
	if owner != "" {
		s.line("kk_account U passwd " + shell.Quote(owner))
	}
	if group != "" {
		s.line("kk_account G group " + shell.Quote(group))
	}
	out, err := s.run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("inspect %s on the host: %w", paths[0].path, err)
	}
	return parseAnswer(out, paths, owner, group)
}

func (p asked) code() string {
	word, expands := hostWord(p.path)
	if p.below != "" {
		word, expands = hostWord(strings.TrimRight(p.path, "/"))
		if word == "''" {
			word = ""
		}
		word += "/" + shell.Quote(p.below)
	}
	flags := p.flags
	if expands {
		flags += "n"
	}
	return fmt.Sprintf("kk_probe '%s' %s %d", flags, word, p.limit)
}

func probeOne(ctx context.Context, c *module.Call, flags, name string) (*entry, error) {
	a, err := probe(ctx, c, "", "", asked{flags: flags, path: name, limit: maxEdit})
	if err != nil {
		return nil, err
	}
	return a.entries[0], nil
}

// parseAnswer parses the output of host.sh about paths.
func parseAnswer(out []byte, paths []asked, owner, group string) (*answer, error) {
	a := &answer{umask: 0o022}
	if err := a.parse(out, owner, group, len(paths)); err != nil {
		return nil, err
	}
	if len(a.entries) != len(paths) {
		return nil, fmt.Errorf("the host answered about %d of %d paths", len(a.entries), len(paths))
	}
	for i, e := range a.entries {
		if e.path == "" {
			e.path = paths[i].whole()
		}
	}
	return a, nil
}

// parse parses the entries of an answer. Entries for the requested paths come first, then those of listings.
func (a *answer) parse(out []byte, owner, group string, paths int) error {
	e := &entry{}
	for len(out) > 0 {
		field, rest, ok := bytes.Cut(out, []byte{0})
		if !ok || len(field) == 0 {
			return fmt.Errorf("the host's answer breaks off at %.40q", out)
		}
		out = rest
		if field[0] == '.' {
			a.entries = append(a.entries, e)
			e = &entry{}
			continue
		}
		if err := a.take(e, field[0], string(field[1:]), owner, group); err != nil {
			return err
		}
	}
	if len(a.entries) < paths {
		return fmt.Errorf("the host answered about %d of %d paths", len(a.entries), paths)
	}
	return nil
}

// NormalPath returns a path in a form that is never parsed as an option.
func NormalPath(p string) string {
	if strings.HasPrefix(p, "-") {
		return "./" + p
	}
	return p
}

func (a *answer) take(e *entry, letter byte, text, owner, group string) (err error) {
	switch letter {
	case 'N':
		e.path = text
	case 'S':
		e.self, err = parseInode(text)
	case 'L':
		e.target, err = parseInode(text)
	case 'P':
		e.parent, err = parseInode(text)
	case 'T':
		e.link = strings.TrimSuffix(text, "\n")
	case 'R':
		e.real = strings.TrimSuffix(text, "\n")
	case 'H':
		e.sha256 = digestOf(text)
	case '1':
		e.sha1 = digestOf(text)
	case '5':
		e.md5 = digestOf(text)
	case 'A':
		e.access = text
	case 'C':
		e.content, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
		e.hasText = true
	case 'I':
		err = a.parseSelf(text)
	case 'U':
		a.user, a.missingUser, err = parseAccount(text, owner)
	case 'G':
		a.group, a.missingGroup, err = parseAccount(text, group)
	case 'D':
		e.digest = digestOf(text)
	case 'M':
		e.mime = strings.TrimSpace(text)
	case 'V':
		e.lsattr = text
	case 'W':
		a.now = int64(number(strings.TrimSpace(text)))
	case 'X':
		a.packing = strings.TrimSpace(text)
	case 'Y':
		a.listing = text
	case 'Z':
		a.zone = zoneOf(text)
	case 'E':
		err = errors.New(cmp.Or(strings.TrimSpace(strings.TrimPrefix(text, "stat: ")),
			"stat failed on the host, and gave no reason"))
	default:
		err = fmt.Errorf("the host's answer has an unknown field %q", letter)
	}
	return err
}

// digestOf returns the digest in the output of sha256sum and similar tools, which add a backslash before it or a *
// after it for unusual names.
func digestOf(s string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(s, "\\"), " ")
	return strings.TrimSpace(first)
}

// parseInode parses a line of stat -c, or (after an @) the lines of ls -lnid and ls -ld.
func parseInode(s string) (*inode, error) {
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		return parseList(rest)
	}
	if rest, ok := strings.CutPrefix(s, "#"); ok {
		return parseFound(rest)
	}
	parts := strings.SplitN(s, "/", 3)
	numbers := strings.Fields(parts[0])
	if len(parts) != 3 || len(numbers) != 10 {
		return nil, fmt.Errorf("the host's stat answered %q", s)
	}
	raw, err := strconv.ParseUint(numbers[0], 16, 32)
	if err != nil {
		return nil, fmt.Errorf("the host's stat answered %q", s)
	}
	n := &inode{raw: uint32(raw), owner: parts[1], group: parts[2]}
	n.uid, n.gid = number(numbers[1]), number(numbers[2])
	n.size, n.links = int64(number(numbers[3])), number(numbers[4])
	n.ino, n.dev = number(numbers[5]), number(numbers[6])
	n.atime, n.mtime, n.ctime = seconds(numbers[7]), seconds(numbers[8]), seconds(numbers[9])
	n.nameAccounts()
	return n, nil
}

// nameAccounts replaces missing account names by numbers.
func (n *inode) nameAccounts() {
	if n.owner == "UNKNOWN" || n.owner == "" {
		n.owner = strconv.Itoa(n.uid)
	}
	if n.group == "UNKNOWN" || n.group == "" {
		n.group = strconv.Itoa(n.gid)
	}
}

// number parses a number printed by stat. Invalid text gives 0.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// parseList parses `ls -lnid` and `ls -ld`, for hosts whose stat does not support -c.
func parseList(s string) (*inode, error) {
	first, second, _ := strings.Cut(s, "\n")
	f := strings.Fields(first) // inode mode links uid gid size ...
	if len(f) < 6 || len(f[1]) < 10 {
		return nil, fmt.Errorf("the host's ls answered %q", first)
	}
	n := &inode{raw: modeOfList(f[1]), ino: number(f[0]), links: number(f[2]), uid: number(f[3]), gid: number(f[4])}
	n.size = int64(number(f[5]))
	for _, line := range strings.Split(second, "\n") {
		if g := strings.Fields(line); len(g) >= 4 && g[0] == f[1] {
			n.owner, n.group = g[2], g[3]
			break
		}
	}
	n.nameAccounts()
	return n, nil
}

// parseFound parses the output of find -printf (listing.go).
func parseFound(s string) (*inode, error) {
	parts := strings.SplitN(s, "/", 3)
	f := strings.Fields(parts[0])
	if len(parts) != 3 || len(f) != 11 {
		return nil, fmt.Errorf("the host's find answered %q", s)
	}
	perm, err := strconv.ParseUint(f[1], 8, 32)
	if err != nil {
		return nil, fmt.Errorf("the host's find answered %q", s)
	}
	kind := kindOf(f[0][0])
	n := &inode{raw: kind | uint32(perm), owner: parts[1], group: parts[2]}
	n.uid, n.gid, n.size, n.links = number(f[2]), number(f[3]), int64(number(f[4])), number(f[5])
	n.ino, n.dev = number(f[6]), number(f[7])
	n.atime, n.mtime, n.ctime = seconds(f[8]), seconds(f[9]), seconds(f[10])
	n.nameAccounts()
	return n, nil
}

// seconds parses 1700000000 or 1700000000.1234. Invalid text gives 0.
func seconds(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// kindOf converts the letter for a file type in find and ls.
func kindOf(letter byte) uint32 {
	switch letter {
	case 'd':
		return typeDir
	case 'l':
		return typeLink
	case 'b':
		return typeBlock
	case 'c':
		return typeChar
	case 'p':
		return typeFifo
	case 's':
		return typeSocket
	}
	return typeFile
}

// modeOfList parses a mode such as drwxr-sr-x.
func modeOfList(s string) uint32 {
	mode := kindOf(s[0])
	for i := 1; i < 10; i++ {
		ch := s[i]
		if ch != '-' && ch != 'S' && ch != 'T' {
			mode |= 1 << (9 - i)
		}
		if strings.IndexByte("sStT", ch) >= 0 {
			mode |= 0o1000 << ((9 - i) / 3)
		}
	}
	return mode
}

// parseSelf parses the output of id, and the umask.
func (a *answer) parseSelf(s string) error {
	line, mask, ok := strings.Cut(s, "\numask=")
	m, err := strconv.ParseUint(strings.TrimSpace(mask), 8, 32)
	if !ok || err != nil {
		return fmt.Errorf("the host's id answered %q", s)
	}
	a.umask = uint32(m)
	if !strings.HasPrefix(line, "uid=") { // from /proc/self
		n, err := parseInode(line)
		if err != nil {
			return err
		}
		a.self, a.selfGroup = account{n.owner, n.uid}, account{n.group, n.gid}
		return nil
	}
	for _, word := range strings.Fields(line) {
		if rest, ok := strings.CutPrefix(word, "uid="); ok {
			a.self = parseID(rest)
		}
		if rest, ok := strings.CutPrefix(word, "gid="); ok {
			a.selfGroup = parseID(rest)
		}
	}
	return nil
}

// zoneOf parses +0130.
func zoneOf(s string) int {
	n := number(strings.TrimLeft(s, "+-"))
	n = (n/100*60 + n%100) * 60
	if strings.HasPrefix(s, "-") {
		return -n
	}
	return n
}

// parseID parses 1000(name).
func parseID(s string) account {
	id, name, ok := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	if !ok {
		name = id
	}
	return account{name, number(id)}
}

// parseAccount parses a line of passwd or group. Numeric accounts need no line.
func parseAccount(line, desired string) (*account, bool, error) {
	if line == "" {
		id, err := strconv.Atoi(desired)
		if err != nil {
			return nil, true, nil
		}
		return &account{desired, id}, false, nil
	}
	f := strings.Split(line, ":")
	if len(f) < 3 {
		return nil, false, fmt.Errorf("the host answered %q about %s", line, desired)
	}
	return &account{f[0], number(f[2])}, false, nil
}

// parentOf returns the folder of a path.
func parentOf(p string) string { return path.Dir(p) }
