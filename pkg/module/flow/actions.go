package flow

import (
	"context"
	"errors"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// engineOnly is the Runner of the names that the engine runs itself: their
// structs exist to check and document arguments.
type engineOnly struct{}

var errEngineOnly = errors.New("the engine runs this itself; it is no module to be called")

// Run returns an error.
func (engineOnly) Run(context.Context, *module.Call) (module.Result, error) {
	return module.Result{}, errEngineOnly
}

type meta struct {
	engineOnly
	Action string `kk:"action,required" choices:"flush_handlers,refresh_inventory,noop,clear_facts,clear_host_errors,end_play,end_run,end_host,end_batch,end_role,reset_connection" doc:"what to do; given as the module's text"`
}

type includeTasks struct {
	engineOnly
	File  string      `kk:"file,required,path" doc:"file of tasks; may be given as the module's text"`
	Apply *value.Dict `kk:"apply" doc:"keywords for every task of the file"`
}

type importTasks struct {
	engineOnly
	File string `kk:"file,required,path" doc:"file of tasks; may be given as the module's text"`
}

type importPlaybook struct {
	engineOnly
	File string `kk:"file,required,path" doc:"playbook; given as the text"`
}

// roleFiles are the arguments that name a role and its files.
type roleFiles struct {
	Name            string `kk:"name,required,alias=role" doc:"name or path of the role"`
	Tasks           string `kk:"tasks_from" default:"main" doc:"file of tasks/ to run"`
	Vars            string `kk:"vars_from" default:"main" doc:"file of vars/ to load"`
	Defaults        string `kk:"defaults_from" default:"main" doc:"file of defaults/ to load"`
	Handlers        string `kk:"handlers_from" default:"main" doc:"file of handlers/ to load"`
	AllowDuplicates bool   `kk:"allow_duplicates" default:"yes" doc:"run the role even if it ran before"`
	Validate        bool   `kk:"rolespec_validate" default:"yes" doc:"check the arguments that the role declares"`
}

type includeRole struct {
	engineOnly
	roleFiles
	Public bool        `kk:"public" default:"no" doc:"let the rest of the play see the role's variables"`
	Apply  *value.Dict `kk:"apply" doc:"keywords for every task of the role"`
}

type importRole struct {
	engineOnly
	roleFiles
	Public bool `kk:"public" default:"yes" doc:"let the rest of the play see the role's variables"`
}

func actionSpecs() []module.Spec {
	return []module.Spec{
		{
			Name: "meta", Summary: "Makes the engine do something between tasks.", Action: true, FreeForm: "action",
			New:      func() module.Runner { return &meta{} },
			Examples: []string{"- meta: flush_handlers", "- name: Leave out hosts that are done\n  meta: end_host\n  when: done is defined"},
		},
		{
			Name: "include_tasks", Aliases: []string{"include"}, Summary: "Runs a file of tasks, found when the task is reached.", Action: true, FreeForm: "file",
			Notes:    []string{"Keywords on the task are for the include itself; apply hands them to the tasks.", "`include` is the old name and gives a warning."},
			New:      func() module.Runner { return &includeTasks{} },
			Examples: []string{"- include_tasks: \"{{ ansible_facts.os_family }}.yml\"", "- include_tasks:\n    file: node.yml\n    apply: {become: true}\n  loop: [1, 2]"},
		},
		{
			Name: "import_tasks", Summary: "Puts the tasks of a file in its place when the playbook is read.", Action: true, FreeForm: "file",
			New: func() module.Runner { return &importTasks{} }, Examples: []string{"- import_tasks: install.yml\n  tags: install"},
		},
		{
			Name: "include_role", Summary: "Runs a role when the task is reached.", Action: true,
			New: func() module.Runner { return &includeRole{} }, Examples: []string{"- include_role:\n    name: etcd\n    tasks_from: backup"},
		},
		{
			Name: "import_role", Summary: "Puts a role in its place when the playbook is read.", Action: true,
			New: func() module.Runner { return &importRole{} }, Examples: []string{"- import_role: {name: common}"},
		},
		{
			Name: "import_playbook", Summary: "Puts the plays of another playbook in its place.", Action: true, FreeForm: "file",
			New: func() module.Runner { return &importPlaybook{} }, Examples: []string{"- import_playbook: precheck.yml\n  when: precheck | default(true)"},
		},
	}
}
