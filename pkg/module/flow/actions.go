package flow

import (
	"context"
	"errors"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// engineOnly is the Runner of the actions that the engine runs itself: their structs
// only check and document arguments.
type engineOnly struct{}

var errEngineOnly = errors.New("the engine runs this itself: it cannot be called as a module")

// Run returns an error.
func (engineOnly) Run(context.Context, *module.Call) (module.Result, error) {
	return module.Result{}, errEngineOnly
}

type meta struct {
	engineOnly
	Action string `kk:"action,required" choices:"flush_handlers,refresh_inventory,noop,clear_facts,clear_host_errors,end_play,end_run,end_host,end_batch,end_role,reset_connection" doc:"action to run; given as free-form text"`
}

type includeTasks struct {
	engineOnly
	File  string      `kk:"file,required,path" doc:"file with tasks; may be given as free-form text"`
	Apply *value.Dict `kk:"apply" doc:"keywords to apply to every task of the file"`
}

type importTasks struct {
	engineOnly
	File string `kk:"file,required,path" doc:"file with tasks; may be given as free-form text"`
}

type importPlaybook struct {
	engineOnly
	File string `kk:"file,required,path" doc:"path of the playbook; given as free-form text"`
}

// roleFiles holds the arguments that select a role and its files.
type roleFiles struct {
	Name            string `kk:"name,required,alias=role" doc:"name or path of the role"`
	Tasks           string `kk:"tasks_from" default:"main" doc:"file in tasks/ to run"`
	Vars            string `kk:"vars_from" default:"main" doc:"file in vars/ to load"`
	Defaults        string `kk:"defaults_from" default:"main" doc:"file in defaults/ to load"`
	Handlers        string `kk:"handlers_from" default:"main" doc:"file in handlers/ to load"`
	AllowDuplicates bool   `kk:"allow_duplicates" default:"yes" doc:"run the role again if it already ran"`
	Validate        bool   `kk:"rolespec_validate" default:"yes" doc:"validate the arguments that the role declares"`
}

type includeRole struct {
	engineOnly
	roleFiles
	Public bool        `kk:"public" default:"no" doc:"expose the variables of the role to the rest of the play"`
	Apply  *value.Dict `kk:"apply" doc:"keywords to apply to every task of the role"`
}

type importRole struct {
	engineOnly
	roleFiles
	Public bool `kk:"public" default:"yes" doc:"expose the variables of the role to the rest of the play"`
}

func actionSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "meta", Summary: "Runs an internal action between tasks.", Action: true, FreeForm: "action",
			New: func() module.Runner { return &meta{} },
			Examples: []string{"- meta: flush_handlers", "- name: Skip hosts that are done\n  meta: end_host\n" +
				"  when: done is defined"},
		},
		{
			Name: "include_tasks", Aliases: []string{"include"},
			Summary: "Includes a file with tasks when the task is reached.", Action: true, FreeForm: "file",
			Notes: []string{"Keywords on the task apply to the include itself; apply sets them on the included tasks.",
				"`include` is the old name and causes a warning."},
			New: func() module.Runner { return &includeTasks{} },
			Examples: []string{"- include_tasks: \"{{ ansible_facts.os_family }}.yml\"", "- include_tasks:\n    file: " +
				"node.yml\n    apply: {become: true}\n  loop: [1, 2]"},
		},
		{
			Name: "import_tasks", Summary: "Imports a file with tasks when the playbook is loaded.", Action: true,
			FreeForm: "file",
			New:      func() module.Runner { return &importTasks{} },
			Examples: []string{"- import_tasks: install.yml\n  tags: install"},
		},
		{
			Name: "include_role", Summary: "Includes a role when the task is reached.", Action: true,
			New:      func() module.Runner { return &includeRole{} },
			Examples: []string{"- include_role:\n    name: etcd\n    tasks_from: backup"},
		},
		{
			Name: "import_role", Summary: "Imports a role when the playbook is loaded.", Action: true,
			New: func() module.Runner { return &importRole{} }, Examples: []string{"- import_role: {name: common}"},
		},
		{
			Name: "import_playbook", Summary: "Imports the plays of another playbook.", Action: true, FreeForm: "file",
			New:      func() module.Runner { return &importPlaybook{} },
			Examples: []string{"- import_playbook: precheck.yml\n  when: precheck | default(true)"},
		},
	}
}
