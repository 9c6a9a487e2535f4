package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

type pause struct {
	Length  *time.Duration `kk:"seconds" doc:"seconds to pause"`
	Minutes *float64       `kk:"minutes" doc:"minutes to pause, instead of seconds"`
	Prompt  string         `kk:"prompt" doc:"prompt to print; without seconds and minutes the play waits for an answer"`
	Echo    bool           `kk:"echo" default:"yes" doc:"show the typed text"`
}

// Rules implements schema.Ruled.
func (*pause) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("minutes", "seconds"),
	}
}

// Run implements module.Runner.
func (m *pause) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	start := c.Now()
	var input string
	var r module.Result
	var err error
	if wait, timed := m.duration(); timed {
		err = module.Sleep(ctx, wait)
	} else {
		input, r.Warnings, err = m.ask(ctx, c)
	}
	if err != nil {
		return module.Result{}, err
	}
	end := c.Now()
	took := end.Sub(start)
	paused := fmt.Sprintf("Paused for %s seconds", value.Float(float64(took.Round(10*time.Millisecond))/1e9))
	if m.Minutes != nil {
		paused = fmt.Sprintf("Paused for %s minutes", value.Float(float64(took.Round(600*time.Millisecond))/6e10))
	}
	const layout = "2006-01-02 15:04:05.000000"
	r.Data = value.NewDict("user_input", input, "stdout", paused, "stderr", "", "rc", 0, "echo", m.Echo,
		"start", start.Format(layout), "stop", end.Format(layout), "delta", int(took.Seconds()))
	return r, nil
}

func (m *pause) duration() (time.Duration, bool) {
	switch {
	case m.Length != nil:
		return *m.Length, true
	case m.Minutes != nil:
		return time.Duration(*m.Minutes * float64(time.Minute)), true
	}
	return 0, false
}

func (m *pause) ask(ctx context.Context, c *module.Call) (input string, warnings []string, err error) {
	prompt := m.Prompt
	if prompt == "" {
		prompt = "Press enter to continue, Ctrl+C to interrupt"
	}
	if c.Ask != nil {
		answer, ok, err := c.Ask(ctx, prompt, m.Echo)
		if err != nil || ok {
			return answer, nil, err
		}
	}
	return "", []string{"Not waiting for response to prompt as stdin is not interactive"}, nil
}

type ping struct {
	Data string `kk:"data" default:"pong" doc:"value to return as ping"`
}

// Run implements module.Runner.
func (m *ping) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if _, err := reach(ctx, c, "exit 0"); err != nil {
		return module.Result{}, err
	}
	return module.Result{Data: value.NewDict("ping", m.Data)}, nil
}

// reach runs a read-only line and returns its output; a line that fails is an error.
func reach(ctx context.Context, c *module.Call, line string) (string, error) {
	out, err := connector.Collect(ctx, c.Conn, connector.Command{Line: line, Probe: true}, connector.MaxAnswer)
	if err != nil {
		return "", err
	}
	text := string(out.Stdout)
	if out.Code != 0 {
		return "", fmt.Errorf("%s: exited with status %d: %s", line, out.Code, strings.TrimSpace(out.Stderr+text))
	}
	return strings.TrimSpace(text), nil
}

type waitForConnection struct {
	Timeout        time.Duration `kk:"timeout" default:"600" doc:"how long to keep trying"`
	Delay          time.Duration `kk:"delay" default:"0" doc:"how long to wait before the first attempt"`
	Sleep          time.Duration `kk:"sleep" default:"1" doc:"how long to wait between attempts"`
	ConnectTimeout time.Duration `kk:"connect_timeout" default:"5" doc:"timeout of a single attempt"`
}

// Run implements module.Runner.
func (m *waitForConnection) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	start := c.Now()
	err := module.Sleep(ctx, m.Delay)
	if err == nil {
		err = poll{m.Timeout, m.Sleep, m.ConnectTimeout}.until(ctx, c, func(ctx context.Context) error {
			_, err := reach(ctx, c, "exit 0")
			return err
		})
	}
	elapsed := value.NewDict("elapsed", int(c.Now().Sub(start).Seconds()))
	var late *timeoutError
	if errors.As(err, &late) {
		return module.Result{Failed: true, Msg: "timed out waiting for the connection: " + late.last.Error(),
			Data: elapsed}, nil
	}
	return module.Result{Data: elapsed}, err
}

// poll repeats an attempt on a host that may be unreachable.
type poll struct{ timeout, pause, each time.Duration }

// timeoutError means that no attempt succeeded in time.
type timeoutError struct{ last error }

func (e *timeoutError) Error() string { return "timed out: " + e.last.Error() }

