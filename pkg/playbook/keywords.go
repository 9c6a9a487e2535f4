package playbook

import "sync"

// Place says where a keyword may stand.
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

// Keyword documents one keyword. Inherited ones reach the children of the
// object that they stand on.
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

// TypeOf is the type of a keyword; "" when there is none of that name.
func TypeOf(name string) Type { return types()[name] }

// types are the types of the keywords by name.
var types = sync.OnceValue(func() map[string]Type {
	out := map[string]Type{}
	for _, k := range Keywords() {
		out[k.Name] = k.Type
	}
	return out
})

// attribute makes the row of an inherited keyword that takes one value.
func attribute(name string, t Type, doc string, field func(*Attrs) *Value) Keyword {
	return Keyword{Name: name, On: everywhere, Type: t, Inherited: true, Doc: doc, field: field}
}

func inherited() []Keyword {
	rows := []Keyword{
		attribute("any_errors_fatal", Bool, "a failure on one host fails all hosts of the batch, and ends the run after their rescue and always sections", func(a *Attrs) *Value { return &a.AnyErrorsFatal }),
		attribute("become", Bool, "run as another user", func(a *Attrs) *Value { return &a.Become }),
		attribute("become_exe", Text, "path of the program that become_method uses", func(a *Attrs) *Value { return &a.BecomeExe }),
		attribute("become_flags", Text, "flags for the program that become_method uses", func(a *Attrs) *Value { return &a.BecomeFlags }),
		attribute("become_method", BecomeMethod, "how to become the user: sudo (default) or su", func(a *Attrs) *Value { return &a.BecomeMethod }),
		attribute("become_user", Text, "user to become; default root", func(a *Attrs) *Value { return &a.BecomeUser }),
		attribute("check_mode", Bool, "true: predict only; false: run for real, even with --check", func(a *Attrs) *Value { return &a.CheckMode }),
		attribute("connection", Connection, "how to reach the host: ssh (default) or local", func(a *Attrs) *Value { return &a.Connection }),
		attribute("delegate_facts", Bool, "facts go to the host that the task is delegated to", func(a *Attrs) *Value { return &a.DelegateFacts }),
		attribute("delegate_to", Text, "run on that host, with the variables of this one", func(a *Attrs) *Value { return &a.DelegateTo }),
		attribute("diff", Bool, "show what changes in files", func(a *Attrs) *Value { return &a.Diff }),
		attribute("ignore_errors", Bool, "go on when the task fails", func(a *Attrs) *Value { return &a.IgnoreErrors }),
		attribute("ignore_unreachable", Bool, "go on when the host cannot be reached", func(a *Attrs) *Value { return &a.IgnoreUnreachable }),
		attribute("no_log", Bool, "keep arguments and results out of screen, journal and events", func(a *Attrs) *Value { return &a.NoLog }),
		attribute("port", Port, "port of the connection", func(a *Attrs) *Value { return &a.Port }),
		attribute("remote_user", Text, "user of the connection", func(a *Attrs) *Value { return &a.RemoteUser }),
		attribute("run_once", Bool, "run on the first host of the batch; all hosts share the result", func(a *Attrs) *Value { return &a.RunOnce }),
		attribute("throttle", Count, "at most so many hosts at a time", func(a *Attrs) *Value { return &a.Throttle }),
		attribute("timeout", Seconds, "seconds after which the task is ended, on the host too", func(a *Attrs) *Value { return &a.Timeout }),
	}
	for i := range rows {
		switch rows[i].Name {
		case "remote_user":
			rows[i].Aliases = []string{"user"}
		case "timeout":
			rows[i].On |= OnInclude // it bounds the include, which only finds a file, and not what is in it
		}
	}
	return append(rows,
		Keyword{Name: "collections", On: everywhere, Type: List, Inherited: true, Doc: "collections in which roles are looked for under their plain names (kk has its modules under their plain names, whatever the collection); one that is not there, and that kk has no modules of, is a warning"},
		Keyword{Name: "debugger", On: everywhere | OnInclude, Type: Debugger, Inherited: true, Doc: "always, never, on_failed, on_unreachable or on_skipped; kk has no task debugger, so it does nothing and all but never warn"},
		Keyword{Name: "environment", On: everywhere, Type: Map, Inherited: true, Doc: "environment variables of the module's commands; a child's values win"},
		Keyword{Name: "module_defaults", On: everywhere, Type: Map, Inherited: true, Doc: "arguments of modules, where a task does not give them"},
		Keyword{Name: "notify", On: OnRole | OnBlock | OnTask, Type: List, Inherited: true, Doc: "handlers to run at the next flush if the task changed something"},
		Keyword{Name: "tags", On: everywhere | OnInclude, Type: List, Inherited: true, Doc: "words that --tags and --skip-tags select by; always and never are special"},
		Keyword{Name: "vars", On: everywhere | OnInclude, Type: Map, Inherited: true, Doc: "variables of the object and its children; templated when used"},
		Keyword{Name: "when", On: OnRole | OnBlock | OnTask | OnInclude, Type: Condition, Inherited: true, Doc: "run only if all conditions hold; evaluated for each host and item"},
	)
}

