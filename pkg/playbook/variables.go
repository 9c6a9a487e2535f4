package playbook

import (
	"slices"
	"sync"
)

// MagicVariable documents a variable that kk sets itself.
type MagicVariable struct {
	Name    string
	Aliases []string // other names of the same value
	Of      Subject
	// Yields is set if a user's variable of the same name overrides it.
	Yields bool
	// Unlisted is set if a list of a host's variables omits it, because it contains the whole inventory or is the
	// same for every host and run.
	Unlisted bool
	Doc      string
}

// Subject specifies what a magic variable describes. The variable has a value only there.
type Subject string

// The subjects of magic variables.
const (
	OfRun      Subject = "run"
	OfHost     Subject = "host"
	OfPlay     Subject = "play"
	OfTask     Subject = "task"
	OfRole     Subject = "role"     // that contains the task
	OfLoop     Subject = "loop"     // set by the loop of a task
	OfRescue   Subject = "rescue"   // set when a block fails
	OfTemplate Subject = "template" // set while the module template renders a file
)

// MagicVariables returns every magic variable, in the order of the manual.
func MagicVariables() []MagicVariable {
	return []MagicVariable{
		{Name: "inventory_hostname", Of: OfHost, Doc: "name of the host in the inventory"},
		{Name: "inventory_hostname_short", Of: OfHost, Doc: "the same up to the first dot"},
		{Name: "inventory_dir", Of: OfHost, Doc: "folder of the inventory file that has the host"},
		{Name: "inventory_file", Of: OfHost, Doc: "inventory file that has the host"},
		{Name: "group_names", Of: OfHost, Doc: "groups of the host, without `all`"},
		{Name: "ansible_facts", Of: OfHost, Unlisted: true, Doc: "facts of the host, without the prefix `ansible_`"},
		{Name: "vars", Of: OfHost, Unlisted: true, Doc: "all variables of the host by name"},

		{Name: "groups", Of: OfRun, Unlisted: true, Doc: "hosts of each group of the inventory"},
		{Name: "hostvars", Of: OfRun, Unlisted: true, Doc: "variables of each host of the inventory"},
		{Name: "omit", Of: OfRun, Unlisted: true, Doc: "value that removes an argument or a keyword: `default(omit)`"},
		{Name: "kk_work_dir", Of: OfRun, Doc: "work folder of kk (`--workdir`)"},
		{Name: "ansible_check_mode", Of: OfRun, Doc: "whether the run only predicts (`--check`)"},
		{Name: "ansible_diff_mode", Of: OfRun, Doc: "whether the run shows what changes in files (`--diff`)"},
		{Name: "ansible_verbosity", Of: OfRun, Doc: "number of `-v`"},
		{Name: "ansible_forks", Of: OfRun, Doc: "number of hosts to work on at a time (`--forks`)"},
		{Name: "ansible_limit", Of: OfRun, Doc: "text of `--limit`; undefined without it"},
		{Name: "ansible_run_tags", Of: OfRun, Doc: "tags of `--tags`; `all` without it"},
		{Name: "ansible_skip_tags", Of: OfRun, Doc: "tags of `--skip-tags`"},
		{Name: "ansible_inventory_sources", Of: OfRun, Doc: "inventories of the run (`-i`)"},
		{Name: "ansible_version", Of: OfRun, Unlisted: true, Doc: "version of ansible-core whose language kk implements"},
		{Name: "ansible_config_file", Of: OfRun, Unlisted: true, Doc: "ansible.cfg that was read; null without one"},
		{Name: "ansible_playbook_python", Of: OfRun, Unlisted: true, Doc: "always `/usr/bin/python3`; kk does not use it"},

		{Name: "playbook_dir", Of: OfPlay, Doc: "folder of the playbook"},
		{Name: "ansible_play_name", Of: OfPlay, Doc: "name of the play"},
		{Name: "ansible_play_hosts", Of: OfPlay, Doc: "hosts of the play that have not failed"},
		{Name: "ansible_play_hosts_all", Of: OfPlay, Doc: "hosts of the play"},
		{Name: "ansible_play_batch", Aliases: []string{"play_hosts", "ansible_current_hosts"}, Of: OfPlay,
			Doc: "hosts of the batch (`serial`) that have not failed"},
		{Name: "ansible_failed_hosts", Of: OfPlay, Doc: "hosts of the batch that have failed"},
		{Name: "ansible_role_names", Of: OfPlay, Doc: "roles of the play and the roles that they depend on"},
		{Name: "ansible_play_role_names", Aliases: []string{"role_names"}, Of: OfPlay, Doc: "roles that the play lists"},
		{Name: "ansible_dependent_role_names", Of: OfPlay, Doc: "roles that other roles of the play depend on"},

		{Name: "ansible_search_path", Of: OfTask, Doc: "folders in which relative paths are searched"},
		{Name: "ansible_delegated_vars", Of: OfTask, Doc: "host of `delegate_to` with its variables; undefined without it"},
		{Name: "environment", Of: OfTask, Yields: true, Doc: "mappings of the keyword `environment`, outermost first"},

		{Name: "role_name", Of: OfRole, Doc: "name of the role, without its collection"},
		{Name: "ansible_role_name", Of: OfRole, Doc: "name of the role, with its collection"},
		{Name: "ansible_collection_name", Of: OfRole, Doc: "collection of the role; empty if it is in none"},
		{Name: "role_path", Of: OfRole, Doc: "folder of the role"},
		{Name: "ansible_parent_role_names", Of: OfRole,
			Doc: "roles that include the role, nearest first; undefined without any"},
		{Name: "ansible_parent_role_paths", Of: OfRole, Doc: "their folders"},

		{Name: "item", Of: OfLoop, Doc: "element of the loop; `loop_control: {loop_var: NAME}` renames it"},
		{Name: "ansible_loop_var", Of: OfLoop, Doc: "name of the variable with the element"},
		{Name: "ansible_index_var", Of: OfLoop, Doc: "name of the variable with the index; undefined without `index_var`"},
		{Name: "ansible_loop", Of: OfLoop, Doc: "position in the loop, with `loop_control: {extended: true}`"},

		{Name: "ansible_failed_task", Of: OfRescue, Doc: "task that failed"},
		{Name: "ansible_failed_result", Of: OfRescue, Doc: "result of that task"},

		{Name: "template_host", Of: OfTemplate, Doc: "name of the control node"},
		{Name: "template_path", Of: OfTemplate, Doc: "path of the template, as the task specifies it"},
		{Name: "template_fullpath", Of: OfTemplate, Doc: "absolute path of the template"},
		{Name: "template_destpath", Of: OfTemplate, Doc: "path of the file on the host"},
		{Name: "template_run_date", Of: OfTemplate, Doc: "time of rendering"},
		{Name: "template_mtime", Of: OfTemplate, Doc: "time when the template was modified"},
		{Name: "template_uid", Of: OfTemplate, Doc: "owner of the template"},
		{Name: "ansible_managed", Of: OfTemplate, Yields: true, Doc: "text for the first line of generated files"},
	}
}

