package playbook

import "sync"

// Place is where a keyword is allowed.
type Place int

// The places of keywords.
const (
	OnPlay Place = 1 << iota
	OnRole
	OnBlock
	OnTask
	OnInclude // include_tasks, include_role
)

const everywhere = OnPlay | OnRole | OnBlock | OnTask

// Keyword documents one keyword. Inherited keywords apply to the children of the object that
// has them.
type Keyword struct {
	Name      string
	Aliases   []string
	On        Place
	Type      Type
	Inherited bool
	Doc       string

	field func(*Attrs) *Value // for plain inherited keywords
}

// Keywords lists every keyword of the language, in the order of the manual.
func Keywords() []Keyword {
	return append(inherited(), own()...)
}

// TypeOf is the type of a keyword; "" if there is no such keyword.
func TypeOf(name string) Type { return types()[name] }

// types maps the names of keywords to their types.
var types = sync.OnceValue(func() map[string]Type {
	out := map[string]Type{}
	for _, k := range Keywords() {
		out[k.Name] = k.Type
	}
	return out
})

// attribute returns the row of an inherited keyword with a single value.
func attribute(name string, t Type, doc string, field func(*Attrs) *Value) Keyword {
	return Keyword{Name: name, On: everywhere, Type: t, Inherited: true, Doc: doc, field: field}
}

func inherited() []Keyword {
	rows := []Keyword{
		attribute("any_errors_fatal", Bool, "a failure on one host fails all hosts of the batch, and the run stops after "+
			"their rescue and always sections", func(a *Attrs) *Value { return &a.AnyErrorsFatal }),
		attribute("become", Bool, "run as another user", func(a *Attrs) *Value { return &a.Become }),
		attribute("become_exe", Text, "path of the executable of become_method",
			func(a *Attrs) *Value { return &a.BecomeExe }),
		attribute("become_flags", Text, "flags for the executable of become_method",
			func(a *Attrs) *Value { return &a.BecomeFlags }),
		attribute("become_method", BecomeMethod, "how to become the user: sudo (default) or su",
			func(a *Attrs) *Value { return &a.BecomeMethod }),
		attribute("become_user", Text, "user to become; default root", func(a *Attrs) *Value { return &a.BecomeUser }),
		attribute("check_mode", Bool, "true: only predict changes; false: make changes, even with --check",
			func(a *Attrs) *Value { return &a.CheckMode }),
		attribute("connection", Connection, "how to reach the host: ssh (default) or local",
			func(a *Attrs) *Value { return &a.Connection }),
		attribute("delegate_facts", Bool, "store facts for the host that the task is delegated to",
			func(a *Attrs) *Value { return &a.DelegateFacts }),
		attribute("delegate_to", Text, "run on this host instead, with the variables of the original one",
			func(a *Attrs) *Value { return &a.DelegateTo }),
		attribute("diff", Bool, "show changes to files", func(a *Attrs) *Value { return &a.Diff }),
		attribute("ignore_errors", Bool, "continue if the task fails", func(a *Attrs) *Value { return &a.IgnoreErrors }),
		attribute("ignore_unreachable", Bool, "continue if the host cannot be reached",
			func(a *Attrs) *Value { return &a.IgnoreUnreachable }),
		attribute("no_log", Bool, "hide arguments and results on screen and in journal and events",
			func(a *Attrs) *Value { return &a.NoLog }),
		attribute("port", Port, "port of the connection", func(a *Attrs) *Value { return &a.Port }),
		attribute("remote_user", Text, "user of the connection", func(a *Attrs) *Value { return &a.RemoteUser }),
		attribute("run_once", Bool, "run on the first host of the batch; all hosts share the result",
			func(a *Attrs) *Value { return &a.RunOnce }),
		attribute("throttle", Count, "maximum number of hosts at a time", func(a *Attrs) *Value { return &a.Throttle }),
		attribute("timeout", Seconds, "seconds after which the task is cancelled, on the host too",
			func(a *Attrs) *Value { return &a.Timeout }),
	}
	for i := range rows {
		switch rows[i].Name {
		case "remote_user":
			rows[i].Aliases = []string{"user"}
		case "timeout":
			rows[i].On |= OnInclude // applies only to the search for the file, not to the tasks in it
		}
	}
	return append(rows,
		Keyword{Name: "collections", On: everywhere, Type: List, Inherited: true,
			Doc: "collections that are searched for roles with plain names (kk's modules have plain names in any " +
				"case); a collection that does not exist and has no modules in kk is a warning"},
		Keyword{Name: "debugger", On: everywhere | OnInclude, Type: Debugger, Inherited: true,
			Doc: "always, never, on_failed, on_unreachable or on_skipped; kk has no task debugger, so it has no " +
				"effect, and every value but never is a warning"},
		Keyword{Name: "environment", On: everywhere, Type: Map, Inherited: true,
			Doc: "environment variables of the module's commands; a child's values win"},
		Keyword{Name: "module_defaults", On: everywhere, Type: Map, Inherited: true, Doc: "default arguments of modules"},
		Keyword{Name: "notify", On: OnRole | OnBlock | OnTask, Type: List, Inherited: true,
			Doc: "handlers to run at the next flush if the task changed something"},
		Keyword{Name: "tags", On: everywhere | OnInclude, Type: List, Inherited: true,
			Doc: "labels that --tags and --skip-tags select; always and never are special"},
		Keyword{Name: "vars", On: everywhere | OnInclude, Type: Map, Inherited: true,
			Doc: "variables of the object and its children; templated when used"},
		Keyword{Name: "when", On: OnRole | OnBlock | OnTask | OnInclude, Type: Condition, Inherited: true,
			Doc: "run only if all conditions hold; evaluated for each host and item"},
	)
}

