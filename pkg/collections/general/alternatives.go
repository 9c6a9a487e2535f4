package general

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed alternatives.sh
var alternativesScript string

// Alternatives is the module alternatives.
type Alternatives struct {
	Name        string        `kk:"name,required" doc:"the group, such as editor"`
	Path        string        `kk:"path,required,path" doc:"the program"`
	Link        string        `kk:"link,path" doc:"symlink of the group, such as /usr/bin/editor. Needed for a new group"`
	Priority    *int          `kk:"priority" doc:"priority; the highest is selected automatically. Default: 50 for a new alternative"`
	State       string        `kk:"state" default:"selected" choices:"present,selected,auto,absent" doc:"whether it belongs to the group; selected selects it, auto selects by priority"`
	Subcommands *[]Subcommand `kk:"subcommands,alias=slaves" doc:"subordinate links. Default: unchanged"`
}

// Subcommand is a link that follows the alternative of another link.
type Subcommand struct {
	Name string `kk:"name,required" doc:"its group"`
	Path string `kk:"path,required,path" doc:"what it leads to"`
	Link string `kk:"link,required,path" doc:"the link"`
}

// Rules implements schema.Ruled.
func (*Subcommand) Rules() schema.Rules {
	return schema.Rules{schema.Needs("name", "path", "link"),
		schema.Looks("the name or the path of an alternative", schema.NoDash, "name", "path", "link")}
}

func alternativesSpec() module.Spec {
	return module.Spec{
		Name: "alternatives", Collection: "community.general",
		Summary:  "Manages alternative commands (update-alternatives).",
		Examples: []string{"- name: Choose mawk\n  alternatives:\n    name: awk\n    path: /usr/bin/mawk"},
		Returns:  []module.Return{{Key: "msg", Type: "str", Doc: "what was done"}},
		New:      func() module.Runner { return new(Alternatives) },
	}
}

// alternativeGroup is the output of update-alternatives --display.
type alternativeGroup struct {
	mode, current, link string
	links               map[string]string // of subcommands
	choices             map[string]*alternative
}

type alternative struct {
	priority    int
	subcommands []Subcommand
}

var (
	groupMode    = regexp.MustCompile(` - (?:status is )?(auto|manual)`)
	groupChoice  = regexp.MustCompile(`^(/.*) - (?:family \S+ )?priority (-?\d+)$`)
	groupSlave   = regexp.MustCompile(`^(?:slave|follower) (\S+) is (.*)$`)
	choiceSlave  = regexp.MustCompile(`^(?:slave|follower) (\S+): (.*)$`)
	groupLink    = regexp.MustCompile(`^link (\S+) is (/.*)$`)
	groupCurrent = regexp.MustCompile(`^link currently points to (.*)$`)
)

func parseAlternatives(text string) alternativeGroup {
	g := alternativeGroup{links: map[string]string{}, choices: map[string]*alternative{}}
	var last *alternative
	for i, line := range module.Lines(text) {
		bare := strings.TrimSpace(line)
		if m := groupMode.FindStringSubmatch(line); i == 0 && m != nil {
			g.mode = m[1]
		} else if m := groupChoice.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[2])
			last = &alternative{priority: n}
			g.choices[m[1]] = last
		} else if m := groupCurrent.FindStringSubmatch(bare); m != nil {
			g.current = m[1]
		} else if m := groupLink.FindStringSubmatch(bare); m != nil {
			g.link = m[2]
		} else if m := groupSlave.FindStringSubmatch(bare); m != nil {
			g.links[m[1]] = m[2]
		} else if m := choiceSlave.FindStringSubmatch(bare); m != nil && last != nil && m[2] != "(null)" {
			last.subcommands = append(last.subcommands, Subcommand{m[1], m[2], g.links[m[1]]})
		}
	}
	return g
}

