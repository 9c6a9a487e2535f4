package connector

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"kubekey/pkg/shell"
)

// small is the largest content, in bytes, that is sent without asking the host first.
const small = 64 << 10

// putScript receives a file. Its parameters: path, temporary path, sha256 or "", size or
// -1, mode or "", owner, group, "ask" to print "send" before content is read, "backup",
// validation command line or "", "unsafe", and the digest that the existing file must
// have, "absent", or "".
//
// When the digest is not known beforehand it follows the content, as 64 hex digits: a
// truncated input then matches nothing.
//
// The temporary file is created with noclobber, readable by its owner alone, and the exit
// trap removes it however the script exits. The script prints on standard output:
// send | over (no content is needed) | same | backup SUFFIX | sum HEX. It starts as few
// processes as possible, since they are most of the cost of a small file: a persistent
// shell passes the content as kk_input.
const putScript = `kk_receive() {
f=$1 t=$2 want=$3 size=$4 mode=$5 owner=$6 group=$7 ask=$8; shift 8
backup=$1 check=$2 unsafe=$3 guard=$4 known=$want
fail() { code=$1; shift; echo over; echo "$*" >&2; exit "$code"; }
denied() { # FOLDER TEXT: explains why nothing can be written there; root can be denied by more than modes
	why=$( (true >"$1/.kk-${kk_id:-$$}-why") 2>&1) && rm -f "$1/.kk-${kk_id:-$$}-why"
	case $why in
	*[Rr]ead-only*) fail 44 "$2: its file system is read-only" ;;
	*'No space'*) fail 44 "$2: its disk is full" ;;
	*quota*) fail 44 "$2: the quota of the user is used up" ;;
	esac
	if [ -w "$1" ]; then fail 44 "$2"; else fail 41 "$2"; fi
}
attrs() { stat -L -c '%a %u %g' "$@" 2>/dev/null || stat -L -f '%Mp%Lp %u %g' "$@"; }
sumof() { s=$($hash <"$1") && s=${s%% *}; }
sizeis() { [ "$2" -lt 0 ] || [ "$(($(wc -c <"$1")))" -eq "$2" ]; }
own() {
	[ -z "$owner$group" ] || chown "$owner${group:+:$group}" "$1" ||
		fail 41 "cannot change its owner to ${owner:-the same user}${group:+:$group}"
	[ -z "$mode" ] || chmod "$mode" "$1" || fail 41 "cannot set mode $mode"
}
d=${f%/*}; [ "$d" != "$f" ] || d=.; [ -n "$d" ] || d=/
[ -d "$d" ] || fail 40 "folder $d does not exist on the host"
[ ! -d "$f" ] || fail 42 "it is a folder on the host: name a file in it"
# A file that the guard checks at the end need not be checked here too.
late=$guard; [ -z "$backup" ] || late=
same() { # SIZE, less than 0 for any: whether the file has the content already
	[ -f "$f" ] && [ -r "$f" ] && sizeis "$f" "$1" && sumof "$f" && [ "$s" = "$want" ] || return
	own "$f"; echo same; echo "sum $s"
}
if [ -z "$late" ] && [ -n "$want" ] && if [ -n "$ask" ]; then same "$size"; else same -1; fi; then
	[ -n "$ask$kk_input" ] || cat >/dev/null
	exit 0
fi
[ -z "$ask" ] || echo send
umask 077
trap 'rm -f "$t"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 141' PIPE; trap 'exit 143' TERM
inplace=
# true is not a special builtin: a failed redirection does not exit the shell.
set -C
if ! { true >"$t"; } 2>/dev/null; then
	[ -n "$unsafe" ] || denied "$d" "cannot create a file in folder $d"
	t=${TMPDIR:-/tmp}/${t##*/}; inplace=1
	true >"$t" || fail 41 "cannot create a file in ${TMPDIR:-/tmp}"
fi
set +C
if [ -n "$kk_input" ]; then printf %s "$kk_input"; else cat; fi >"$t" ||
	fail 44 "cannot write into folder $d: is the disk full?"
if [ -z "$want" ]; then
	n=$(($(wc -c <"$t")-64))
	[ "$n" -ge 0 ] || fail 43 "the content was truncated in transit"
	want=$(tail -c 64 "$t")
	dd of="$t" bs=1 seek="$n" count=0 2>/dev/null || fail 44 "cannot shorten $t"
fi
# Hashing the file costs less than a tee during the transfer. OpenSSL is several times
# faster, but slower to start.
if [ -n "$ask" -o -z "$known" ] && command -v openssl >/dev/null 2>&1; then hash='openssl dgst -sha256 -r'; fi
sumof "$t"; got=$s
if [ "$got" != "$want" ]; then
	sizeis "$t" "$size" || fail 43 "only $(($(wc -c <"$t"))) of $size bytes were received"
	fail 43 "the sha256 of the received content is $got, expected $want"
fi
if [ -z "$known" ] && same "$n"; then exit 0; fi
if [ -e "$f" ]; then
	if [ -z "$mode" ] || ! { [ -O "$f" ] && [ -O "$t" ] && [ -G "$f" ] && [ -G "$t" ]; } 2>/dev/null; then
		set -- $(attrs "$f" "$t")
	else set --; fi
	[ -n "$mode" ] || mode=$1
	[ "$2:$3" = "$5:$6" ] || chown "$2:$3" "$t" 2>/dev/null || :
	if [ -n "$backup" ]; then
		b=.${kk_id:-$$}.$(date +%Y-%m-%d@%H:%M:%S)~
		cp -p "$f" "$f$b" || denied "$d" "cannot write the backup $f$b"
		echo "backup $b"
	fi
	if [ -e /sys/fs/selinux/enforce ]; then chcon --reference="$f" "$t" 2>/dev/null || :; fi
	new=
else
	[ -n "$mode" ] || mode=0644
	new=1
fi
own "$t"
if [ -n "$check" ]; then
	out=$(eval "$check" 2>&1 </dev/null) || fail 44 "failed to validate: rc:$? error:$out"
fi
case $guard in
'') ;;
absent) [ ! -e "$f" ] || { same -1 && exit 0; } || fail 45 'it was made on the host meanwhile' ;;
*) s=; [ ! -f "$f" ] || sumof "$f"
	[ "$s" = "$guard" ] || { same -1 && exit 0; } || fail 45 'it changed on the host in the meantime' ;;
esac
if [ -n "$inplace" ] || ! mv -f "$t" "$f" 2>/dev/null; then
	[ -n "$unsafe" ] || denied "$d" "cannot rename the new file into place in folder $d"
	cat "$t" >"$f" || fail 41 "cannot write it in place"
# Write permission on a file does not imply permission to set its mode.
	set -- $(attrs "$f")
	[ "$((0$1))" -ne "$((0$mode))" ] || mode=
	own "$f"
else
	trap - EXIT
fi
if [ -n "$new" ] && [ -e /sys/fs/selinux/enforce ]; then restorecon "$f" 2>/dev/null || :; fi
echo "sum $got"
}
`

