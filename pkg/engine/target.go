package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// settings reads the keywords and variables that say how a task reaches a
// host. The first error sticks.
type settings struct {
	e     *Engine
	v     *vars.View
	attrs *project.Attrs
	task  *vars.View // evaluates the keywords: the variables of the task's host
	set   uint64     // which of the connection variables are set at all
	err   error
}

func (e *Engine) settings(v *vars.View, attrs *project.Attrs, task *vars.View) *settings {
	return &settings{e: e, v: v, attrs: attrs, task: task, set: v.Watched()}
}

// variable names a variable that says how to reach a host.
type variable int

const (
	varHost variable = iota
	varSSHHost
	varConnection
	varPort
	varSSHPort
	varUser
	varSSHUser
	varKeyFile
	varSSHKeyFile
	varPassword
	varSSHPassword
	varSSHPass
	varPassphrase
	varSSHPassphrase
	varKey
	varSSHKey
	varProxyJump
	varCommonArgs
	varExtraArgs
	varHostKeyChecking
	varSSHHostKeyChecking
	varTimeout
	varSSHTimeout
	varBecome
	varBecomeMethod
	varBecomeUser
	varBecomeFlags
	varBecomeExe
	varBecomePassword
	varBecomePass
)

// connectionVariables are the names, in the order of the constants.
func connectionVariables() []string {
	return []string{
		varHost: "ansible_host", varSSHHost: "ansible_ssh_host", varConnection: "ansible_connection",
		varPort: "ansible_port", varSSHPort: "ansible_ssh_port", varUser: "ansible_user", varSSHUser: "ansible_ssh_user",
		varKeyFile: "ansible_private_key_file", varSSHKeyFile: "ansible_ssh_private_key_file",
		varPassword: "ansible_password", varSSHPassword: "ansible_ssh_password", varSSHPass: "ansible_ssh_pass",
		varPassphrase: "ansible_private_key_passphrase", varSSHPassphrase: "ansible_ssh_private_key_passphrase",
		varKey: "ansible_private_key", varSSHKey: "ansible_ssh_private_key", varProxyJump: "ansible_ssh_proxy_jump",
		varCommonArgs: "ansible_ssh_common_args", varExtraArgs: "ansible_ssh_extra_args",
		varHostKeyChecking: "ansible_host_key_checking", varSSHHostKeyChecking: "ansible_ssh_host_key_checking",
		varTimeout: "ansible_timeout", varSSHTimeout: "ansible_ssh_timeout",
		varBecome: "ansible_become", varBecomeMethod: "ansible_become_method", varBecomeUser: "ansible_become_user",
		varBecomeFlags: "ansible_become_flags", varBecomeExe: "ansible_become_exe",
		varBecomePassword: "ansible_become_password", varBecomePass: "ansible_become_pass",
	}
}

// variable returns the first of the variables that is set.
func (s *settings) variable(names ...variable) (any, bool) {
	for _, i := range names {
		if s.set&(1<<i) == 0 {
			continue
		}
		n := connectionVariables()[i]
		v, ok, err := s.v.Lookup(n)
		if err == nil && ok {
			v, err = value.Force(v)
		}
		if err != nil {
			s.failVariable(n, fmt.Errorf("variable %s: %w", n, err))
			return nil, false
		}
		if u, undefined := v.(*value.Undefined); undefined {
			s.failVariable(n, fmt.Errorf("variable %s: %w", n, u))
			return nil, false
		}
		if !ok || v == nil || v == "" {
			continue
		}
		if v, err = converted(playbook.VariableType(n), "variable "+n, v); err != nil {
			s.failVariable(n, err)
			return nil, false
		}
		return v, true
	}
	return nil, false
}

// failVariable fails with where the variable was set.
func (s *settings) failVariable(name string, err error) {
	for _, o := range s.v.Explain(name) {
		if o.Wins && o.At.IsValid() && !strings.Contains(err.Error(), o.At.String()) {
			err = fmt.Errorf("%w (set at %s)", err, o.At)
			break
		}
	}
	s.fail(err)
}

func (s *settings) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// keyword returns the value of a keyword.
func (s *settings) keyword(a project.Attr) (any, bool) {
	v, set, err := s.e.attr(s.task, s.attrs, a)
	if err != nil {
		s.fail(err)
		return nil, false
	}
	if !set || v == nil || v == "" {
		return nil, false
	}
	if v, err = converted(a.Type(), a.String(), v); err != nil {
		s.fail(err)
		return nil, false
	}
	return v, true
}