// Rules implements schema.Ruled.
func (*Alternatives) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name", "path"),
		schema.Looks("the name or the path of an alternative", schema.NoDash, "name", "path", "link"),
		schema.Looks("an absolute path", schema.Absolute, "path"),
	}
}

// Run implements module.Runner.
func (m *Alternatives) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	a, err := c.Probe(ctx, hostscript.New(alternativesScript, "alternatives_read").Args(m))
	if err != nil {
		return module.Result{}, err
	}
	g := parseAlternatives(a.Get("display"))
	act := hostscript.New(alternativesScript, `alternatives_act "$@"`).Args(m)
	done, warning, err := m.plan(g, a.Has("path"), c.Check, act)
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Changed: len(done) > 0, Msg: strings.Join(done, " ")}
	if warning != "" {
		r.Warnings = []string{warning}
	}
	c.Show(&r, m.Name, g.shown(m.Path), value.NewDict("state", m.State, "path", m.Path))
	return c.Act(ctx, r, act, "")
}

// shown returns the state of an alternative for the diff.
func (g alternativeGroup) shown(path string) *value.Dict {
	have := g.choices[path]
	switch {
	case have == nil:
		return value.NewDict("state", "absent")
	case g.current == path:
		return value.NewDict("state", "selected", "path", path, "priority", have.priority)
	}
	return value.NewDict("state", "present", "path", path, "priority", have.priority)
}

// plan adds the changes to the script, and describes them in sentences.
func (m *Alternatives) plan(g alternativeGroup, exists, check bool,
	s *hostscript.Script) (done []string, warning string, err error) {
	have := g.choices[m.Path]
	if m.State == "absent" {
		if have == nil {
			return nil, "", nil
		}
		s.Set("then", "remove")
		return []string{fmt.Sprintf("Remove alternative '%s' from '%s'.", m.Path, m.Name)}, "", nil
	}
	if have == nil || m.Priority != nil && have.priority != *m.Priority || m.Subcommands != nil &&
		!sameSubcommands(have.subcommands, *m.Subcommands) {
		if !exists {
			err = fmt.Errorf("Specified path %s does not exist", m.Path) //nolint:staticcheck // the text users know
			if !check {
				return nil, "", err
			}
			warning = err.Error() + " (check mode: assuming that a task before makes it)"
		}
		if s.Words, err = m.install(g, have); err != nil {
			return nil, "", err
		}
		done = append(done, fmt.Sprintf("Install alternative '%s' for '%s'.", m.Path, m.Name))
	}
	switch {
	case m.State == "selected" && g.current != m.Path:
		s.Set("then", "set")
		done = append(done, fmt.Sprintf("Set alternative '%s' for '%s'.", m.Path, m.Name))
	case m.State == "auto" && g.mode == "manual":
		s.Set("then", "auto")
		done = append(done, fmt.Sprintf("Set alternative to auto for '%s'.", m.Name))
	}
	return done, warning, nil
}

// install returns the arguments of --install. Values that the task does not set are kept.
func (m *Alternatives) install(g alternativeGroup, have *alternative) ([]string, error) {
	link, priority := m.Link, 50
	if link == "" {
		link = g.link
	}
	if link == "" {
		//nolint:staticcheck // the text users know
		return nil, errors.New("Needed to install the alternative, but unable to do so as we are missing the link")
	}
	var subcommands []Subcommand
	if have != nil {
		priority, subcommands = have.priority, have.subcommands
	}
	if m.Priority != nil {
		priority = *m.Priority
	}
	if m.Subcommands != nil {
		subcommands = *m.Subcommands
	}
	words := []string{link, m.Name, m.Path, strconv.Itoa(priority)}
	for _, s := range subcommands {
		words = append(words, "--slave", s.Link, s.Name, s.Path)
	}
	return words, nil
}

// sameSubcommands compares lists as sets.
func sameSubcommands(a, b []Subcommand) bool {
	in := func(all []Subcommand) func(Subcommand) bool {
		return func(s Subcommand) bool { return !slices.Contains(all, s) }
	}
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}
