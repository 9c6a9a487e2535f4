package exec

import (
	"context"
	"strings"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/shell"
)

// shellModule is the module shell.
type shellModule struct {
	Cmd        string `kk:"cmd" doc:"command line to run; may be given as free-form text"`
	Executable string `kk:"executable,path" doc:"absolute path of the shell. Default: /bin/sh of the host"`
	guard
	streams
	outdated
}

const noCommand = "no command given"

// Run implements module.Runner.
func (m *shellModule) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if strings.TrimSpace(m.Cmd) == "" {
		return refused(nil, 256, noCommand), nil
	}
	if c.Check {
		return predict(ctx, c, m.guard, m.Cmd)
	}
	return m.job().run(ctx, c)
}

// Detach implements module.Detacher.
func (m *shellModule) Detach(ctx context.Context, c *module.Call, id string,
	limit time.Duration) (module.Result, error) {
	if strings.TrimSpace(m.Cmd) == "" {
		return refused(nil, 256, noCommand), nil
	}
	return m.job().detach(ctx, c, id, limit)
}

func (m *shellModule) job() job {
	body := m.Cmd
	if m.Executable != "" {
		body = "exec " + Expandable(m.Executable, false) + " -c " + shell.Quote(m.Cmd)
	}
	return newJob(m.guard, m.streams, m.Cmd, body, m.Executable)
}

// raw is the module raw.
type raw struct {
	Cmd        string `kk:"cmd,required" doc:"command line to run; may be given as free-form text"`
	Executable string `kk:"executable,path" doc:"absolute path of the shell to run it"`
}

// Run implements module.Runner.
func (m *raw) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if c.Check {
		return module.Result{Skipped: true}, nil
	}
	return m.job().run(ctx, c)
}

// Detach implements module.Detacher.
func (m *raw) Detach(ctx context.Context, c *module.Call, id string, limit time.Duration) (module.Result, error) {
	return m.job().detach(ctx, c, id, limit)
}

func (m *raw) job() job {
	line := m.Cmd
	if m.Executable != "" {
		line = shell.Join(m.Executable, "-c", m.Cmd)
	}
	return job{ending: ending{Kind: ofRaw}, line: line}
}