// Names returns the name and the aliases.
func (m MagicVariable) Names() []string { return append([]string{m.Name}, m.Aliases...) }

// Bound reports whether a task or a module sets the variable while it runs, like a user's variable. All others have
// values without being set.
func (m MagicVariable) Bound() bool {
	return m.Of == OfLoop || m.Of == OfRescue || m.Of == OfTemplate
}

// MagicNames returns the names of the variables that nobody can override.
func MagicNames() []string { return magicNames() }

var magicNames = sync.OnceValue(func() []string {
	var out []string
	for _, m := range MagicVariables() {
		if !m.Bound() && !m.Yields {
			out = append(out, m.Names()...)
		}
	}
	return out
})

// ConnectionVariable documents a variable that specifies how a host is reached. If it is not set, a keyword applies,
// else a setting.
type ConnectionVariable struct {
	Name    string
	Aliases []string // override the name, the last one overrides all, as in Ansible
	Type    Type
	Keyword string // "" if there is none
	Setting string // name in the table of settings, and of its flag; "" if there is none
	Default string // for the manual: if nothing is set and Setting has no default
	Given   bool   // tasks can read the value even if nothing sets the variable
	Doc     string
}

// ConnectionVariables returns every connection variable, in the order of the manual.
func ConnectionVariables() []ConnectionVariable {
	return []ConnectionVariable{
		{Name: "ansible_host", Aliases: []string{"ansible_ssh_host"}, Type: Address, Given: true,
			Default: "inventory_hostname", Doc: "name or address to connect to"},
		{Name: "ansible_connection", Type: Connection, Keyword: "connection", Setting: "connection", Given: true,
			Default: "ssh", Doc: "how to reach the host: ssh or local"},
		{Name: "ansible_port", Aliases: []string{"ansible_ssh_port"}, Type: Port, Keyword: "port", Setting: "remote_port",
			Default: "22", Given: true, Doc: "port of sshd"},
		{Name: "ansible_user", Aliases: []string{"ansible_ssh_user"}, Type: Text, Keyword: "remote_user",
			Setting: "remote_user", Given: true, Doc: "user to log in as"},
		{Name: "ansible_timeout", Aliases: []string{"ansible_ssh_timeout"}, Type: Seconds, Setting: "timeout", Given: true,
			Doc: "seconds to wait for a connection"},
		{Name: "ansible_shell_executable", Type: Text, Given: true, Default: "/bin/sh",
			Doc: "shell on the host; kk does not read it, and always uses `/bin/sh`"},
		{Name: "ansible_private_key_file", Aliases: []string{"ansible_ssh_private_key_file"}, Type: Text,
			Setting: "private_key_file", Given: true, Doc: "file of the private key"},
		{Name: "ansible_private_key", Aliases: []string{"ansible_ssh_private_key"}, Type: Text,
			Doc: "the private key itself"},
		{Name: "ansible_private_key_passphrase", Aliases: []string{"ansible_ssh_private_key_passphrase"}, Type: Text,
			Doc: "passphrase of the private key"},
		{Name: "ansible_password", Aliases: []string{"ansible_ssh_pass", "ansible_ssh_password"}, Type: Text,
			Setting: "ask_pass", Doc: "password to log in with"},
		{Name: "ansible_host_key_checking", Aliases: []string{"ansible_ssh_host_key_checking"}, Type: Bool,
			Setting: "ssh_host_key", Doc: "whether an unknown host key is an error"},
		{Name: "ansible_ssh_proxy_jump", Type: Text, Doc: "hosts to connect through"},
		{Name: "ansible_ssh_common_args", Type: Text, Setting: "ssh_common_args", Doc: "arguments, as of the program ssh"},
		{Name: "ansible_ssh_extra_args", Type: Text, Setting: "ssh_extra_args", Doc: "more of them"},
		{Name: "ansible_become", Type: Bool, Keyword: "become", Setting: "become", Doc: "run tasks as another user"},
		{Name: "ansible_become_method", Type: BecomeMethod, Keyword: "become_method", Setting: "become_method",
			Doc: "how to become the user: sudo or su"},
		{Name: "ansible_become_user", Type: Text, Keyword: "become_user", Setting: "become_user", Doc: "user to become"},
		{Name: "ansible_become_exe", Type: Text, Keyword: "become_exe", Setting: "become_exe",
			Doc: "path of the program that the method uses"},
		{Name: "ansible_become_flags", Type: Text, Keyword: "become_flags", Setting: "become_flags",
			Doc: "flags of that program"},
		{Name: "ansible_become_password", Aliases: []string{"ansible_become_pass"}, Type: Text,
			Setting: "become_ask_pass", Doc: "password that the method asks for"},
	}
}

// Strongest returns the names in order of precedence, highest first.
func (c ConnectionVariable) Strongest() []string {
	names := append([]string{c.Name}, c.Aliases...)
	slices.Reverse(names)
	return names
}

// ConnectionVariableOf returns the row of a connection variable by one of its names.
func ConnectionVariableOf(name string) (ConnectionVariable, bool) {
	c, ok := connectionVariables()[name]
	return c, ok
}

var connectionVariables = sync.OnceValue(func() map[string]ConnectionVariable {
	out := map[string]ConnectionVariable{}
	for _, c := range ConnectionVariables() {
		for _, name := range c.Strongest() {
			out[name] = c
		}
	}
	return out
})

// VariableType returns the type of a connection variable; "" for all others.
func VariableType(name string) Type { return connectionVariables()[name].Type }
