package account

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed getent.sh
var getentScript string

// Getent is the module getent.
type Getent struct {
	Database string `kk:"database,required" doc:"database to query: passwd, group, hosts, services, ..."`
	Key      string `kk:"key" doc:"entry to look up. Default: all entries, if the database can list them"`
	Service  string `kk:"service" doc:"query this service only, such as files or ldap. Default: as configured in nsswitch.conf"`
	Split    string `kk:"split" doc:"separator of the fields. Default: a colon for passwd, shadow, group and gshadow, otherwise whitespace"`
	FailKey  bool   `kk:"fail_key" default:"yes" doc:"fail if the key does not exist; otherwise its value is null"`
}

func getentSpec() module.Spec {
	return module.Spec{
		Name:    "getent",
		Summary: "Looks up entries of passwd, group, hosts and other databases with getent, and returns them as facts.",
		Notes:   []string{"An entry that occurs several times is a list of lists of fields."},
		Examples: []string{
			"- name: Look up the administrator\n  getent:\n    database: passwd\n    key: root",
		},
		Returns: []module.Return{{Key: "ansible_facts", Type: "dict",
			Doc: "getent_DATABASE: the list of the remaining fields for each key"}},
		Check: module.Harmless,
		New:   func() module.Runner { return new(Getent) },
	}
}

var getentWord = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)

// Rules implements schema.Ruled.
func (*Getent) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("database"),
		schema.Looks("one word", getentWord.MatchString, "database", "service"),
		schema.Looks("a word that does not begin with a dash", schema.NoDash, "key"),
	}
}

// Run implements module.Runner.
func (m *Getent) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(getentScript, `getent_main "$@"`)
	if m.Service != "" {
		s.Words = append(s.Words, "-s", m.Service)
	}
	s.Words = append(s.Words, m.Database)
	if m.Key != "" {
		s.Words = append(s.Words, m.Key)
	}
	a, err := c.Probe(ctx, s)
	if err != nil {
		return module.Result{}, err
	}
	return m.result(a)
}

// result evaluates the exit status of getent: 1 means wrong arguments, 2 an unknown key,
// 3 a database that cannot be enumerated.
func (m *Getent) result(a hostscript.Answer) (module.Result, error) {
	entries := value.NewDict()
	r := module.Result{Facts: value.NewDict("getent_"+m.Database, entries)}
	switch rc := a.Number("rc"); {
	case rc == 0:
		m.entries(entries, module.Lines(a.Get("text")))
	case rc == 1:
		//nolint:staticcheck // the text users know
		return module.Result{}, fmt.Errorf("Missing arguments, or database unknown: %s", a.Get("errors"))
	case rc == 2 && !m.FailKey:
		r.Msg = "One or more supplied key could not be found in the database."
		entries.Set(m.Key, nil)
	case rc == 2:
		//nolint:staticcheck // the text users know
		return module.Result{}, fmt.Errorf("One or more supplied key could not be found in the database.")
	case rc == 3:
		//nolint:staticcheck // the text users know
		return module.Result{}, fmt.Errorf("Enumeration not supported on this database.")
	default:
		return module.Result{}, fmt.Errorf("getent exited with status %d: %s", rc, a.Get("errors"))
	}
	return r, nil
}

func (m *Getent) entries(into *value.Dict, all []string) {
	seen := map[string]int{}
	for _, line := range all {
		fields := m.fields(line)
		if len(fields) == 0 {
			continue
		}
		key, rest := fields[0], value.List(fields[1:])
		seen[key]++
		before, _ := into.Get(key)
		switch seen[key] {
		case 1:
			into.Set(key, rest)
		case 2:
			into.Set(key, []any{before, rest})
		default:
			into.Set(key, append(before.([]any), rest))
		}
	}
}

func (m *Getent) fields(line string) []string {
	if m.Split != "" {
		return strings.Split(line, m.Split)
	}
	switch m.Database {
	case "passwd", "shadow", "group", "gshadow":
		return strings.Split(line, ":")
	}
	return strings.Fields(line)
}