func own() []Keyword {
	return []Keyword{
		{Name: "name", On: OnPlay | OnBlock | OnTask | OnInclude, Type: Text, Doc: "what is shown"},
		{Name: "hosts", On: OnPlay, Type: List, Doc: "pattern of the hosts that the play runs on; required"},
		{Name: "gather_facts", On: OnPlay, Type: Bool, Doc: "gather facts first; default true"},
		{Name: "gather_subset", On: OnPlay, Type: List, Doc: "which facts: all, min, hardware, network, virtual, and !x to leave out"},
		{Name: "gather_timeout", On: OnPlay, Type: Count, Doc: "seconds that gathering may take"},
		{Name: "fact_path", On: OnPlay, Type: Text, Doc: "folder of custom facts; default /etc/ansible/facts.d"},
		{Name: "vars_files", On: OnPlay, Type: Files, Doc: "files of variables; an element that is a list means the first that exists"},
		{Name: "vars_prompt", On: OnPlay, Type: List, Doc: "variables to ask for before the play: name, prompt, default, private (default yes), confirm, encrypt, salt, salt_size, unsafe; not asked for what -e gives, nor without a terminal"},
		{Name: "pre_tasks", On: OnPlay, Type: Steps, Doc: "tasks before the roles"},
		{Name: "roles", On: OnPlay, Type: List, Doc: "roles to run before the tasks"},
		{Name: "tasks", On: OnPlay, Type: Steps, Doc: "tasks of the play"},
		{Name: "post_tasks", On: OnPlay, Type: Steps, Doc: "tasks after all others"},
		{Name: "handlers", On: OnPlay, Type: Steps, Doc: "tasks that run when notified"},
		{Name: "serial", On: OnPlay, Type: Batch, Doc: "hosts at a time: a number, a percentage, or a list of these of which the last repeats"},
		{Name: "serial_continue_on_batch_failure", On: OnPlay, Type: Bool, Doc: "go on with the next batch when all hosts of one failed"},
		{Name: "order", On: OnPlay, Type: Order, Doc: "inventory (default), sorted, reverse_sorted, reverse_inventory or shuffle"},
		{Name: "strategy", On: OnPlay, Type: Strategy, Doc: "linear (default): all hosts finish a task before the next begins; free: each host on its own; host_pinned: so, and at most forks hosts at a time, each to its end"},
		{Name: "max_fail_percentage", On: OnPlay, Type: Percent, Doc: "end the run when more than this share of a batch has failed"},
		{Name: "force_handlers", On: OnPlay, Type: Bool, Doc: "run notified handlers on failed hosts too"},
		{Name: "block", On: OnBlock, Type: Steps, Doc: "the tasks of the block"},
		{Name: "rescue", On: OnBlock, Type: Steps, Doc: "tasks to run when one of the block failed"},
		{Name: "always", On: OnBlock, Type: Steps, Doc: "tasks to run after the block in any case"},
		{Name: "action", On: OnTask, Type: Any, Doc: "another way to name the module: `action: copy src=a dest=b`"},
		{Name: "local_action", On: OnTask, Type: Any, Doc: "action, delegated to localhost"},
		{Name: "args", On: OnTask | OnInclude, Type: Map, Doc: "further arguments of the module"},
		{Name: "register", On: OnTask | OnInclude, Type: Text, Doc: "variable that takes the result"},
		{Name: "register_type", On: OnTask, Type: Registered, Doc: "string (default), json or yaml: register what stdout holds, decoded"},
		{Name: "loop", On: OnTask | OnInclude, Type: List, Doc: "run once for each element, which is the variable item"},
		{Name: "with_LOOKUP", On: OnTask | OnInclude, Type: Any, Doc: "loop over what a lookup yields: with_items, with_dict, with_fileglob, ..."},
		{Name: "loop_control", On: OnTask | OnInclude, Type: Map, Doc: "loop_var, index_var, label, pause, extended, extended_allitems, break_when, forks"},
		{Name: "async", On: OnTask, Type: Seconds, Doc: "seconds that the task may take in the background; 0 (default) is the foreground"},
		{Name: "poll", On: OnTask, Type: Seconds, Doc: "seconds between looks at an async task; default 15; 0 goes on at once, async_status tells of it later"},
		{Name: "until", On: OnTask, Type: Condition, Doc: "repeat until the conditions hold"},
		{Name: "retries", On: OnTask, Type: Count, Doc: "how often to repeat; default 3"},
		{Name: "delay", On: OnTask, Type: Seconds, Doc: "seconds between repetitions; default 5"},
		{Name: "changed_when", On: OnTask, Type: Condition, Doc: "what counts as changed"},
		{Name: "failed_when", On: OnTask, Type: Condition, Doc: "what counts as failed"},
		{Name: "listen", On: OnTask, Type: List, Doc: "further names that a handler answers to"},
	}
}

// Refused lists keywords of Ansible that kk does not have, each with what to
// use instead, for the manual.
func Refused() map[string]string { return refused() }

// refused are keywords of Ansible that kk does not have; they get an error
// that says so, not one that calls them unknown.
func refused() map[string]string {
	return map[string]string{
		"include":    "use import_playbook",
		"accelerate": "it was removed from the language",
		"sudo":       "use become: true",
		"sudo_user":  "use become_user",
		"su":         "use become: true and become_method: su",
	}
}
