// Package flow holds the modules that control a run rather than change a host:
// variables, conditions, pauses, waiting for hosts, facts, and the
// descriptions of the actions of the engine (meta, include and import).
package flow

import "kubekey/pkg/module"

// Modules describes the modules of this package.
func Modules() []module.Spec {
	var all []module.Spec
	for _, group := range [][]module.Spec{varSpecs(), inventorySpecs(), conditionSpecs(), waitSpecs(), factSpecs(),
		actionSpecs()} {
		all = append(all, group...)
	}
	return all
}

func varSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "set_fact", Summary: "Sets variables of the host for the rest of the run.",
			Notes: []string{"Strings that read true, false, yes or no become bools. The host is not contacted."},
			Examples: []string{"- set_fact:\n    etcd_name: \"etcd-{{ inventory_hostname }}\"\n" +
				"    peers: \"{{ groups.etcd | length }}\""},
			Returns: []module.Return{{Key: "ansible_facts", Type: "dict", Doc: "the variables"}},
			New:     func() module.Runner { return &setFact{} },
			AnyArgs: true, Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "set_stats", Summary: "Sets statistics of the run.",
			Notes: []string{"The values are part of the result of the task, for consumers of the events of a run. The " +
				"host is not contacted."},
			Examples: []string{"- set_stats:\n    data:\n      nodes_added: \"{{ ansible_play_hosts | length }}\""},
			Returns:  []module.Return{{Key: "ansible_stats", Type: "dict", Doc: "data, per_host and aggregate"}},
			New:      func() module.Runner { return &setStats{} },
			Where:    module.OnControl, Check: module.Harmless,
		},
		{
			Name: "include_vars", Summary: "Loads variables from files on the control node.",
			Examples: []string{"- include_vars: \"{{ ansible_facts.distribution }}.yml\"", "- include_vars:\n    dir: " +
				"vars/all\n    ignore_files: [README.md]\n    name: settings"},
			Returns: []module.Return{
				{Key: "ansible_facts", Type: "dict", Doc: "the variables"},
				{Key: "ansible_included_var_files", Type: "list", Doc: "the files that were read"},
				{Key: "message", Type: "str", Doc: "why it failed"},
			},
			New:      func() module.Runner { return &includeVars{} },
			FreeForm: "file", Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "result", Collection: "kk", Summary: "Reports values at the end of the run, for scripts that read its output.",
			Notes: []string{"With -o jsonl, and in the journal, they are the results of the event run_ended; if a name " +
				"is set twice, the last value counts."},
			Examples: []string{"- result:\n    endpoint: \"https://{{ vip }}:6443\""},
			New:      func() module.Runner { return &result{} },
			AnyArgs:  true, Where: module.OnControl, Check: module.Harmless,
		},
	}
}

func inventorySpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "add_host", Summary: "Adds a host to the inventory of the run.",
			Notes: []string{"It runs once for all hosts of a batch. All other arguments become variables of the host. " +
				"The host is available in subsequent plays."},
			Examples: []string{"- add_host:\n    name: 10.0.0.9\n    groups: [workers]\n    ansible_user: ubuntu"},
			Returns:  []module.Return{{Key: "add_host", Type: "dict", Doc: "host_name, groups and host_vars"}},
			New:      func() module.Runner { return &addHost{} },
			FreeForm: "name", AnyArgs: true, Where: module.Once, Check: module.Harmless,
		},
		{
			Name: "add_hostvars", Collection: "kk", Summary: "Sets variables on other hosts.",
			Examples: []string{"- add_hostvars:\n    hosts: [kube_control_plane]\n" +
				"    vars: {join_token: \"{{ token.stdout }}\"}"},
			Returns: []module.Return{{Key: "hosts", Type: "list", Doc: "the argument"}},
			New:     func() module.Runner { return &addHostVars{} },
			Where:   module.OnControl, Check: module.Harmless,
		},
		{
			Name: "group_by", Summary: "Adds the host to a group, such as one named after a fact.",
			Examples: []string{"- group_by:\n    key: \"os_{{ ansible_facts.distribution | lower }}\""},
			Returns: []module.Return{
				{Key: "add_group", Type: "str", Doc: "name of the group"},
				{Key: "parent_groups", Type: "list", Doc: "its parent groups"},
			},
			New:   func() module.Runner { return &groupBy{} },
			Where: module.OnControl, Check: module.Harmless,
		},
	}
}

func conditionSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "assert", Summary: "Fails unless all conditions are true.",
			Examples: []string{"- assert:\n    that:\n      - groups.etcd | length is odd\n" +
				"      - kube_version is version('1.24', '>=')\n    fail_msg: etcd needs an odd number of members"},
			Returns: []module.Return{
				{Key: "assertion", Type: "str", Doc: "the condition that is false"},
				{Key: "evaluated_to", Type: "bool", Doc: "false"},
			},
			New:     func() module.Runner { return &assert{} },
			RawArgs: []string{"that"}, Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "validate_argument_spec", Summary: "Validates variables against an argument spec.",
			Notes: []string{"It is the first task of a role with argument_specs, unless rolespec_validate is no."},
			Examples: []string{"- validate_argument_spec:\n    argument_spec:\n      port: {type: int, required: true}\n" +
				"      mode: {choices: [fast, safe], default: safe}"},
			Returns: []module.Return{
				{Key: "argument_errors", Type: "list", Doc: "the problems found"},
				{Key: "argument_spec_data", Type: "dict", Doc: "the spec, on failure"},
				{Key: "validate_args_context", Type: "dict", Doc: "the argument"},
			},
			New:   func() module.Runner { return &validateArgumentSpec{} },
			Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "fail", Summary: "Fails with a message.",
			Examples: []string{"- fail:\n    msg: this system is not supported\n" +
				"  when: ansible_facts.os_family not in ['Debian', 'RedHat']"},
			New:   func() module.Runner { return &fail{} },
			Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "debug", Summary: "Prints a message or the value of an expression.",
			Examples: []string{"- debug:\n    msg: \"joined as {{ name }}\"", "- debug:\n    var: " +
				"hostvars[inventory_hostname].groups\n    verbosity: 2"},
			Returns: []module.Return{{Key: "msg", Type: "any", Doc: "the message; with var, the value is under the text " +
				"of the expression instead"}},
			New:     func() module.Runner { return &debug{} },
			RawArgs: []string{"var"}, Where: module.OnControl, Check: module.Harmless,
		},
	}
}

func waitSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "pause", Summary: "Pauses for some time or for user input.",
			Notes: []string{"It runs once for all hosts of a batch. Without a terminal it does not wait for an answer, " +
				"and prints a warning."},
			Examples: []string{"- pause:\n    seconds: 10", "- pause:\n    prompt: Type yes to delete the cluster\n" +
				"  register: answer"},
			Returns: []module.Return{
				{Key: "user_input", Type: "str", Doc: "the typed text"},
				{Key: "stdout", Type: "str", Doc: "duration of the pause"},
				{Key: "start", Type: "str", Doc: "start time"}, {Key: "stop", Type: "str", Doc: "end time"},
				{Key: "delta", Type: "int", Doc: "duration in seconds"},
				{Key: "echo", Type: "bool", Doc: "whether the typed text was shown"},
			},
			New:   func() module.Runner { return &pause{} },
			Where: module.Once, Check: module.Harmless,
		},
		{
			Name: "ping", Summary: "Checks that commands can be run on the host.",
			Examples: []string{"- ping:"},
			Returns:  []module.Return{{Key: "ping", Type: "str", Doc: "the argument data"}},
			New:      func() module.Runner { return &ping{} }, Check: module.Harmless,
		},
		{
			Name: "wait_for_connection", Summary: "Waits until the host is reachable.",
			Examples: []string{"- wait_for_connection:\n    delay: 5\n    timeout: 300"},
			Returns:  []module.Return{{Key: "elapsed", Type: "int", Doc: "seconds it took"}},
			New:      func() module.Runner { return &waitForConnection{} }, Check: module.Skips,
			CheckSkipMsg: "remote module (wait_for_connection) does not support check mode",
		},
		{
			Name: "reboot", Summary: "Reboots the host and waits until it is up again.",
			Notes: []string{"A reboot is detected by a changed output of boot_time_command. In check mode the task is " +
				"skipped."},
			Examples: []string{"- reboot:", "- reboot:\n    reboot_timeout: 900\n    test_command: systemctl " +
				"is-system-running --wait"},
			Returns: []module.Return{
				{Key: "rebooted", Type: "bool", Doc: "whether the host rebooted and is up again"},
				{Key: "elapsed", Type: "int", Doc: "seconds it took"},
			},
			New:   func() module.Runner { return &reboot{} },
			Check: module.Skips, CheckSkipMsg: "remote module (reboot) does not support check mode",
		},
	}
}

func factSpecs() []module.Spec {
	return []module.Spec{{
		Name: "setup", Aliases: []string{"gather_facts"}, Summary: "Gathers facts about the host.",
		Notes: []string{"Facts are available as ansible_facts.NAME and ansible_NAME. Custom facts (*.fact: JSON, " +
			"INI, or executable) are in ansible_local."},
		Examples: []string{"- setup:\n    gather_subset: [\"!all\", network]", "- setup:\n    filter: [\"ansible_mem*\"]"},
		Returns:  []module.Return{{Key: "ansible_facts", Type: "dict", Doc: "the facts"}},
		New:      func() module.Runner { return &setup{} }, Check: module.Harmless,
	}}
}