func put(ctx context.Context, c Connector, f File, src io.Reader) (PutResult, error) {
	if err := checkFile(f); err != nil {
		return PutResult{}, err
	}
	f, src, err := measure(f, src)
	if err != nil {
		return PutResult{}, fmt.Errorf("read the content to send: %w", err)
	}
	ask := f.SHA256 != "" && (f.Size < 0 || f.Size > small)
	cmd, err := putCommand(f, ask)
	if err != nil {
		return PutResult{}, err
	}
	up := newUpload(ctx, f, src, ask)
	defer up.stop()
	cmd.Stdin = up
	if whole, ok := src.(*bytes.Reader); ok && whole.Len() <= small {
		cmd.Stdin = whole // sent together with the script
		if f.Progress != nil {
			defer func() { f.Progress(f.Size, f.Size) }()
		}
	}
	answer := &putAnswer{path: plain(f.Path), send: up.open, stop: up.stop}
	stderr := &tail{max: 4096}
	cmd.Stdout, cmd.Stderr = answer, stderr
	exit, err := c.Run(ctx, cmd)
	switch {
	case err != nil:
		return PutResult{}, err
	case up.failed() != nil:
		return PutResult{}, fmt.Errorf("read the content to send: %w", up.failed())
	case exit.Code != 0:
		return PutResult{}, scriptError(exit, string(stderr.text))
	}
	return answer.result()
}

