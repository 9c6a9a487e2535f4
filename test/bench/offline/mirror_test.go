package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kubekey/pkg/relay"
	"kubekey/test/upstream"
)

// mirrorDir makes the test binary the mirror, which writes its configs into this folder.
const mirrorDir = "KK_BENCH_MIRROR"

// gigabit is the rate of the slower of the mirror's two addresses, in bytes per second: 1 Gbit/s.
const gigabit = 125_000_000

// mirror is the lab's mirror, as a process of its own: Kubernetes and what belongs to it, built on this machine.
type mirror struct {
	links map[string]link
}

// link is a way to the mirror.
type link struct {
	address string // HOST:PORT
	config  string // path
}

// startMirror starts the mirror until the benchmark ends. The first time it builds Kubernetes, half an hour.
func (b *bench) startMirror() mirror {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mirrorDir+"="+b.dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	b.must(err)
	out, err := cmd.StdoutPipe()
	b.must(err)
	b.must(cmd.Start())
	b.Cleanup(func() {
		_ = in.Close() // it ends with that
		_ = cmd.Wait()
	})
	var fast, slow string
	if _, err := fmt.Fscanln(out, &fast, &slow); err != nil {
		b.Fatalf("the mirror does not start: %v", err)
	}
	return mirror{map[string]link{"loopback": {fast, filepath.Join(b.dir, "fast/config.yaml")},
		"1Gbit": {slow, filepath.Join(b.dir, "slow/config.yaml")}}}
}

// serveMirror serves the mirror at two addresses until standard input ends.
func serveMirror(dir string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	u, err := upstream.Build(ctx, "../../upstream", os.Stderr)
	if err != nil {
		return err
	}
	m, err := u.Serve(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	slow, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, m.Close())
	}
	l := &slowLink{to: m.Address, limit: relay.NewLimiter(gigabit)}
	go l.serve(ctx, slow) // ends when the listener is closed
	fast, limited := filepath.Join(dir, "fast"), filepath.Join(dir, "slow")
	if err := errors.Join(os.Mkdir(fast, 0o755), os.Mkdir(limited, 0o755)); err != nil {
		return err
	}
	if _, err := m.WriteConfig(fast); err != nil {
		return err
	}
	for _, name := range []string{"config.yaml", "overlay.yaml"} {
		text, err := os.ReadFile(filepath.Join(fast, name))
		if err != nil {
			return err
		}
		moved := strings.NewReplacer(m.Address, slow.Addr().String(), fast, limited).Replace(string(text))
		if err := os.WriteFile(filepath.Join(limited, name), []byte(moved), 0o600); err != nil {
			return err
		}
	}
	fmt.Println(m.Address, slow.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, slow.Close(), m.Close())
}

// slowLink passes connections on; what comes back shares one rate.
type slowLink struct {
	to    string
	limit *relay.Limiter
}

func (l *slowLink) serve(ctx context.Context, listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go l.pass(ctx, c)
	}
}

func (l *slowLink) pass(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }() // the other side sees it
	up, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(up, c)
		_ = up.(*net.TCPConn).CloseWrite()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := up.Read(buffer)
		if n > 0 && (l.limit.Wait(ctx, n) != nil || write(c, buffer[:n]) != nil) || err != nil {
			_ = up.Close()
			return
		}
	}
}

func write(w io.Writer, p []byte) error {
	_, err := w.Write(p)
	return err
}
