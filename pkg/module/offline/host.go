package offline

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the script
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/relay"
	"kubekey/pkg/shell"
)

//go:embed distribute.sh
var distributeScript string

// script runs a part of the script on a host, and returns what it printed.
func script(ctx context.Context, conn connector.Connector, args ...string) (string, error) {
	out, said := &bounded{}, &bounded{}
	exit, err := conn.Run(ctx, connector.Command{Line: shell.Script(distributeScript, args...), Stdout: out, Stderr: said})
	switch {
	case err != nil:
		return "", err
	case exit.Code != 0:
		return "", &scriptError{exit.Code, said.String()}
	}
	return out.String(), nil
}

type scriptError struct {
	code int
	said string
}

func (e *scriptError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("exit code %d: %s", e.code, strings.TrimSpace(e.said)))
}

// bounded keeps the first bytes written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	const most = 4 << 10
	if room := most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// attend prepares a host, and returns when its program has exited.
func (d *distribution) attend(ctx context.Context, t *target) {
	announced := false
	announce := func() {
		if !announced {
			announced = true
			close(t.ready)
		}
	}
	defer announce()
	d.slots <- struct{}{}
	held := true
	release := func() {
		if held {
			held = false
			<-d.slots
		}
	}
	defer release()
	if t.conn, t.err = d.call.Connect(ctx, t.Name); t.err != nil {
		return
	}
	var tools string
	if tools, t.err = script(ctx, t.conn, d.Dir, "make"); t.err != nil {
		return
	}
	why := d.attendProgram(ctx, t, func() { announce(); release() })
	if announced || ctx.Err() != nil {
		return
	}
	if said := (*scriptError)(nil); errors.As(why, &said) && said.code == relay.ExitBusy {
		t.err = why // it may remove the folder
		return
	}
	if d.relays {
		d.warn(fmt.Sprintf("%s is served by the control node: %s", t.Name, why))
	}
	t.node = &plainNode{conn: t.conn, dir: d.Dir, stock: d.stock, rate: d.rate,
		zstd: strings.TrimSpace(tools) == "zstd"}
}

// attendProgram runs the program on a host until it exits; ready is called when it serves. The error is why it could
// not run.
func (d *distribution) attendProgram(ctx context.Context, t *target, ready func()) error {
	p, ok := d.program(t.Arch)
	if !ok {
		return fmt.Errorf("this kk was built without kk-relay for %s", t.Arch)
	}
	suffix := make([]byte, 8)
	_, _ = rand.Read(suffix) // never fails
	file := path.Join(d.Dir, relay.ProgramPrefix+hex.EncodeToString(suffix))
	if _, err := connector.Put(ctx, t.conn, connector.File{Path: file + ".gz", Mode: 0o600, Size: int64(len(p.Gzip)),
		SHA256: p.SHA256}, bytes.NewReader(p.Gzip)); err != nil {
		return err
	}
	in, toProgram := io.Pipe()
	fromProgram, out := io.Pipe()
	said := &bounded{}
	session := relay.NewSession(t.Name, toProgram, fromProgram, d.stock.open, d.rate)
	defer func() { _ = session.Close() }()
	var exit connector.Exit
	var ended, started error
	running, kill := context.WithCancel(ctx)
	defer kill()
	exited := make(chan struct{})
	module.Parallel(3, 3, func(i int) {
		switch i {
		case 0:
			defer close(exited)
			defer func() {
				_ = out.Close() // the session ends
				_ = in.Close()
			}()
			exit, ended = t.conn.Run(running, connector.Command{Line: shell.Script(distributeScript, d.Dir, "run", file),
				Stdin: in, Stdout: out, Stderr: said})
			return
		case 1:
			<-session.Ended()
			select {
			case <-exited:
			case <-time.After(exitTime):
				kill()
			}
			return
		}
		started = errors.New("it was not started") // if it panics
		defer func() {
			if started != nil {
				_ = session.Close() // the program exits
			}
		}()
		if started = d.startProgram(ctx, t, session); started == nil {
			t.node = session
			ready()
		}
	})
	switch {
	case started == nil:
		return nil
	case ended != nil:
		return ended
	case exit.Code != 0:
		return &scriptError{exit.Code, said.String()}
	}
	return started
}

// How long the program may take to start, and to exit when its input is closed.
const (
	startTime = time.Minute
	exitTime  = 10 * time.Second
)

func (d *distribution) startProgram(ctx context.Context, t *target, session *relay.Session) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	name := fmt.Sprintf("n%d.kk-relay", t.number)
	cert, key, err := d.ca.Issue(name)
	if err != nil {
		return err
	}
	start := relay.Start{Port: d.Port, Rate: int64(d.Rate), Now: d.call.Now(), CA: d.ca.PEM(), Cert: cert, Key: key}
	if ip, err := netip.ParseAddr(t.Address); err == nil && d.relays {
		start.Address = ip.String()
	}
	return session.Start(ctx, name, start)
}
