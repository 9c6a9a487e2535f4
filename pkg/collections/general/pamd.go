package general

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// PAMD is the module pamd.
type PAMD struct {
	Name       string    `kk:"name,required" doc:"the service: a file of path"`
	Type       string    `kk:"type,required" choices:"account,-account,auth,-auth,password,-password,session,-session" doc:"type of the rule"`
	Control    string    `kk:"control,required" doc:"control of the rule: a keyword, or [VALUE=ACTION ...]"`
	Module     string    `kk:"module_path,required" doc:"its module"`
	NewType    string    `kk:"new_type" choices:"account,-account,auth,-auth,password,-password,session,-session" doc:"new type of the rule, or type of the new rule"`
	NewControl string    `kk:"new_control" doc:"new control of the rule, or control of the new rule"`
	NewModule  string    `kk:"new_module_path" doc:"new module of the rule, or module of the new rule"`
	Args       *[]string `kk:"module_arguments" doc:"arguments of the module. An empty string removes all. Default: unchanged; none for a new rule"`
	State      string    `kk:"state" default:"updated" choices:"absent,after,args_absent,args_present,before,updated" doc:"updated changes existing rules, before and after insert a new rule next to them, args_present and args_absent change single arguments of them, absent removes them"`
	Path       string    `kk:"path,path" default:"/etc/pam.d" doc:"folder of the services"`
	Backup     bool      `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
}

func pamdSpec() module.Spec {
	return module.Spec{
		Name: "pamd", Collection: "community.general",
		Summary: "Manages rules of PAM services.",
		Notes: []string{
			"A rule is identified by its type, control and module; without a match, nothing changes. Arguments do not " +
				"distinguish rules.",
			"Unchanged lines are preserved, and no comment with the time of the change is added.",
		},
		Examples: []string{
			"- name: Disable the message of the day at login\n  pamd:\n    name: sshd\n    type: session\n" +
				"    control: optional\n    module_path: pam_motd.so\n    state: absent",
			"- name: Only the group wheel may become root\n  pamd:\n    name: su\n    type: auth\n    control: sufficient\n" +
				"    module_path: pam_rootok.so\n    new_type: auth\n    new_control: required\n" +
				"    new_module_path: pam_wheel.so\n    module_arguments: use_uid\n    state: after",
		},
		Returns: []module.Return{
			{Key: "change_count", Type: "int", Doc: "number of changed rules"},
			{Key: "backupdest", Type: "str", Doc: "path of the backup, or empty"},
		},
		New: func() module.Runner { return new(PAMD) },
	}
}

// Rules implements schema.Ruled.
func (*PAMD) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("new_control", "new_type", "new_module_path").If("state", "before", "after"),
		schema.Needs("module_arguments").If("state", "args_present", "args_absent"),
		schema.Looks("one line", schema.OneLine, "new_control", "new_module_path", "module_arguments"),
		schema.Parses("a control of PAM", checkControl, "new_control"),
		schema.Looks("without brackets", func(arg string) bool { return !strings.Contains(arg, "[") }, "module_arguments").
			If("state", "args_present").
			Says("Unable to process bracketed '[' complex arguments with 'args_present'. Please use 'updated'."),
	}
}

// Run implements module.Runner.
func (m *PAMD) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	f, err := module.ReadText(ctx, c, path.Join(m.Path, m.Name))
	if err != nil {
		return module.Result{}, err
	}
	if !f.Exists() {
		//nolint:staticcheck // the text users know
		return module.Result{}, fmt.Errorf("Unable to open/read PAM module file %s: there is none", f.Path)
	}
	lines, changes := m.edit(module.Lines(f.Before))
	if f.Backup = m.Backup; changes > 0 {
		f.After = module.JoinLines(lines)
	}
	r := module.Result{Data: value.NewDict("change_count", changes)}
	if err := f.Save(ctx, c, module.FileAttrs{}, &r); err != nil {
		return r, err
	}
	kept, _ := r.Data.Get("backup_file")
	r.Data.Delete("backup_file")
	r.Data.Set("backupdest", value.Str(kept))
	return r, nil
}

// checkControl validates a control before it is written: see pam.d(5).
func checkControl(control string) error {
	words, complicated := strings.CutPrefix(pamControl(control), "[")
	if !complicated {
		if control == "" || slices.Contains([]string{"required", "requisite", "sufficient", "optional", "include",
			"substack", "definitive"}, control) {
			return nil
		}
		return fmt.Errorf("Rule control, %s, is not valid", control) //nolint:staticcheck // the text users know
	}
	for _, word := range strings.Fields(strings.TrimSuffix(words, "]")) {
		what, action, _ := strings.Cut(word, "=")
		if _, err := strconv.ParseUint(action, 10, 31); what == "" || err != nil &&
			!slices.Contains([]string{"ignore", "bad", "die", "ok", "done", "reset"}, action) {
			//nolint:staticcheck // the text users know
			return fmt.Errorf("Rule control action, %s, is not valid in %s", word, control)
		}
	}
	return nil
}

var (
	pamRulePattern = regexp.MustCompile(`^\s*(-?(?:auth|account|session|password))\s+(\[[^\]]*\]|\S+)\s+(\S+)\s*(.*)$`)
	pamArgPattern  = regexp.MustCompile(`\[[^\]]*\]|\S+`)
)

// pamRule is a line of a service file that is neither a comment nor an @include.
type pamRule struct {
	kind, control, module string
	args                  []string
}

func (r pamRule) is(kind, control, module string) bool {
	return r.kind == kind && r.control == pamControl(control) && r.module == module
}

func (r pamRule) String() string {
	return strings.Join(append([]string{fmt.Sprintf("%-11s%s", r.kind, r.control), r.module}, r.args...), " ")
}

// pamControl normalizes the blanks in a control.
func pamControl(control string) string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(control), "[")
	if !ok {
		return strings.TrimSpace(control)
	}
	inner = strings.ReplaceAll(strings.TrimSuffix(inner, "]"), " = ", "=")
	return "[" + strings.Join(strings.Fields(inner), " ") + "]"
}

// parsePAMRule parses a line. ok is false if it is not a rule.
func parsePAMRule(line string) (r pamRule, ok bool) {
	w := pamRulePattern.FindStringSubmatch(line)
	if w == nil {
		return r, false
	}
	return pamRule{w[1], pamControl(w[2]), w[3], pamArgs(w[4])}, true
}

// pamArgs splits texts into arguments: tokens, and brackets that may contain blanks.
func pamArgs(texts ...string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, pamArgPattern.FindAllString(text, -1)...)
	}
	return out
}

func (m *PAMD) args() []string {
	if m.Args == nil {
		return nil
	}
	return pamArgs(*m.Args...)
}

// edit returns the lines in their desired state and the number of changed rules.
func (m *PAMD) edit(lines []string) (out []string, changes int) {
	fresh := pamRule{m.NewType, pamControl(m.NewControl), m.NewModule, m.args()}
	for i, line := range lines {
		r, ok := parsePAMRule(line)
		if !ok || !r.is(m.Type, m.Control, m.Module) {
			out = append(out, line)
			continue
		}
		now := []string{line}
		switch m.State {
		case "absent":
			now = nil
		case "before":
			if !fresh.ends(lines[:i], -1) {
				now = []string{fresh.String(), line}
			}
		case "after":
			if !fresh.ends(lines[i+1:], 1) {
				now = []string{line, fresh.String()}
			}
		default:
			if want := m.changed(r); want.String() != r.String() {
				now = []string{want.String()}
			}
		}
		if !slices.Equal(now, []string{line}) {
			changes++
		}
		out = append(out, now...)
	}
	return out, changes
}

// ends reports whether the next rule of the lines, in one direction, equals r except for its arguments. Comments
// and blank lines are skipped.
func (r pamRule) ends(lines []string, step int) bool {
	at := 0
	if step < 0 {
		at = len(lines) - 1
	}
	for ; at >= 0 && at < len(lines); at += step {
		if text := strings.TrimSpace(lines[at]); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		there, ok := parsePAMRule(lines[at])
		return ok && there.is(r.kind, r.control, r.module)
	}
	return false
}

// changed returns the rule with the values of the task applied.
func (m *PAMD) changed(r pamRule) pamRule {
	r.args = slices.Clone(r.args)
	switch m.State {
	case "args_absent":
		r.args = slices.DeleteFunc(r.args, func(a string) bool { return slices.Contains(m.args(), a) })
	case "args_present":
		for _, arg := range m.args() {
			r.args = withPAMArg(r.args, arg)
		}
	default:
		for to, from := range map[*string]string{&r.kind: m.NewType, &r.control: pamControl(m.NewControl),
			&r.module: m.NewModule} {
			if from != "" {
				*to = from
			}
		}
		if m.Args != nil {
			r.args = m.args()
		}
	}
	return r
}

// withPAMArg replaces the value of an argument KEY=VALUE in its position, and appends a missing argument.
func withPAMArg(args []string, arg string) []string {
	key, _, valued := strings.Cut(arg, "=")
	for i, there := range args {
		if there == arg {
			return args
		}
		if k, _, ok := strings.Cut(there, "="); valued && ok && k == key {
			args[i] = arg
			return args
		}
	}
	return append(args, arg)
}
