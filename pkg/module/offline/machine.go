package offline

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/shell"
)

//go:embed packages.sh
var packagesScript string

// machine is where a package manager resolves.
type machine struct {
	m    *packages
	conn connector.Connector
	dir  string // directory of the empty root; "" until it is made
	keep bool   // dir is kept for the next run
}

// run runs a script of a package manager.
func (m *machine) run(ctx context.Context, code string, words []string) (hostscript.Answer, error) {
	s := hostscript.New(packagesScript, code).Set("dir", m.dir).Set("arch", m.m.Arch).Set("distribution", m.m.Distribution)
	s.Flag("remote", m.m.Remote)
	for _, o := range []struct {
		prefix string
		origin
	}{{"", m.m.Sources}, {"known_", m.m.Defaults}} {
		s.Set(o.prefix+"sources", strings.Join(o.Sources, "\n")).Set(o.prefix+"keyring", o.Keyring)
	}
	if !m.m.Proxy.IsZero() && !m.m.Remote {
		s.Env = map[string]string{"kk_proxy": m.m.Proxy.Reveal()}
	}
	s.Words, s.Large = words, true
	answer, err := s.Run(ctx, m.conn, false)
	if dir := answer.Get("dir"); dir != "" {
		m.dir = dir
	}
	return answer, err
}

// closing is how long a host may take to remove the files of a run.
const closing = time.Minute

// close removes a temporary root.
func (m *machine) close() error {
	if m.keep || m.dir == "" {
		return nil
	}
	// The run may have been cancelled: the host is left without our files all the same.
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	exit, err := m.conn.Run(ctx, connector.Command{Line: shell.Join("rm", "-rf", "--", m.dir)})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("remove %s from the host: exit code %d", m.dir, exit.Code)
	}
	return err
}