func checkFile(f File) error {
	if f.Path == "" || strings.HasSuffix(f.Path, "/") {
		return errors.New("the path must be that of a file, not of a folder")
	}
	for _, sum := range []string{f.SHA256, f.IfSHA256} {
		if sum != "" && sum != Absent && !isDigest(sum) {
			return fmt.Errorf("sha256 %.80q is not 64 lower-case hex digits", sum)
		}
	}
	if f.SHA256 == Absent {
		return errors.New("content to send has no digest \"absent\"")
	}
	return nil
}

func isDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// measure determines digest and size where that is cheap: for small content, and for
// content that can be read twice. Otherwise the digest follows the content.
func measure(f File, src io.Reader) (File, io.Reader, error) {
	if f.SHA256 != "" && f.Size > small {
		return f, src, nil
	}
	head, err := io.ReadAll(io.LimitReader(src, small+1))
	if err != nil {
		return f, nil, err
	}
	if len(head) <= small {
		if f.SHA256 == "" {
			f.SHA256 = digest(head)
		}
		if f.Size < 0 {
			f.Size = int64(len(head))
		}
		return f, bytes.NewReader(head), nil
	}
	if again, ok := src.(io.Seeker); ok && f.SHA256 == "" {
		return measureTwice(f, src, again, head)
	}
	return f, io.MultiReader(bytes.NewReader(head), src), nil
}

