package account

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Cron is the module cron.
type Cron struct {
	Name        string `kk:"name" doc:"description of the job, kept as a comment above it; with env, the name of the variable. Needed unless a whole cron_file is removed"`
	Job         string `kk:"job,alias=value" doc:"command to run; with env, the value of the variable"`
	State       string `kk:"state" default:"present" choices:"absent,present" doc:"whether the job or the variable should exist"`
	Minute      string `kk:"minute" default:"*" doc:"0-59, *, */2"`
	Hour        string `kk:"hour" default:"*" doc:"0-23, *, */2"`
	Day         string `kk:"day,alias=dom" default:"*" doc:"day of the month: 1-31, *, */2"`
	Month       string `kk:"month" default:"*" doc:"1-12, JAN-DEC, *, */2"`
	Weekday     string `kk:"weekday,alias=dow" default:"*" doc:"0-6 from Sunday, SUN-SAT, *"`
	SpecialTime string `kk:"special_time" choices:"annually,daily,hourly,monthly,reboot,weekly,yearly" doc:"nickname of a schedule, instead of minute, hour, day, month and weekday"`
	Crontab
	Disabled     bool   `kk:"disabled" default:"no" doc:"comment the job out"`
	Env          bool   `kk:"env" default:"no" doc:"manage an environment variable instead of a job"`
	InsertAfter  string `kk:"insertafter" doc:"with env, existing variable to insert the new one after"`
	InsertBefore string `kk:"insertbefore" doc:"with env, existing variable to insert the new one before"`
}

func cronSpec() module.Spec {
	return module.Spec{
		Name:    "cron",
		Summary: "Manages jobs and environment variables in crontabs and in /etc/cron.d.",
		Examples: []string{
			"- name: Back up etcd every night\n  cron:\n    name: back up etcd\n    hour: \"2\"\n    minute: \"0\"\n" +
				"    job: /usr/local/bin/etcd-backup.sh",
			"- name: Remove the job\n  cron:\n    name: back up etcd\n    state: absent",
		},
		Returns: []module.Return{
			{Key: "jobs", Type: "list", Doc: "names of the jobs in the crontab"},
			{Key: "envs", Type: "list", Doc: "names of the variables in the crontab"},
			{Key: "cron_file", Type: "str", Doc: "the argument, if given"},
			{Key: "backup_file", Type: "str", Doc: "backup of the previous crontab"},
		},
		New: func() module.Runner { return new(Cron) },
	}
}

const cronMark = "#Ansible: "

// Rules implements schema.Ruled.
func (*Cron) Rules() schema.Rules {
	return append(schema.Rules{
		schema.Parses("one line", cronLine, "name", "job", "minute", "hour", "day", "month", "weekday", "user"),
		schema.Needs("name").If("state", "present"),
		schema.Needs("name").Without("cron_file"),
		schema.Needs("job").If("state", "present"),
		schema.Refuses("minute", "hour", "day", "month", "weekday").With("special_time").
			Says("You must specify time and date fields or special time."),
		schema.Needs("user").With("cron_file").If("state", "present").Unless("env", true).
			Says("To use cron_file=... parameter you must specify user=... as well"),
		schema.Refuses("insertafter", "insertbefore").Unless("env", true).
			Says("insertafter and insertbefore parameters are valid only with env=yes"),
		IsAccount("user", "user"),
	}, cronTimes()...)
}

// Run implements module.Runner.
func (m *Cron) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	after, r, err := m.Keep(ctx, c, m.edit, m.State == "absent")
	if err != nil {
		return r, err
	}
	r.Data.Set("jobs", value.List(cronJobs(after)))
	r.Data.Set("envs", value.List(CronEnvs(after)))
	return r, nil
}

func cronLine(text string) error {
	if !schema.OneLine(strings.Trim(text, "\r\n")) {
		return fmt.Errorf("job should not contain any newlines: %q", text)
	}
	return nil
}

func (m *Cron) edit(tab []string) []string {
	switch {
	case m.Name == "":
		return nil // all of the file
	case m.Env:
		return EditEnv(tab, CronEnv{m.Name, fmt.Sprintf(`%s="%s"`, m.Name, m.Job), m.State == "absent", m.InsertAfter,
			m.InsertBefore})
	case m.State == "absent":
		return m.without(tab)
	}
	return m.editJob(tab)
}

// line is the job as written in the crontab.
func (m *Cron) line() string {
	when := strings.Join([]string{m.Minute, m.Hour, m.Day, m.Month, m.Weekday}, " ")
	if m.SpecialTime != "" {
		when = "@" + m.SpecialTime
	}
	if m.CronFile != "" {
		when += " " + m.User
	}
	line := when + " " + strings.Trim(m.Job, "\r\n")
	if m.Disabled {
		return "#" + line
	}
	return line
}

// editJob replaces the job below its mark, adds the mark to an existing job without
// one, or appends both.
func (m *Cron) editJob(tab []string) []string {
	mark, job := cronMark+m.Name, m.line()
	out := make([]string, 0, len(tab)+2)
	found := false
	for i := 0; i < len(tab); i++ {
		if tab[i] == mark {
			if !found {
				out = append(out, mark, job)
			}
			found = true
			i++ // the previous job
			continue
		}
		out = append(out, tab[i])
	}
	if found {
		return out
	}
	for i, line := range out {
		if line == job && (i == 0 || !strings.HasPrefix(out[i-1], cronMark)) {
			return append(out[:i:i], append([]string{mark}, out[i:]...)...)
		}
	}
	return append(out, mark, job)
}

func (m *Cron) without(tab []string) []string {
	out := make([]string, 0, len(tab))
	for i := 0; i < len(tab); i++ {
		if tab[i] == cronMark+m.Name {
			i++
			continue
		}
		out = append(out, tab[i])
	}
	return out
}

func cronJobs(tab []string) []string {
	var names []string
	for _, line := range tab {
		if name, ok := strings.CutPrefix(line, cronMark); ok {
			names = append(names, name)
		}
	}
	return names
}
