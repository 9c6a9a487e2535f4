package engine

import (
	"cmp"
	"time"

	"kubekey/pkg/project"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// reach implements vars.Scope.Fallback: within a task, the variables that say
// how its host is reached have a value also where nobody set them. hostvars
// shows only those that are set.
func (e *Engine) reach(name string, v *vars.View) (any, bool) {
	switch name {
	case "ansible_host", "ansible_ssh_host", "ansible_user", "ansible_ssh_user", "ansible_port", "ansible_ssh_port",
		"ansible_connection", "ansible_timeout", "ansible_ssh_timeout", "ansible_shell_executable",
		"ansible_private_key_file", "ansible_ssh_private_key_file":
	default:
		return nil, false
	}
	h := at(v)
	if h.task == nil {
		return nil, false
	}
	// A keyword may ask for the very variable that it sets: remote_user: "{{ ansible_user | default('root') }}".
	outer := v.Fork()
	outer.Task = &here{e: e, play: h.play}
	host := v.Host()
	reached := outer
	if d, set, err := e.attr(outer, &h.task.Attrs, project.DelegateTo); err == nil && set && value.Str(d) != "" {
		host = value.Str(d)
		reached = e.other(v, host)
	}
	return e.reached(name, host, e.settings(reached, &h.task.Attrs, outer))
}

// reached is a variable as it follows from the others and from keywords.
func (e *Engine) reached(name, host string, s *settings) (any, bool) {
	var val any
	switch name {
	case "ansible_host", "ansible_ssh_host":
		val = s.text(noKeyword, host, varHost, varSSHHost)
	case "ansible_user", "ansible_ssh_user":
		val = s.text(project.RemoteUser, e.Defaults.User, varUser, varSSHUser)
	case "ansible_port", "ansible_ssh_port":
		val = cmp.Or(s.port(), e.Defaults.Port)
	case "ansible_timeout", "ansible_ssh_timeout":
		val = int(cmp.Or(s.timeout(), e.Defaults.Timeout, 10*time.Second).Seconds()) // as connector/ssh has it
	case "ansible_private_key_file", "ansible_ssh_private_key_file":
		val = s.text(noKeyword, e.Defaults.KeyFile, varSSHKeyFile, varKeyFile)
	case "ansible_connection":
		val = e.target(host, s).Connection
	case "ansible_shell_executable":
		val = "/bin/sh"
	}
	return val, s.err == nil && val != "" && val != 0
}
