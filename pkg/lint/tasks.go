package lint

import (
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
)

func taskRules() []Rule {
	return []Rule{
		{
			ID: "command-instead-of-module", Summary: "a command where there is a module",
			Why: "A module changes only what differs, reports what it changed, and supports check mode; a command reports a " +
				"change each time. " +
				"Lines with pipes, redirections or several commands are passed over.",
			Bad:   "- command: mkdir -p /srv/data\n  args: {creates: /srv/data}\n",
			Good:  "- file: {path: /srv/data, state: directory, mode: \"0755\"}\n",
			check: (*pass).commands,
		},
		{
			ID: "missing-changed-when", Summary: "a command that does not say what it changes",
			Why: "It reports a change on each run: handlers run without need, and a run that changed something looks like " +
				"one that did not. " +
				"Set `changed_when` (false for what only looks), or `creates` or `removes`. Handlers are passed over.",
			Bad:   "- command: hostname -f\n",
			Good:  "- command: hostname -f\n  changed_when: false\n",
			check: (*pass).changedWhen,
		},
		{
			ID: "risky-mode", Summary: "permissions that are left to chance, or open to everybody",
			Why: "A file that is created without `mode` gets what the umask of the login leaves, " +
				"and what everybody may write to, everybody may change.",
			Bad:   "- copy: {content: x, dest: /srv/x, mode: \"0666\"}\n",
			Good:  "- copy: {content: x, dest: /srv/x, mode: \"0644\"}\n",
			check: (*pass).modes,
		},
	}
}

// insteadOf maps a program to the module that replaces it, if given only for some of its subcommands.
type insteadOf struct {
	module      string
	subcommands []string
}

func replacements() map[string]insteadOf {
	services := []string{"start", "stop", "restart", "reload", "enable", "disable", "mask", "unmask", "daemon-reload",
		"daemon-reexec"}
	packages := []string{"install", "remove", "purge", "update", "upgrade", "dist-upgrade", "autoremove", "erase",
		"reinstall"}
	return map[string]insteadOf{
		"systemctl": {"systemd", services}, "chkconfig": {"service", nil},
		"apt-get": {"apt", packages}, "apt": {"apt", packages}, "yum": {"dnf", packages}, "dnf": {"dnf", packages},
		"apt-key": {"apt_key", nil}, "add-apt-repository": {"apt_repository", nil}, "pip": {"pip", packages},
		"pip3":  {"pip", packages},
		"mkdir": {"file", nil}, "rm": {"file", nil}, "rmdir": {"file", nil}, "ln": {"file", nil}, "touch": {"file", nil},
		"chmod": {"file", nil}, "chown": {"file", nil}, "chgrp": {"file", nil}, "cp": {"copy", nil},
		"sed":  {"lineinfile", []string{"-i"}},
		"curl": {"get_url", nil}, "wget": {"get_url", nil}, "tar": {"unarchive", nil}, "unzip": {"unarchive", nil},
		"useradd": {"user", nil}, "usermod": {"user", nil}, "userdel": {"user", nil},
		"groupadd": {"group", nil}, "groupdel": {"group", nil}, "hostnamectl": {"hostname", []string{"set-hostname"}},
		"modprobe": {"modprobe", nil}, "mount": {"mount", nil}, "umount": {"mount", nil}, "crontab": {"cron", nil},
		"git": {"git", []string{"clone", "pull", "checkout"}}, "timedatectl": {"timezone", []string{"set-timezone"}},
		"sysctl": {"sysctl", []string{"-w"}}, "iptables": {"iptables", nil}, "ufw": {"ufw", nil},
		"firewall-cmd": {"firewalld", nil},
		"kubectl":      {"k8s", []string{"apply", "create", "delete"}},
		"helm":         {"helm", []string{"install", "upgrade", "uninstall"}},
	}
}

func isCommand(t *project.Task) bool { return t.Action == "command" || t.Action == "shell" }

// line is the command of a task of command or shell, as written.
func line(t *project.Task) playbook.Value {
	if t.Syntax.Args.Kind() == yaml.MappingNode {
		if cmd := t.Syntax.Args.Get("cmd"); cmd.IsSet() {
			return cmd
		}
		return t.Syntax.Args.Get("_raw_params")
	}
	return t.Syntax.Args
}

func (p *pass) commands() {
	table := replacements()
	for _, t := range p.tasks {
		if !isCommand(t) {
			continue
		}
		v := line(t)
		text := v.Text()
		if t.Action == "shell" && strings.ContainsAny(text, "|;&<>`\n") || strings.Contains(text, "$(") {
			continue
		}
		argv := strings.Fields(text)
		if len(argv) == 0 {
			continue
		}
		program := argv[0][strings.LastIndexByte(argv[0], '/')+1:]
		instead, ok := table[program]
		if !ok || p.Modules.Find(instead.module) == nil {
			continue
		}
		if instead.subcommands != nil && !slices.ContainsFunc(argv[1:],
			func(a string) bool { return slices.Contains(instead.subcommands, a) }) {
			continue
		}
		p.report(t, v.TextAt(), len(argv[0]), "kk doc "+instead.module, "the module %s does what %s does", instead.module,
			program)
	}
}

func (p *pass) changedWhen() {
	for _, t := range p.tasks {
		if !isCommand(t) && t.Action != "raw" && t.Action != "script" || t.Handler || len(t.ChangedWhen) > 0 {
			continue
		}
		if p.has(t, "creates") || p.has(t, "removes") {
			continue
		}
		p.report(t, t.Syntax.ModuleAt, len(t.Syntax.Module),
			"changed_when: false, if it only looks; else say when it changed something",
			"%s reports a change each time", t.Action)
	}
}

// has reports whether a task has an argument, however it is written.
func (p *pass) has(t *project.Task, name string) bool {
	if t.Args == nil {
		return false
	}
	_, ok := t.Args.Member(name)
	return ok
}

// makes are the modules that create files with a mode.
func makes() map[string]bool {
	return map[string]bool{"copy": true, "template": true, "get_url": true, "assemble": true}
}

func (p *pass) modes() {
	for _, t := range p.tasks {
		if t.Spec == nil || t.Args == nil {
			continue
		}
		mode, given := t.Args.Member("mode")
		if !given {
			if (makes()[t.Action] || p.createsFile(t)) && !p.hasDefaults(t) {
				p.report(t, t.Syntax.ModuleAt, len(t.Syntax.Module), `mode: "0644", or what is fit`,
					"%s creates a file without saying its mode", t.Action)
			}
			continue
		}
		at := t.Syntax.Args.Get("mode")
		place, width := t.Syntax.ModuleAt, len(t.Syntax.Module)
		if at.IsSet() {
			place, width = at.At(), len(at.Text())
		}
		v, static := mode.Static()
		if text := value.Str(v); static && worldWritable.MatchString(text) {
			p.report(t, place, width, "leave out the right to write for others", "mode %s lets everybody write", text)
		}
	}
}

// worldWritable is an octal mode with the write bit for others and without the sticky bit.
var worldWritable = regexp.MustCompile(`^0?[0246]?[0-7]{2}[2367]$`)

// createsFile reports whether a task of the module file creates a directory or a file.
func (p *pass) createsFile(t *project.Task) bool {
	if t.Action != "file" {
		return false
	}
	state, _ := t.Args.Member("state")
	if state == nil {
		return false
	}
	v, _ := state.Static()
	return v == "directory" || v == "touch"
}

// hasDefaults reports whether module_defaults may give the mode.
func (p *pass) hasDefaults(t *project.Task) bool { return len(t.Attrs.ModuleDefaults) > 0 }