func own() []Keyword {
	return []Keyword{
		{Name: "name", On: OnPlay | OnBlock | OnTask | OnInclude, Type: Text, Doc: "name that is shown"},
		{Name: "hosts", On: OnPlay, Type: List, Doc: "pattern of the hosts that the play runs on; required"},
		{Name: "gather_facts", On: OnPlay, Type: Bool, Doc: "gather facts first; default true"},
		{Name: "gather_subset", On: OnPlay, Type: List,
			Doc: "facts to gather: all, min, hardware, network, virtual, and !x to skip x"},
		{Name: "gather_timeout", On: OnPlay, Type: Count, Doc: "time limit for gathering facts, in seconds"},
		{Name: "fact_path", On: OnPlay, Type: Text, Doc: "folder of custom facts; default /etc/ansible/facts.d"},
		{Name: "vars_files", On: OnPlay, Type: Files,
			Doc: "files of variables; for an element that is a list, the first file that exists"},
		{Name: "vars_prompt", On: OnPlay, Type: List,
			Doc: "variables to ask for before the play: name, prompt, default, private (default yes), confirm, " +
				"encrypt, salt, salt_size, unsafe; skipped for variables set with -e, and without a terminal"},
		{Name: "pre_tasks", On: OnPlay, Type: Steps, Doc: "tasks before the roles"},
		{Name: "roles", On: OnPlay, Type: List, Doc: "roles to run before the tasks"},
		{Name: "tasks", On: OnPlay, Type: Steps, Doc: "tasks of the play"},
		{Name: "post_tasks", On: OnPlay, Type: Steps, Doc: "tasks after all others"},
		{Name: "handlers", On: OnPlay, Type: Steps, Doc: "tasks that run when notified"},
		{Name: "serial", On: OnPlay, Type: Batch,
			Doc: "hosts at a time: a number, a percentage, or a list of these whose last element repeats"},
		{Name: "serial_continue_on_batch_failure", On: OnPlay, Type: Bool,
			Doc: "continue with the next batch if all hosts of a batch failed"},
		{Name: "order", On: OnPlay, Type: Order,
			Doc: "inventory (default), sorted, reverse_sorted, reverse_inventory or shuffle"},
		{Name: "strategy", On: OnPlay, Type: Strategy,
			Doc: "linear (default): all hosts finish a task before the next begins; free: each host continues " +
				"independently; host_pinned: like free, and a host finishes the play before another one of more " +
				"than forks hosts begins"},
		{Name: "max_fail_percentage", On: OnPlay, Type: Percent,
			Doc: "stop the run if more than this percentage of a batch has failed"},
		{Name: "force_handlers", On: OnPlay, Type: Bool, Doc: "run notified handlers on failed hosts too"},
		{Name: "block", On: OnBlock, Type: Steps, Doc: "the tasks of the block"},
		{Name: "rescue", On: OnBlock, Type: Steps, Doc: "tasks to run if a task of the block failed"},
		{Name: "always", On: OnBlock, Type: Steps, Doc: "tasks that always run after the block"},
		{Name: "action", On: OnTask, Type: Any, Doc: "alternative form of the module: `action: copy src=a dest=b`"},
		{Name: "local_action", On: OnTask, Type: Any, Doc: "action, delegated to localhost"},
		{Name: "args", On: OnTask | OnInclude, Type: Map, Doc: "further arguments of the module"},
		{Name: "register", On: OnTask | OnInclude, Type: Text, Doc: "variable to store the result in"},
		{Name: "register_type", On: OnTask, Type: Registered,
			Doc: "string (default), json or yaml: register stdout, decoded"},
		{Name: "loop", On: OnTask | OnInclude, Type: List, Doc: "run once for each element, which is the variable item"},
		{Name: "with_LOOKUP", On: OnTask | OnInclude, Type: Any,
			Doc: "loop over the result of a lookup: with_items, with_dict, with_fileglob, ..."},
		{Name: "loop_control", On: OnTask | OnInclude, Type: Map,
			Doc: "loop_var, index_var, label, pause, extended, extended_allitems, break_when, forks"},
		{Name: "async", On: OnTask, Type: Seconds,
			Doc: "time limit in seconds for running the task in the background; 0 (default) is the foreground"},
		{Name: "poll", On: OnTask, Type: Seconds,
			Doc: "seconds between status checks of an async task; default 15; 0 continues at once, async_status " +
				"reports the result later"},
		{Name: "until", On: OnTask, Type: Condition, Doc: "repeat until the conditions hold"},
		{Name: "retries", On: OnTask, Type: Count, Doc: "how often to repeat; default 3"},
		{Name: "delay", On: OnTask, Type: Seconds, Doc: "seconds between repetitions; default 5"},
		{Name: "changed_when", On: OnTask, Type: Condition, Doc: "when the task counts as changed"},
		{Name: "failed_when", On: OnTask, Type: Condition, Doc: "when the task counts as failed"},
		{Name: "listen", On: OnTask, Type: List, Doc: "additional names that notify a handler"},
	}
}

// Unsupported returns the keywords of Ansible that kk does not support, each with its replacement, for the manual.
func Unsupported() map[string]string { return unsupported() }

// unsupported returns the keywords of Ansible that kk does not support. Their errors name a replacement instead of
// reporting an unknown keyword.
func unsupported() map[string]string {
	return map[string]string{
		"include":    "use import_playbook",
		"accelerate": "it was removed from the language",
		"sudo":       "use become: true",
		"sudo_user":  "use become_user",
		"su":         "use become: true and become_method: su",
	}
}