// measureTwice hashes the rest of src and seeks back to where head began.
func measureTwice(f File, src io.Reader, again io.Seeker, head []byte) (File, io.Reader, error) {
	now, err := again.Seek(0, io.SeekCurrent)
	if err != nil {
		// A pipe is an os.File too, but cannot seek.
		return f, io.MultiReader(bytes.NewReader(head), src), nil
	}
	sum := sha256.New()
	sum.Write(head)
	n, err := io.Copy(sum, src)
	if err != nil {
		return f, nil, err
	}
	if _, err := again.Seek(now-int64(len(head)), io.SeekStart); err != nil {
		return f, nil, err
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	f.Size = n + int64(len(head))
	return f, src, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func putCommand(f File, ask bool) (Command, error) {
	temp, err := tempPath(f.Path)
	if err != nil {
		return Command{}, err
	}
	return Script{Functions: putScript, Library: hashScript, Code: `kk_receive "$@"`, InputVar: true, Args: []string{
		plain(f.Path), plain(temp), f.SHA256, strconv.FormatInt(f.Size, 10), modeText(f), f.Owner, f.Group, flag(ask, "ask"),
		flag(f.Backup, "backup"), shell.Fill(f.Validate, "t"), flag(f.Unsafe, "unsafe"), f.IfSHA256,
	}}.Command(), nil
}

// plain prevents a relative path from being parsed as an option.
func plain(p string) string {
	if strings.HasPrefix(p, "-") {
		return "./" + p
	}
	return p
}

func flag(on bool, name string) string {
	if on {
		return name
	}
	return ""
}

// tempPath returns the path of a temporary file in the folder of p. It does not contain
// the name of p, which may already have the maximum length.
func tempPath(p string) (string, error) {
	b := make([]byte, 8)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("create the name of a temporary file: %w", err)
	}
	name := ".kk-" + hex.EncodeToString(b)
	return p[:strings.LastIndexByte(p, '/')+1] + name, nil
}

// modeText is the mode of f as chmod accepts it, "" for none.
func modeText(f File) string {
	m := f.Mode
	if m == 0 && !f.ModeSet {
		return ""
	}
	bits := uint32(m.Perm())
	for _, special := range []struct {
		mode fs.FileMode
		bit  uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		// A mode written as a number has the bit where Unix has it.
		if m&special.mode != 0 || uint32(m)&special.bit != 0 {
			bits |= special.bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

// upload is the input of putScript: the content once the gate is open, followed by its
// digest if that was not known before.
type upload struct {
	ctx      context.Context
	src      io.Reader
	gate     chan struct{} // closed: content may be sent
	over     chan struct{} // closed: no (more) content is needed
	openOnce sync.Once
	overOnce sync.Once
	mu       sync.Mutex
	err      error
}

func newUpload(ctx context.Context, f File, src io.Reader, ask bool) *upload {
	u := &upload{ctx: ctx, gate: make(chan struct{}), over: make(chan struct{})}
	if f.Progress != nil {
		src = &counted{src: src, total: f.Size, tell: f.Progress}
	}
	if f.SHA256 == "" {
		src = &trailed{src: src, sum: sha256.New()}
	}
	u.src = src
	if !ask {
		u.open()
	}
	return u
}

func (u *upload) open() { u.openOnce.Do(func() { close(u.gate) }) }
func (u *upload) stop() { u.overOnce.Do(func() { close(u.over) }) }

func (u *upload) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// Read waits for the gate. An error of the source ends the input early, which the host
// detects as truncation; the error itself is stored for Put.
func (u *upload) Read(p []byte) (int, error) {
	select {
	case <-u.gate:
	case <-u.over:
		return 0, io.EOF
	case <-u.ctx.Done():
		return 0, u.ctx.Err()
	}
	n, err := u.src.Read(p)
	if err != nil && err != io.EOF {
		u.mu.Lock()
		u.err = err
		u.mu.Unlock()
		err = io.EOF
	}
	return n, err
}

// counted reports progress while it is read.
type counted struct {
	src         io.Reader
	done, total int64
	tell        Progress
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	if n > 0 {
		c.done += int64(n)
		c.tell(c.done, c.total)
	}
	return n, err
}

// trailed appends the hex digest of what it read.
type trailed struct {
	src io.Reader
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	rest []byte // rest of the digest after the source's EOF
	done bool
}

func (t *trailed) Read(p []byte) (int, error) {
	if t.done {
		if len(t.rest) == 0 {
			return 0, io.EOF
		}
		n := copy(p, t.rest)
		t.rest = t.rest[n:]
		return n, nil
	}
	n, err := t.src.Read(p)
	t.sum.Write(p[:n])
	if err == io.EOF {
		t.done, t.rest, err = true, []byte(hex.EncodeToString(t.sum.Sum(nil))), nil
	}
	return n, err
}

// putAnswer parses the output of putScript.
type putAnswer struct {
	path       string
	send, stop func()
	line       []byte
	out        PutResult
	same       bool
}

// maxPutAnswer is the length of the longest answer line: two paths at most.
const maxPutAnswer = 16 << 10

func (a *putAnswer) Write(p []byte) (int, error) {
	a.line = append(a.line, p...)
	for {
		i := bytes.IndexByte(a.line, '\n')
		if i < 0 {
			if len(a.line) > maxPutAnswer {
				a.line = nil // not printed by the script
			}
			return len(p), nil
		}
		a.parseLine(string(a.line[:i]))
		a.line = a.line[i+1:]
	}
}

func (a *putAnswer) parseLine(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "send":
		a.send()
	case "over":
		a.stop()
	case "same":
		a.same = true
		a.stop()
	case "backup":
		a.out.Backup = a.path + rest
	case "sum":
		a.out.SHA256 = rest
	}
}

func (a *putAnswer) result() (PutResult, error) {
	if a.out.SHA256 == "" {
		return PutResult{}, errors.New("the host did not confirm the digest")
	}
	a.out.Changed = !a.same
	return a.out, nil
}
