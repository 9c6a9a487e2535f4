package file

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// openRemote lists an archive on the host.
func (u *unpacking) openRemote(ctx context.Context) (there bool, err error) {
	s := script{probe: true}
	word, _ := hostWord(u.Src)
	if u.Creates != "" {
		creates, _ := hostWord(u.Creates)
		s.line("[ ! -e " + creates + " ] || exit 0")
	}
	s.line(asked{flags: "n", path: u.Src}.code())
	s.line("if [ -f " + word + " ]; then kk_kind=$(kk_packing " + word + `); printf 'X%s\0Y' "$kk_kind"`)
	s.line(`kk_do "list the archive" kk_list "$kk_kind" ` + word + `; printf '\0'; fi`)
	out, err := s.run(ctx, u.c)
	if err != nil {
		return false, err
	}
	if len(out) == 0 {
		return true, nil
	}
	var ans answer
	if err := ans.parse(out, "", "", 1); err != nil {
		return false, err
	}
	e := ans.entries[0]
	switch {
	case e.followed() == nil:
		return false, fmt.Errorf("source '%s' does not exist on the host", e.path)
	case ans.packing == "":
		return false, fmt.Errorf("source '%s' is not a file", e.path)
	}
	u.src = e.path
	u.packing.handler = ans.packing
	for _, p := range packings() {
		if p.handler == ans.packing {
			u.packing = p
		}
	}
	return false, u.readListing(ans.listing)
}

func (u *unpacking) readListing(text string) error {
	parse := parseTarLine
	if u.packing.isZip() {
		parse = parseZipLine
		if u.strip > 0 {
			return errors.New("extra_opts: a zip archive of the host cannot be stripped")
		}
	}
	seen := 0
	for _, line := range strings.Split(text, "\n") {
		m, ok := parse(line)
		if !ok {
			continue
		}
		seen++
		if err := u.add(m); err != nil {
			return err
		}
	}
	if seen == 0 && strings.TrimSpace(text) != "" {
		return fmt.Errorf("the host's listing of %s cannot be read: %.80q", u.src, text)
	}
	return nil
}

// tarLine matches a line of tar -tv: mode, owner, size, date, time, name.
var tarLine = regexp.MustCompile(`^([-dlhbcps]\S{9})\S* +\S+/\S+ +(\d+) +(\d{4}-\d\d-\d\d) (\d\d:\d\d(?::\d\d)?)(?:\.\d+)? (.*)$`)

func parseTarLine(line string) (member, bool) {
	f := tarLine.FindStringSubmatch(line)
	if f == nil {
		return member{}, false
	}
	layout := time.DateTime
	if len(f[4]) == 5 {
		layout = "2006-01-02 15:04"
	}
	at, err := time.Parse(layout, f[3]+" "+f[4])
	if err != nil {
		return member{}, false
	}
	m := member{mode: modeOfList(f[1]) & 0o7777, mtime: at.Unix(), from: f[5], kind: typeFile}
	m.size, _ = strconv.ParseInt(f[2], 10, 64)
	name, link, hard := strings.Cut(f[5], " link to ")
	switch {
	case f[1][0] == 'd':
		m.kind = typeDir
	case f[1][0] == 'l':
		m.kind = typeLink
		m.from, m.link, _ = strings.Cut(f[5], " -> ")
		m.link = unescape(m.link)
	case f[1][0] == 'h' || hard:
		m.from, m.link, m.hard = name, link, true
	case f[1][0] != '-':
		return m, false
	}
	m.from = unescape(m.from)
	return m, true
}

// unescape decodes GNU tar's --quoting-style=escape.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if n, err := strconv.ParseUint(s[i:min(i+3, len(s))], 8, 8); err == nil && i+3 <= len(s) {
			b.WriteByte(byte(n))
			i += 2
			continue
		}
		special := strings.IndexByte("abfnrtv", s[i])
		if special >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v"[special])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// zipLine matches a line of unzip -l: size, date, time, name.
var zipLine = regexp.MustCompile(`^ *(\d+) +\d[-\d]+ +\d\d:\d\d(?::\d\d)? +(.+)$`)

func parseZipLine(line string) (member, bool) {
	f := zipLine.FindStringSubmatch(line)
	if f == nil {
		return member{}, false
	}
	m := member{from: f[2], kind: typeFile, mode: 0o644}
	m.size, _ = strconv.ParseInt(f[1], 10, 64)
	if strings.HasSuffix(m.from, "/") {
		m.kind, m.mode = typeDir, 0o755
	}
	return m, true
}

// extractRemote extracts an archive on the host.
func (u *unpacking) extractRemote(ctx context.Context, results *value.Dict) error {
	var s script
	cmd, line := u.remoteCommand()
	s.line("( " + line + " ) || exit")
	results.Set("cmd", value.Of(cmd))
	out, err := s.run(ctx, u.c)
	if err != nil {
		return err
	}
	results.Set("out", string(out))
	results.Set("err", s.said)
	return nil
}

func (u *unpacking) remoteCommand() (cmd []string, line string) {
	names := u.named()
	what := "kk_do " + shell.Quote("unpack into "+u.dest.path) + " "
	if u.packing.isZip() {
		cmd = append([]string{"unzip", "-o", "-q", u.src}, names...)
		cmd = append(cmd, "-d", u.dest.path)
		return cmd, what + shell.Join(cmd...)
	}
	cmd = append([]string{"tar", "-x"}, u.options...)
	if u.strip > 0 {
		cmd = append(cmd, "--strip-components="+strconv.Itoa(u.strip))
	}
	cmd = append(append(cmd, "-f", "-", "-C", u.dest.path), names...)
	if len(u.packing.unpack) == 0 {
		return cmd, what + shell.Join(cmd...) + " <" + shell.Quote(u.src)
	}
	return cmd, shell.Join(u.packing.unpack...) + " <" + shell.Quote(u.src) + " | " + what + shell.Join(cmd...)
}

// named returns the members to extract if only some are needed. It only lists files and links, because the name of
// a folder includes everything in it.
func (u *unpacking) named() []string {
	if len(u.Include)+len(u.Exclude) == 0 && !u.KeepNewer {
		return nil
	}
	var names []string
	for _, m := range u.changed {
		if m.kind != typeDir {
			names = append(names, m.from)
		}
	}
	return names
}
