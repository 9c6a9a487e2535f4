package engine

import (
	"cmp"
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

// settings reads the keywords and variables that specify how a task reaches a host. It keeps the first error.
type settings struct {
	e     *Engine
	v     *vars.View
	attrs *project.Attrs
	task  *vars.View // evaluates keywords: the variables of the task's host
	set   uint64     // mask of the connection variables that are set
	err   error
}

func (e *Engine) settings(v *vars.View, attrs *project.Attrs, task *vars.View) *settings {
	return &settings{e: e, v: v, attrs: attrs, task: task, set: v.Watched()}
}

// connectionRow is a connection variable in the form that the engine reads.
type connectionRow struct {
	playbook.ConnectionVariable
	keyword project.Attr // or noKeyword
	names   []numberedName
}

// numberedName is the name of a connection variable with its bit in the mask of vars.Watch.
type numberedName struct {
	name string
	bit  int
}

const noKeyword project.Attr = -1

// connectionNames returns the names of all connection variables, in the order of vars.Watch.
func connectionNames() []string {
	var out []string
	for _, c := range playbook.ConnectionVariables() {
		out = append(out, c.Strongest()...)
	}
	return out
}

// connectionRows maps each name of a connection variable to its row.
var connectionRows = sync.OnceValue(func() map[string]*connectionRow {
	out := map[string]*connectionRow{}
	bit := 0
	for _, c := range playbook.ConnectionVariables() {
		row := &connectionRow{ConnectionVariable: c, keyword: noKeyword}
		if attr, ok := project.AttrOf(c.Keyword); ok {
			row.keyword = attr
		}
		for _, name := range c.Strongest() {
			row.names = append(row.names, numberedName{name, bit})
			out[name] = row
			bit++
		}
	}
	return out
})

// variable returns the value of the name with the highest precedence that is set in a row.
func (s *settings) variable(row *connectionRow) (any, bool) {
	for _, n := range row.names {
		if s.set&(1<<n.bit) == 0 {
			continue
		}
		v, ok, err := s.v.Lookup(n.name)
		if err == nil && ok {
			v, err = value.Force(v)
		}
		if u, undefined := v.(*value.Undefined); err == nil && undefined {
			err = u
		}
		if err != nil {
			s.failVariable(n.name, fmt.Errorf("variable %s: %w", n.name, err))
			return nil, false
		}
		if !ok || v == nil || v == "" {
			continue
		}
		if v, err = converted(row.Type, "variable "+n.name, v); err != nil {
			s.failVariable(n.name, err)
			return nil, false
		}
		return v, true
	}
	return nil, false
}

// failVariable records an error with the position at which the variable was set.
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

// value returns the effective value of a connection variable: the variable, else the keyword, else the default.
func (s *settings) value(name string) any {
	row := connectionRows()[name]
	if v, ok := s.variable(row); ok {
		return v
	}
	if row.keyword != noKeyword {
		if v, ok := s.keyword(row.keyword); ok {
			return v
		}
	}
	return s.e.Defaults.of(name, s.v.Host())
}

// of returns the value of a connection variable that neither a variable nor a keyword sets.
func (d *Defaults) of(name, host string) any {
	switch name {
	case "ansible_host":
		return host
	case "ansible_connection":
		return cmp.Or(d.Connection, "ssh")
	case "ansible_port":
		return d.Port
	case "ansible_user":
		return d.User
	case "ansible_timeout":
		return d.Timeout
	case "ansible_shell_executable":
		return "/bin/sh"
	case "ansible_private_key_file":
		return d.KeyFile
	case "ansible_password":
		return d.Password
	case "ansible_ssh_common_args":
		return d.SSHCommonArgs
	case "ansible_ssh_extra_args":
		return d.SSHExtraArgs
	case "ansible_become":
		return d.Become
	case "ansible_become_method":
		return d.BecomeMethod
	case "ansible_become_user":
		return d.BecomeUser
	case "ansible_become_exe":
		return d.BecomeExe
	case "ansible_become_flags":
		return d.BecomeFlags
	case "ansible_become_password":
		return d.BecomePass
	}
	return "" // has no default
}

func (s *settings) text(name string) string { return value.Str(s.value(name)) }

// secret returns a value and hides it in all output from now on.
func (s *settings) secret(name string) redact.Secret {
	v := s.value(name)
	if known, ok := v.(redact.Secret); ok {
		return known
	}
	if v == "" {
		return redact.Secret{}
	}
	return s.e.Redact.Secret(value.Str(v))
}

// connection returns the connection type of a host. Keywords of a play do not apply to the control node, unless it is
// in the inventory.
func (s *settings) connection(host string) string {
	if isLocal(host) && !s.e.Inventory.Has(host) {
		if v, ok := s.variable(connectionRows()["ansible_connection"]); ok {
			return value.Str(v)
		}
		return "local"
	}
	return s.text("ansible_connection")
}

// target returns how the task reaches a host.
func (e *Engine) target(host string, s *settings) Target {
	address := s.text("ansible_host")
	connection := s.connection(host)
	if connection == "local" {
		return Target{Host: host, Connection: "local"}
	}
	t := Target{Host: host, Address: address, Connection: connection}
	t.Port, _ = s.value("ansible_port").(int)
	t.User = s.text("ansible_user")
	t.KeyFile = s.text("ansible_private_key_file")
	t.Password = s.secret("ansible_password")
	t.Passphrase = s.secret("ansible_private_key_passphrase")
	t.KeyContent = s.secret("ansible_private_key")
	t.ProxyJump = s.text("ansible_ssh_proxy_jump")
	common, extra := s.text("ansible_ssh_common_args"), s.text("ansible_ssh_extra_args")
	t.SSHArgs = strings.TrimSpace(strings.Join([]string{e.Defaults.SSHArgs, common, extra}, " "))
	t.HostKeyChecking = s.text("ansible_host_key_checking")
	t.Timeout, _ = s.value("ansible_timeout").(time.Duration)
	return t
}

func isLocal(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// become returns how the task becomes another user; ok is false if it does not.
func (e *Engine) become(s *settings) (connector.BecomeOptions, bool) {
	if on, _ := s.value("ansible_become").(bool); !on {
		return connector.BecomeOptions{}, false
	}
	return connector.BecomeOptions{
		Method:   s.text("ansible_become_method"),
		User:     s.text("ansible_become_user"),
		Flags:    s.text("ansible_become_flags"),
		Exe:      s.text("ansible_become_exe"),
		Password: s.secret("ansible_become_password"),
	}, true
}

// pooled is a connection, shared by all users that tasks have become on it. If a password was accepted or rejected,
// this is known to all of them.
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

// connection returns the connection to a target. It is created once per run.
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

// drop closes the connection to a target. The next task opens a new one.
func (e *Engine) drop(t Target) {
	e.connMu.Lock()
	c := e.conns[t]
	delete(e.conns, t)
	e.connMu.Unlock()
	if c != nil {
		_ = c.Close()
	}
}

// flushDeferred runs the work that tasks deferred on the hosts.
func (e *Engine) flushDeferred(ctx context.Context) {
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

// Connector connects to the host of a view, like a task without keywords. done closes the connection.
func (e *Engine) Connector(ctx context.Context, v *vars.View) (c connector.Connector, done func(), err error) {
	s := e.settings(v, &project.Attrs{}, v)
	t := e.target(v.Host(), s)
	become, ok := e.become(s)
	if s.err != nil {
		return nil, nil, s.err
	}
	if c, err = e.connection(ctx, t); err != nil {
		return nil, nil, err
	}
	if ok {
		c = connector.Become(c, become)
	}
	return c, e.closeAll, nil
}
