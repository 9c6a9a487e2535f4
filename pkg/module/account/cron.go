package account

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

//go:embed cron.sh
var cronScript string

// Cron is the module cron.
type Cron struct {
	Name         string `kk:"name" doc:"what marks the job, as a comment before it; with env, the variable. Only a whole cron_file can be removed without a name"`
	Job          string `kk:"job,alias=value" doc:"the command, or with env the variable's value"`
	State        string `kk:"state" default:"present" choices:"absent,present" doc:"whether the job or variable is there"`
	Minute       string `kk:"minute" default:"*" doc:"0-59, *, */2"`
	Hour         string `kk:"hour" default:"*" doc:"0-23, *, */2"`
	Day          string `kk:"day,alias=dom" default:"*" doc:"day of the month: 1-31, *, */2"`
	Month        string `kk:"month" default:"*" doc:"1-12, JAN-DEC, *, */2"`
	Weekday      string `kk:"weekday,alias=dow" default:"*" doc:"0-6 from Sunday, SUN-SAT, *"`
	SpecialTime  string `kk:"special_time" choices:"annually,daily,hourly,monthly,reboot,weekly,yearly" doc:"a name for the time, instead of minute and so on"`
	User         string `kk:"user" doc:"whose crontab; in a cron_file, who runs the job. Default: the user that the task runs as"`
	CronFile     string `kk:"cron_file,path" doc:"file in /etc/cron.d, or an absolute path, instead of a crontab"`
	Disabled     bool   `kk:"disabled" default:"no" doc:"keep the job as a comment"`
	Env          bool   `kk:"env" default:"no" doc:"name and job are a variable of the crontab"`
	InsertAfter  string `kk:"insertafter" doc:"variable that a new variable comes after"`
	InsertBefore string `kk:"insertbefore" doc:"variable that a new variable comes before"`
	Backup       bool   `kk:"backup" default:"no" doc:"keep the old crontab in a temporary file"`
}

func cronSpec() module.Spec {
	return module.Spec{
		Name:    "cron",
		Summary: "Keeps jobs and variables in crontabs and in /etc/cron.d.",
		Examples: []string{
			"- name: Back up etcd every night\n  cron:\n    name: back up etcd\n    hour: \"2\"\n    minute: \"0\"\n    job: /usr/local/bin/etcd-backup.sh",
			"- name: Remove the job\n  cron:\n    name: back up etcd\n    state: absent",
		},
		Returns: []module.Return{
			{Key: "jobs", Type: "list", Doc: "names of the jobs that are in the crontab"},
			{Key: "envs", Type: "list", Doc: "names of the variables that are in it"},
			{Key: "cron_file", Type: "str", Doc: "the argument, if given"},
			{Key: "backup_file", Type: "str", Doc: "where the old crontab was kept"},
		},
		New: func() module.Runner { return new(Cron) },
	}
}

const cronMark = "#Ansible: "

// Run implements module.Runner.
func (m *Cron) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if err := m.check(); err != nil {
		return module.Result{}, err
	}
	a, err := m.script("cron_read", true).Run(ctx, c.Conn, c.Check)
	if err != nil {
		return module.Result{}, err
	}
	before := strings.TrimSuffix(a.Get("text"), "x")
	tab := m.tab(before)
	after := module.JoinLines(m.edit(tab))
	whole := m.Name == "" || m.CronFile != "" && m.State == "absent" && a.Has("exists") && strings.TrimSpace(after) == ""
	if whole { // the file goes with its last entry
		after = ""
	}
	r := module.Result{Changed: after != module.JoinLines(tab) || whole && a.Has("exists"), Data: value.NewDict()}
	r.Data.Set("jobs", value.List(cronJobs(module.Lines(after))))
	r.Data.Set("envs", value.List(cronEnvs(module.Lines(after))))
	if m.CronFile != "" {
		r.Data.Set("cron_file", m.CronFile)
	}
	if c.Diff && r.Changed {
		r.Diff = module.TextDiff(m.header(), before, after)
	}
	if !r.Changed || c.Check {
		return r, nil
	}
	act := m.script("cron_write", false).Flag("backup", m.Backup && a.Has("exists")).Flag("remove", whole)
	act.Stdin = strings.NewReader(after)
	done, err := act.Run(ctx, c.Conn, c.Check)
	if err == nil && done.Has("backup") {
		r.Data.Set("backup_file", done.Get("backup"))
	}
	return r, err
}