// until repeats try, with a fresh connection after a failure, until it succeeds or the
// timeout expires. At least one attempt is made.
func (p poll) until(ctx context.Context, c *module.Call, try func(ctx context.Context) error) error {
	deadline, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	for {
		err := p.once(ctx, try)
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if module.Sleep(deadline, max(p.pause, 10*time.Millisecond)) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &timeoutError{err}
		}
		if c.Reset != nil && !errors.Is(err, errSameBoot) {
			// The next attempt detects a host that is still unreachable.
			_ = p.once(ctx, c.Reset)
		}
	}
}

func (p poll) once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.each, time.Second))
	defer cancel()
	return f(ctx)
}

type reboot struct {
	Timeout        time.Duration `kk:"reboot_timeout" default:"600" doc:"how long to wait for the host to come up, and again for test_command to succeed"`
	PreDelay       time.Duration `kk:"pre_reboot_delay" default:"0" doc:"how long the host waits before the reboot"`
	PostDelay      time.Duration `kk:"post_reboot_delay" default:"0" doc:"how long to wait after the reboot command before the first attempt"`
	ConnectTimeout time.Duration `kk:"connect_timeout" default:"5" doc:"timeout of a single attempt"`
	TestCommand    string        `kk:"test_command" default:"whoami" doc:"command that succeeds when the host is up again"`
	BootCommand    string        `kk:"boot_time_command" default:"cat /proc/sys/kernel/random/boot_id" doc:"command whose output differs after a reboot"`
	Command        string        `kk:"reboot_command" doc:"command to reboot. Default: systemctl, shutdown or reboot, the first that exists"`
	Msg            string        `kk:"msg" default:"Reboot initiated by kk" doc:"message to logged-in users of the host"`
	SearchPaths    []string      `kk:"search_paths,path" default:"/sbin,/bin,/usr/sbin,/usr/bin,/usr/local/sbin" doc:"folders to search for commands"`
}

// Run implements module.Runner.
func (m *reboot) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if v, _, err := c.Scope.Lookup("ansible_connection"); err == nil && v == "local" {
		return module.Result{Failed: true, Msg: "Running reboot with local connection would reboot the control node."}, nil
	}
	start := c.Now()
	boot, err := reach(ctx, c, m.BootCommand)
	if err != nil {
		return module.Result{}, fmt.Errorf("get the boot time of the host: %w", err)
	}
	if msg, err := m.goDown(ctx, c); err != nil || msg != "" {
		return module.Result{Failed: true, Msg: msg}, err
	}
	err = module.Sleep(ctx, m.PreDelay+m.PostDelay)
	if err == nil {
		err = m.waitUp(ctx, c, boot)
	}
	data := value.NewDict("elapsed", int(c.Now().Sub(start).Seconds()), "rebooted", err == nil)
	var late *timeoutError
	if errors.As(err, &late) {
		return module.Result{Failed: true, Changed: true, Data: data,
			Msg: "Timed out waiting for the host to come back: " + late.last.Error()}, nil
	}
	return module.Result{Changed: true, Data: data}, err
}

// goDown starts the reboot in the background, so that the connection closes in order.
// msg is why it did not start.
func (m *reboot) goDown(ctx context.Context, c *module.Call) (msg string, err error) {
	command := m.Command
	if command == "" {
		command = "wall " + shell.Quote(m.Msg) + " 2>/dev/null; systemctl reboot || shutdown -r now || reboot"
	}
	line := "PATH=$PATH:" + shell.Quote(strings.Join(m.SearchPaths, ":")) + "; export PATH\n" +
		"nohup " + shell.Script(fmt.Sprintf("sleep %d; ", int(m.PreDelay.Seconds())+1)+command) +
		" >/dev/null 2>&1 </dev/null &"
	out, err := connector.Collect(ctx, c.Conn, connector.Command{Line: line}, connector.MaxAnswer)
	var lost *connector.UnreachableError
	switch {
	case errors.As(err, &lost): // it went down at once
		return "", nil
	case err == nil && out.Code != 0:
		return fmt.Sprintf("Reboot command failed. Error was: '%s'", strings.TrimSpace(out.Stderr)), nil
	}
	return "", err
}

var errSameBoot = errors.New("the host has not gone down yet")

func (m *reboot) waitUp(ctx context.Context, c *module.Call, boot string) error {
	p := poll{m.Timeout, time.Second, m.ConnectTimeout}
	err := p.until(ctx, c, func(ctx context.Context) error {
		now, err := reach(ctx, c, m.BootCommand)
		if err == nil && now == boot {
			return errSameBoot
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.until(ctx, c, func(ctx context.Context) error {
		_, err := reach(ctx, c, m.TestCommand)
		return err
	})
}
