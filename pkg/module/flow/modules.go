// Package flow holds the modules that steer a run rather than change a host:
// variables, conditions, pauses, waiting for hosts, facts, and the
// descriptions of what the engine does itself (meta, include and import).
package flow

import "kubekey/pkg/module"

// Modules describes the modules of this package.
func Modules() []module.Spec {
	var all []module.Spec
	for _, group := range [][]module.Spec{varSpecs(), inventorySpecs(), conditionSpecs(), waitSpecs(), factSpecs(), actionSpecs()} {
		all = append(all, group...)
	}
	return all
}

func varSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "set_fact", Summary: "Sets variables of the host for the rest of the run.",
			Notes:    []string{"Texts that read true, false, yes or no become bools. The host is not contacted."},
			Examples: []string{"- set_fact:\n    etcd_name: \"etcd-{{ inventory_hostname }}\"\n    peers: \"{{ groups.etcd | length }}\""},
			Returns:  []module.Return{{Key: "ansible_facts", Type: "dict", Doc: "what was set"}},
			New:      func() module.Runner { return &setFact{} },
			AnyArgs:  true, Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "set_stats", Summary: "Hands values on as statistics of the run.",
			Notes:    []string{"The values stand in the result of the task, for whatever reads the events of a run. The host is not contacted."},
			Examples: []string{"- set_stats:\n    data:\n      nodes_added: \"{{ ansible_play_hosts | length }}\""},
			Returns:  []module.Return{{Key: "ansible_stats", Type: "dict", Doc: "data, per_host and aggregate"}},
			New:      func() module.Runner { return &setStats{} },
			Where:    module.OnControl, Check: module.Harmless,
		},
		{
			Name: "include_vars", Summary: "Loads variables from files of the control node.",
			Examples: []string{"- include_vars: \"{{ ansible_facts.distribution }}.yml\"", "- include_vars:\n    dir: vars/all\n    ignore_files: [README.md]\n    name: settings"},
			Returns: []module.Return{
				{Key: "ansible_facts", Type: "dict", Doc: "the variables"},
				{Key: "ansible_included_var_files", Type: "list", Doc: "the files that were read"},
				{Key: "message", Type: "str", Doc: "why it failed"},
			},
			New:      func() module.Runner { return &includeVars{} },
			FreeForm: "file", Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "result", Collection: "kk", Summary: "Tells values at the end of the run, to programs that read it.",
			Notes:    []string{"With -o jsonl, and in the journal of the run, they are the results of the event run_ended; of a name that is told twice, the last counts."},
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
			Notes:    []string{"It runs once for all hosts of a batch. Every other argument is a variable of the host. The plays that follow see it."},
			Examples: []string{"- add_host:\n    name: 10.0.0.9\n    groups: [workers]\n    ansible_user: ubuntu"},
			Returns:  []module.Return{{Key: "add_host", Type: "dict", Doc: "host_name, groups and host_vars"}},
			New:      func() module.Runner { return &addHost{} },
			FreeForm: "name", AnyArgs: true, Where: module.Once, Check: module.Harmless,
		},
		{
			Name: "add_hostvars", Collection: "kk", Summary: "Sets variables on other hosts.",
			Examples: []string{"- add_hostvars:\n    hosts: [kube_control_plane]\n    vars: {join_token: \"{{ token.stdout }}\"}"},
			Returns:  []module.Return{{Key: "hosts", Type: "list", Doc: "the names that were given"}},
			New:      func() module.Runner { return &addHostVars{} },
			Where:    module.OnControl, Check: module.Harmless,
		},
		{
			Name: "group_by", Summary: "Puts the host into a group that is named by a fact.",
			Examples: []string{"- group_by:\n    key: \"os_{{ ansible_facts.distribution | lower }}\""},
			Returns: []module.Return{
				{Key: "add_group", Type: "str", Doc: "name of the group"},
				{Key: "parent_groups", Type: "list", Doc: "groups that it is part of"},
			},
			New:   func() module.Runner { return &groupBy{} },
			Where: module.OnControl, Check: module.Harmless,
		},
	}
}

func conditionSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "assert", Summary: "Fails unless conditions hold.",
			Examples: []string{"- assert:\n    that:\n      - groups.etcd | length is odd\n      - kube_version is version('1.24', '>=')\n    fail_msg: etcd needs an odd number of members"},
			Returns: []module.Return{
				{Key: "assertion", Type: "str", Doc: "the condition that does not hold"},
				{Key: "evaluated_to", Type: "bool", Doc: "false"},
			},
			New:     func() module.Runner { return &assert{} },
			RawArgs: []string{"that"}, Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "validate_argument_spec", Summary: "Checks variables against a spec of arguments.",
			Notes:    []string{"A role with argument_specs has this as its first task, unless rolespec_validate is no."},
			Examples: []string{"- validate_argument_spec:\n    argument_spec:\n      port: {type: int, required: true}\n      mode: {choices: [fast, safe], default: safe}"},
			Returns: []module.Return{
				{Key: "argument_errors", Type: "list", Doc: "what is wrong"},
				{Key: "argument_spec_data", Type: "dict", Doc: "the spec, when something is wrong"},
				{Key: "validate_args_context", Type: "dict", Doc: "what was validated"},
			},
			New:   func() module.Runner { return &validateArgumentSpec{} },
			Where: module.OnControl, Check: module.Harmless,
		},
		{
			Name: "fail", Summary: "Fails with a message.",
			Examples: []string{"- fail:\n    msg: this system is not supported\n  when: ansible_facts.os_family not in ['Debian', 'RedHat']"},
			New:      func() module.Runner { return &fail{} },
			Where:    module.OnControl, Check: module.Harmless,
		},
		{
			Name: "debug", Summary: "Shows a message or the value of an expression.",
			Examples: []string{"- debug:\n    msg: \"joined as {{ name }}\"", "- debug:\n    var: hostvars[inventory_hostname].groups\n    verbosity: 2"},
			Returns:  []module.Return{{Key: "msg", Type: "any", Doc: "the message; with var, the value stands under the expression's text"}},
			New:      func() module.Runner { return &debug{} },
			RawArgs:  []string{"var"}, Where: module.OnControl, Check: module.Harmless,
		},
	}
}

func waitSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "pause", Summary: "Waits for some time or for a person.",
			Notes:    []string{"It runs once for all hosts of a batch. Without a terminal a prompt is not waited for, with a warning."},
			Examples: []string{"- pause:\n    seconds: 10", "- pause:\n    prompt: Type yes to delete the cluster\n  register: answer"},
			Returns: []module.Return{
				{Key: "user_input", Type: "str", Doc: "what was typed"},
				{Key: "stdout", Type: "str", Doc: "how long it took"},
				{Key: "start", Type: "str", Doc: "when it began"}, {Key: "stop", Type: "str", Doc: "when it ended"},
				{Key: "delta", Type: "int", Doc: "seconds in between"}, {Key: "echo", Type: "bool", Doc: "whether the typed text was shown"},
			},
			New:   func() module.Runner { return &pause{} },
			Where: module.Once, Check: module.Harmless,
		},
		{
			Name: "ping", Summary: "Checks that a command can be run on the host.",
			Examples: []string{"- ping:"},
			Returns:  []module.Return{{Key: "ping", Type: "str", Doc: "pong, or what data says"}},
			New:      func() module.Runner { return &ping{} }, Check: module.Harmless,
		},
		{
			Name: "wait_for_connection", Summary: "Waits until the host can be reached.",
			Examples: []string{"- wait_for_connection:\n    delay: 5\n    timeout: 300"},
			Returns:  []module.Return{{Key: "elapsed", Type: "int", Doc: "seconds it took"}},
			New:      func() module.Runner { return &waitForConnection{} }, Check: module.Skips,
			CheckSkipMsg: "remote module (wait_for_connection) does not support check mode",
		},
		{
			Name: "reboot", Summary: "Reboots the host and waits until it is back.",
			Notes:    []string{"That the host rebooted is seen by what boot_time_command prints. In check mode the task is skipped."},
			Examples: []string{"- reboot:", "- reboot:\n    reboot_timeout: 900\n    test_command: systemctl is-system-running --wait"},
			Returns: []module.Return{
				{Key: "rebooted", Type: "bool", Doc: "whether the host rebooted and came back"},
				{Key: "elapsed", Type: "int", Doc: "seconds it took"},
			},
			New:   func() module.Runner { return &reboot{} },
			Check: module.Skips, CheckSkipMsg: "remote module (reboot) does not support check mode",
		},
	}
}

func factSpecs() []module.Spec {
	return []module.Spec{{
		Name: "setup", Aliases: []string{"gather_facts"}, Summary: "Gathers facts about the host in one round trip.",
		Notes:    []string{"A fact is known as ansible_facts.NAME and ansible_NAME. Custom facts (*.fact: JSON, INI, or executable) are in ansible_local."},
		Examples: []string{"- setup:\n    gather_subset: [\"!all\", network]", "- setup:\n    filter: [\"ansible_mem*\"]"},
		Returns:  []module.Return{{Key: "ansible_facts", Type: "dict", Doc: "the facts"}},
		New:      func() module.Runner { return &setup{} }, Check: module.Harmless,
	}}
}
