package account

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// CronVar is the module cronvar.
type CronVar struct {
	Name  string  `kk:"name,required" doc:"the variable"`
	Value *string `kk:"value" doc:"its value, as it is to stand in the crontab: with quotes, if it begins or ends with blanks"`
	State string  `kk:"state" default:"present" choices:"absent,present" doc:"whether the variable is there"`
	crontab
	InsertAfter  string `kk:"insertafter" doc:"variable that a new variable comes after"`
	InsertBefore string `kk:"insertbefore" doc:"variable that a new variable comes before"`
}

func cronVarSpec() module.Spec {
	return module.Spec{
		Name: "cronvar", Collection: "community.general",
		Summary: "Keeps variables in crontabs and in /etc/cron.d.",
		Notes:   []string{"A new variable comes first, so that it is set for all jobs, unless insertafter or insertbefore name one that is there."},
		Examples: []string{
			"- name: Send the mail of cron jobs to the operators\n  cronvar:\n    name: MAILTO\n    value: ops@example.org\n    cron_file: backup",
		},
		Returns: []module.Return{
			{Key: "vars", Type: "list", Doc: "names of the variables that are in the crontab"},
			{Key: "cron_file", Type: "str", Doc: "the argument, if given"},
			{Key: "backup_file", Type: "str", Doc: "where the old crontab was kept"},
		},
		New: func() module.Runner { return new(CronVar) },
	}
}

// Run implements module.Runner.
func (m *CronVar) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	switch {
	case envName(m.Name+"=") != m.Name:
		return module.Result{}, fmt.Errorf("%q is not the name of a variable", m.Name)
	case m.State == "present" && m.Value == nil:
		return module.Result{}, errors.New("You must specify 'value' to insert a new cron variable") //nolint:staticcheck // the text users know
	case strings.ContainsAny(deref(m.Value), "\r\n\x00"):
		return module.Result{}, fmt.Errorf("the value must be one line, got %q", *m.Value)
	case m.InsertAfter != "" && m.InsertBefore != "":
		return module.Result{}, errors.New("parameters are mutually exclusive: insertbefore|insertafter")
	}
	if m.User != "" {
		if err := checkAccount("user", m.User); err != nil {
			return module.Result{}, err
		}
	}
	after, r, err := m.keep(ctx, c, m.edit, false)
	if err != nil {
		return r, err
	}
	r.Data.Set("vars", value.List(cronEnvs(after)))
	return r, nil
}

// edit leaves a variable that has the value already as it is written.
func (m *CronVar) edit(tab []string) []string {
	for _, line := range tab {
		_, text, _ := strings.Cut(line, "=")
		if m.State == "present" && envName(line) == m.Name && strings.TrimSpace(text) == strings.TrimSpace(*m.Value) {
			return tab
		}
	}
	return editEnv(tab, cronEnv{m.Name, m.Name + "=" + deref(m.Value), m.State == "absent", m.InsertAfter, m.InsertBefore})
}
