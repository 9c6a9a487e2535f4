package connector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
)

// getScript sends file $1 on standard output, with its size first and its digest last on
// standard error. A file that grows while it is read (a log) is sent up to its initial
// size; one without a size (/proc) is sent to its end.
const getScript = `
f=$1
fail() { code=$1; shift; echo "$*" >&2; exit "$code"; }
[ -e "$f" ] || { [ -L "$f" ] && fail 40 'it is a link to nothing'; fail 40 'no such file on the host'; }
[ ! -d "$f" ] || fail 42 'it is a folder on the host'
[ -r "$f" ] || fail 41 'the user may not read it'
n=$(($(stat -L -c %s "$f" 2>/dev/null || stat -L -f %z "$f")))
echo "size $n" >&2
part() { if [ "$n" -gt 0 ]; then head -c "$n" "$f"; else cat "$f"; fi; }
part || fail 44 'cannot read it'
s=$(part | $hash)
echo "sum ${s%% *}" >&2
`

func get(ctx context.Context, c Connector, path string, dst io.Writer, p Progress) (string, error) {
	down := &download{dst: dst, sum: sha256.New(), tell: p}
	down.total.Store(-1)
	stderr := &getNotes{total: &down.total, tail: tail{max: 4096}}
	cmd := Script{Library: hashScript + getScript, Args: []string{plain(path)}}.Command()
	cmd.Stdout, cmd.Stderr, cmd.Probe = down, stderr, true
	exit, err := c.Run(ctx, cmd)
	switch {
	case down.err != nil:
		return "", fmt.Errorf("write what was read: %w", down.err)
	case err != nil:
		return "", err
	case exit.Code != 0:
		return "", scriptError(exit, withoutSize(string(stderr.text)))
	}
	got := hex.EncodeToString(down.sum.Sum(nil))
	if want := lastSum(string(stderr.text)); want != got {
		return "", fmt.Errorf("the sha256 of the received content is %s, the host's is %s: "+
			"the file changed while it was read, try again", got, want)
	}
	return got, nil
}

// download writes, hashes and counts. An error of dst is stored for Get, because a
// transport need not report it.
type download struct {
	dst   io.Writer
	sum   hash.Hash
	done  int64
	total atomic.Int64 // set from standard error, by another goroutine
	tell  Progress
	err   error
}

func (d *download) Write(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.dst.Write(p)
	d.sum.Write(p[:n])
	d.done += int64(n)
	if d.err = err; err == nil && d.tell != nil {
		d.tell(d.done, d.total.Load())
	}
	return n, err
}

// getNotes is the standard error of getScript; the size is on its first line.
type getNotes struct {
	total *atomic.Int64
	seen  bool
	tail
}

func (g *getNotes) Write(p []byte) (int, error) {
	n, err := g.tail.Write(p)
	first, _, whole := strings.Cut(string(g.text), "\n")
	if g.seen || !whole {
		return n, err
	}
	g.seen = true
	if size, bad := strconv.ParseInt(strings.TrimPrefix(first, "size "), 10, 64); bad == nil && size > 0 {
		g.total.Store(size)
	}
	return n, err
}

func withoutSize(stderr string) string {
	if !strings.HasPrefix(stderr, "size ") {
		return stderr
	}
	_, rest, _ := strings.Cut(stderr, "\n")
	return rest
}

func lastSum(stderr string) string {
	i := strings.LastIndex(stderr, "sum ")
	if i < 0 {
		return "unknown"
	}
	return strings.TrimSpace(stderr[i+len("sum "):])
}