// text is a variable, else a keyword, else the default.
func (s *settings) text(a project.Attr, def string, names ...variable) string {
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

// port is that of the connection; 0 when nothing says it.
func (s *settings) port() int {
	v, ok := s.variable(varPort, varSSHPort)
	if !ok {
		v, _ = s.keyword(project.Port)
	}
	n, _ := v.(int)
	return n
}

// timeout is that of the connection; 0 when nothing says it.
func (s *settings) timeout() time.Duration {
	v, _ := s.variable(varTimeout, varSSHTimeout)
	limit, _ := v.(time.Duration)
	return limit
}

// target is how the task reaches a host.
func (e *Engine) target(host string, s *settings) Target {
	d := e.Defaults
	t := Target{Host: host, Address: s.text(noKeyword, host, varHost, varSSHHost)}
	if t.Connection = s.text(project.Connection, d.Connection, varConnection); t.Connection == "" {
		t.Connection = "ssh"
	}
	if isLocal(host) && !e.Inventory.Has(host) { // whatever the play says of its hosts
		t.Connection = s.text(noKeyword, "local", varConnection)
	}
	if t.Connection == "local" {
		return Target{Host: host, Connection: "local"}
	}
	if t.Port = s.port(); t.Port == 0 {
		t.Port = d.Port
	}
	t.User = s.text(project.RemoteUser, d.User, varUser, varSSHUser)
	t.KeyFile = s.text(noKeyword, d.KeyFile, varSSHKeyFile, varKeyFile)
	t.Password = e.secret(s, d.Password, varPassword, varSSHPassword, varSSHPass)
	t.Passphrase = e.secret(s, redact.Secret{}, varPassphrase, varSSHPassphrase)
	t.KeyContent = e.secret(s, redact.Secret{}, varSSHKey, varKey)
	t.ProxyJump = s.text(noKeyword, "", varProxyJump)
	t.SSHArgs = strings.TrimSpace(strings.Join([]string{d.SSHArgs, s.text(noKeyword, d.SSHCommonArgs, varCommonArgs), s.text(noKeyword, d.SSHExtraArgs, varExtraArgs)}, " "))
	t.HostKeyChecking = s.text(noKeyword, "", varHostKeyChecking, varSSHHostKeyChecking)
	if t.Timeout = s.timeout(); t.Timeout == 0 {
		t.Timeout = d.Timeout
	}
	return t
}

func isLocal(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

func (e *Engine) secret(s *settings, def redact.Secret, names ...variable) redact.Secret {
	v, ok := s.variable(names...)
	if !ok {
		return def
	}
	return e.Redact.Secret(value.Str(v))
}

// become is how the task becomes another user; ok is false when it does not.
func (e *Engine) become(s *settings) (connector.BecomeOptions, bool) {
	d := e.Defaults
	wanted := d.Become
	v, ok := s.variable(varBecome)
	if !ok {
		v, ok = s.keyword(project.Become)
	}
	if ok {
		wanted, _ = v.(bool)
	}
	if !wanted {
		return connector.BecomeOptions{}, false
	}
	o := connector.BecomeOptions{
		Method: s.text(project.BecomeMethod, d.BecomeMethod, varBecomeMethod),
		User:   s.text(project.BecomeUser, d.BecomeUser, varBecomeUser),
		Flags:  s.text(project.BecomeFlags, d.BecomeFlags, varBecomeFlags),
		Exe:    s.text(project.BecomeExe, d.BecomeExe, varBecomeExe),
	}
	o.Password = e.secret(s, d.BecomePass, varBecomePassword, varBecomePass)
	return o, true
}

// pooled is a connection with the users that tasks have become on it: what is
// known of a password, that it is right or that it was refused, holds for all of them.
type pooled struct {
	connector.Connector
	mu    sync.Mutex
	users map[connector.BecomeOptions]connector.Connector
}

// become returns the connection for another user.
func (p *pooled) become(o connector.BecomeOptions) connector.Connector {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users[o] == nil {
		p.users[o] = connector.Become(p.Connector, o)
	}
	return p.users[o]
}

// connection returns the connection to a target, made once for the run.
func (e *Engine) connection(ctx context.Context, t Target) (*pooled, error) {
	e.connMu.Lock()
	p := e.conns[t]
	e.connMu.Unlock()
	if p != nil {
		return p, nil
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
	p = &pooled{Connector: c, users: map[connector.BecomeOptions]connector.Connector{}}
	e.conns[t] = p
	return p, nil
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

// settle has the hosts do what tasks left for later.
func (e *Engine) settle(ctx context.Context) {
	e.connMu.Lock()
	conns := maps.Clone(e.conns)
	e.connMu.Unlock()
	var all sync.WaitGroup
	for t, c := range conns {
		all.Go(func() {
			if err := connector.Flush(ctx, c.Connector); err != nil && ctx.Err() == nil {
				e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "%s: %s", t.Host, err)})
			}
		})
	}
	all.Wait()
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
	s := e.settings(v, &project.Attrs{}, v)
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
