package general

import (
	"context"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/module/account"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// CronVar is the module cronvar.
type CronVar struct {
	Name  string  `kk:"name,required" doc:"the variable"`
	Value *string `kk:"value" doc:"value as written in the crontab: in quotes, if it begins or ends with blanks"`
	State string  `kk:"state" default:"present" choices:"absent,present" doc:"whether the variable should exist"`
	account.Crontab
	InsertAfter  string `kk:"insertafter" doc:"existing variable to insert a new one after"`
	InsertBefore string `kk:"insertbefore" doc:"existing variable to insert a new one before"`
}

func cronVarSpec() module.Spec {
	return module.Spec{
		Name: "cronvar", Collection: "community.general",
		Summary: "Manages environment variables in crontabs and in /etc/cron.d.",
		Notes: []string{"A new variable is inserted at the top, so that it applies to all jobs, unless insertafter or " +
			"insertbefore name an existing one."},
		Examples: []string{
			"- name: Send the mail of cron jobs to the operators\n  cronvar:\n    name: MAILTO\n" +
				"    value: ops@example.org\n    cron_file: backup",
		},
		Returns: []module.Return{
			{Key: "vars", Type: "list", Doc: "names of the variables that are in the crontab"},
			{Key: "cron_file", Type: "str", Doc: "the argument, if given"},
			{Key: "backup_file", Type: "str", Doc: "where the old crontab was kept"},
		},
		New: func() module.Runner { return new(CronVar) },
	}
}

// Rules implements schema.Ruled.
func (*CronVar) Rules() schema.Rules {
	return schema.Rules{
		schema.Looks("the name of a variable", isEnvName, "name"),
		schema.Needs("value").If("state", "present").Says("You must specify 'value' to insert a new cron variable"),
		schema.Looks("one line", schema.OneLine, "value"),
		schema.AtMostOne("insertbefore", "insertafter"),
		account.IsAccount("user", "user"),
	}
}

// Run implements module.Runner.
func (m *CronVar) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	after, r, err := m.Keep(ctx, c, m.edit, false)
	if err != nil {
		return r, err
	}
	r.Data.Set("vars", value.List(account.CronEnvs(after)))
	return r, nil
}

// edit does not change a variable that already has the value.
func (m *CronVar) edit(tab []string) []string {
	for _, line := range tab {
		_, text, _ := strings.Cut(line, "=")
		if m.State == "present" && account.EnvName(line) == m.Name && strings.TrimSpace(text) == strings.TrimSpace(*m.Value) {
			return tab
		}
	}
	return account.EditEnv(tab, account.CronEnv{
		Name: m.Name, Line: m.Name + "=" + schema.Text(m.Value), Absent: m.State == "absent", After: m.InsertAfter,
		Before: m.InsertBefore,
	})
}

func isEnvName(name string) bool { return account.EnvName(name+"=") == name }
