package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// settings reads the keywords and variables that say how a task reaches a
// host. The first error sticks.
type settings struct {
	v     *vars.View
	attrs *project.Attrs
	task  *vars.View // evaluates the keywords: the variables of the task's host
	err   error
}

// variable returns the first of the variables that is set.
func (s *settings) variable(names ...string) (any, bool) {
	for _, n := range names {
		v, ok, err := s.v.Lookup(n)
		if err == nil && ok {
			v, err = value.Force(v)
		}
		if err != nil {
			s.fail(fmt.Errorf("variable %s: %w", n, err))
			return nil, false
		}
		if u, undefined := v.(*value.Undefined); undefined {
			s.fail(fmt.Errorf("variable %s: %w", n, u))
			return nil, false
		}
		if ok && v != nil && v != "" {
			return v, true
		}
	}
	return nil, false
}

func (s *settings) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// keyword returns the value of a keyword.
func (s *settings) keyword(a project.Attr) (any, bool) {
	d := s.attrs.Value[a]
	if d == nil {
		return nil, false
	}
	v, err := d.Value(s.task.Context(), s.task)
	if err != nil {
		s.fail(err)
		return nil, false
	}
	return v, v != nil && v != ""
}

// text is a variable, else a keyword, else the default.
func (s *settings) text(a project.Attr, def string, names ...string) string {
	if v, ok := s.variable(names...); ok {
		return value.Str(v)
	}
	if a >= 0 {
		if v, ok := s.keyword(a); ok {
			return value.Str(v)
		}
	}
	return def
}

const noKeyword project.Attr = -1

func (s *settings) number(a project.Attr, names ...string) int {
	text := s.text(a, "", names...)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		s.fail(fmt.Errorf("%s must be a number, not %q", names[0], text))
	}
	return n
}

// target is how the task reaches a host.
func (e *Engine) target(host string, s *settings) Target {
	d := e.Defaults
	local := isLocal(host) && !e.Inventory.Has(host)
	t := Target{Host: host, Address: s.text(noKeyword, host, "ansible_host", "ansible_ssh_host")}
	t.Connection = s.text(project.Connection, d.Connection, "ansible_connection")
	if t.Connection == "" {
		t.Connection = "ssh"
		if local {
			t.Connection = "local"
		}
	}
	if t.Connection == "local" {
		return Target{Host: host, Connection: "local"}
	}
	t.Port = s.number(project.Port, "ansible_port", "ansible_ssh_port")
	t.User = s.text(project.RemoteUser, d.User, "ansible_user", "ansible_ssh_user")
	t.KeyFile = s.text(noKeyword, d.KeyFile, "ansible_ssh_private_key_file", "ansible_private_key_file")
	t.Password = e.secret(s, d.Password, "ansible_password", "ansible_ssh_password", "ansible_ssh_pass")
	t.Passphrase = e.secret(s, redact.Secret{}, "ansible_private_key_passphrase", "ansible_ssh_private_key_passphrase")
	t.KeyContent = e.secret(s, redact.Secret{}, "ansible_ssh_private_key", "ansible_private_key")
	t.ProxyJump = s.text(noKeyword, "", "ansible_ssh_proxy_jump")
	t.SSHArgs = strings.TrimSpace(s.text(noKeyword, "", "ansible_ssh_common_args") + " " + s.text(noKeyword, "", "ansible_ssh_extra_args"))
	t.HostKeyChecking = s.text(noKeyword, "", "ansible_host_key_checking", "ansible_ssh_host_key_checking")
	if t.Timeout = d.Timeout; t.Timeout == 0 {
		t.Timeout = time.Duration(s.number(noKeyword, "ansible_timeout", "ansible_ssh_timeout")) * time.Second
	}
	return t
}

func isLocal(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

func (e *Engine) secret(s *settings, def redact.Secret, names ...string) redact.Secret {
	v, ok := s.variable(names...)
	if !ok {
		return def
	}
	text := value.Str(v)
	e.Redact.Add(text)
	return redact.NewSecret(text)
}

// become is how the task becomes another user; ok is false when it does not.
func (e *Engine) become(s *settings) (connector.BecomeOptions, bool) {
	d := e.Defaults
	wanted := d.Become
	if v, ok := s.variable("ansible_become"); ok {
		wanted = truth(v)
	} else if v, ok := s.keyword(project.Become); ok {
		wanted = truth(v)
	}
	if !wanted {
		return connector.BecomeOptions{}, false
	}
	o := connector.BecomeOptions{
		Method: s.text(project.BecomeMethod, d.BecomeMethod, "ansible_become_method"),
		User:   s.text(project.BecomeUser, d.BecomeUser, "ansible_become_user"),
		Flags:  s.text(project.BecomeFlags, "", "ansible_become_flags"),
		Exe:    s.text(project.BecomeExe, "", "ansible_become_exe"),
	}
	o.Password = e.secret(s, d.BecomePass, "ansible_become_password", "ansible_become_pass")
	return o, true
}

// truth is a bool keyword's value: bools and their words.
func truth(v any) bool {
	switch v := v.(type) {
	case string:
		switch v {
		case "", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0", "n", "N", "f", "F":
			return false
		}
		return true
	}
	return value.Truth(v)
}

// connection returns the connection to a target, made once for the run.
func (e *Engine) connection(ctx context.Context, t Target) (connector.Connector, error) {
	e.connMu.Lock()
	c := e.conns[t]
	e.connMu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := e.Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	e.connMu.Lock()
	defer e.connMu.Unlock()
	if other := e.conns[t]; other != nil {
		_ = c.Close()
		return other, nil
	}
	e.conns[t] = c
	return c, nil
}

// drop closes the connection to a target; the next task makes a new one.
func (e *Engine) drop(t Target) {
	e.connMu.Lock()
	c := e.conns[t]
	delete(e.conns, t)
	e.connMu.Unlock()
	if c != nil {
		_ = c.Close()
	}
}

func (e *Engine) closeAll() {
	e.connMu.Lock()
	defer e.connMu.Unlock()
	for t, c := range e.conns {
		_ = c.Close()
		delete(e.conns, t)
	}
}

// Connector connects to the host of a view, as a task without keywords would.
// done closes the connection.
func (e *Engine) Connector(ctx context.Context, v *vars.View) (c connector.Connector, done func(), err error) {
	s := &settings{v: v, attrs: &project.Attrs{}, task: v}
	t := e.target(v.Host(), s)
	become, wanted := e.become(s)
	if s.err != nil {
		return nil, nil, s.err
	}
	if c, err = e.connection(ctx, t); err != nil {
		return nil, nil, err
	}
	if wanted {
		c = connector.Become(c, become)
	}
	return c, e.closeAll, nil
}