func (m *Cron) check() error {
	for _, text := range []string{m.Name, m.Job, m.Minute, m.Hour, m.Day, m.Month, m.Weekday, m.User} {
		if strings.ContainsAny(strings.Trim(text, "\r\n"), "\r\n\x00") {
			return fmt.Errorf("job should not contain any newlines: %q", text)
		}
	}
	switch {
	case m.Name == "" && (m.State == "present" || m.CronFile == ""):
		return errors.New("missing required arguments: name")
	case m.State == "present" && m.Job == "":
		return errors.New("state is present but all of the following are missing: job")
	case m.SpecialTime != "" && m.timed():
		return errors.New("You must specify time and date fields or special time.") //nolint:staticcheck // the text users know
	case m.CronFile != "" && m.User == "" && m.State == "present" && !m.Env:
		return errors.New("To use cron_file=... parameter you must specify user=... as well") //nolint:staticcheck // the text users know
	case (m.InsertAfter != "" || m.InsertBefore != "") && !m.Env:
		return errors.New("insertafter and insertbefore parameters are valid only with env=yes")
	}
	if m.User == "" {
		return nil
	}
	return checkAccount("user", m.User)
}

func (m *Cron) timed() bool {
	return m.Minute != "*" || m.Hour != "*" || m.Day != "*" || m.Month != "*" || m.Weekday != "*"
}

func (m *Cron) file() string {
	if m.CronFile == "" || path.IsAbs(m.CronFile) {
		return m.CronFile
	}
	return path.Join("/etc/cron.d", m.CronFile)
}

func (m *Cron) header() string {
	if m.CronFile != "" {
		return m.file()
	}
	return "crontab"
}

func (m *Cron) script(what string, probe bool) *hostscript.Script {
	s := hostscript.New(cronScript, what)
	s.Probe = probe
	if m.CronFile == "" {
		return s.Set("user", m.User)
	}
	return s.Set("file", m.file())
}

// tab is the crontab's lines without the header that some crontab -l show.
func (m *Cron) tab(text string) []string {
	all := module.Lines(text)
	for i := 0; i < 3 && len(all) > 0 && m.CronFile == ""; i++ {
		if !strings.HasPrefix(all[0], "# DO NOT EDIT THIS FILE") && !strings.HasPrefix(all[0], "# (/tmp/") && !strings.HasPrefix(all[0], "# (Cron version") {
			break
		}
		all = all[1:]
	}
	return all
}

func (m *Cron) edit(tab []string) []string {
	switch {
	case m.Env:
		return m.editEnv(tab)
	case m.State == "absent":
		return m.without(tab)
	}
	return m.editJob(tab)
}

// line is the job as it stands in the crontab.
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

// editJob replaces the job after its mark, marks a job that stands there
// without one, or adds both at the end.
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
			i++ // the job as it was
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

// editEnv sets or removes a variable. A new one comes first, or where
// insertafter or insertbefore say.
func (m *Cron) editEnv(tab []string) []string {
	line := fmt.Sprintf(`%s="%s"`, m.Name, m.Job)
	out := make([]string, 0, len(tab)+1)
	found := false
	for _, old := range tab {
		if envName(old) != m.Name {
			out = append(out, old)
			continue
		}
		if m.State == "present" && !found {
			out = append(out, line)
		}
		found = true
	}
	if found || m.State == "absent" {
		return out
	}
	at := m.envPlace(out)
	return append(out[:at:at], append([]string{line}, out[at:]...)...)
}

func (m *Cron) envPlace(tab []string) int {
	for i, line := range tab {
		switch name := envName(line); {
		case name == "":
		case name == m.InsertAfter:
			return i + 1
		case name == m.InsertBefore:
			return i
		}
	}
	return 0
}

// envName is the variable that a line of a crontab sets, "" if it sets none.
func envName(line string) string {
	name, _, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.ContainsAny(name, " \t#*@/,") || name[0] >= '0' && name[0] <= '9' {
		return ""
	}
	return name
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

func cronEnvs(tab []string) []string {
	var names []string
	for _, line := range tab {
		if name := envName(line); name != "" {
			names = append(names, name)
		}
	}
	return names
}
