package general

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// PAMLimits is the module pam_limits.
type PAMLimits struct {
	Domain  string `kk:"domain,required" doc:"domain of the limit: a user, @GROUP, * or %"`
	Type    string `kk:"limit_type,required" choices:"hard,soft,-" doc:"hard, soft, or - for both"`
	Item    string `kk:"limit_item,required" choices:"core,data,fsize,memlock,nofile,rss,stack,cpu,nproc,as,maxlogins,maxsyslogins,priority,locks,sigpending,msgqueue,nice,rtprio,chroot" doc:"what is limited"`
	Value   string `kk:"value,required" doc:"a number, or unlimited, infinity or -1; for nice and priority -20 to 19"`
	Dest    string `kk:"dest,path" default:"/etc/security/limits.conf" doc:"the file"`
	UseMax  bool   `kk:"use_max" default:"no" doc:"keep the existing value if it is higher"`
	UseMin  bool   `kk:"use_min" default:"no" doc:"keep the existing value if it is lower"`
	Comment string `kk:"comment" doc:"comment of the line. Default: the one that it has"`
	Backup  bool   `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
}

func pamLimitsSpec() module.Spec {
	return module.Spec{
		Name: "pam_limits", Collection: "community.general",
		Summary: "Manages limits in limits.conf.",
		Notes:   []string{"They apply from the next login; systemd services have limits of their own."},
		Examples: []string{"- name: Let everybody open many files\n  pam_limits:\n    domain: \"*\"\n" +
			"    limit_type: \"-\"\n    limit_item: nofile\n    value: \"65536\"\n" +
			"    dest: /etc/security/limits.d/90-files.conf"},
		Returns: []module.Return{
			{Key: "msg", Type: "str", Doc: "the line"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup"},
		},
		New: func() module.Runner { return new(PAMLimits) },
	}
}

// Rules implements schema.Ruled.
func (*PAMLimits) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("domain"),
		schema.Refuses("use_min").If("use_max", true).Says("Cannot use use_min and use_max at the same time."),
		schema.Looks("one word", func(d string) bool { return !strings.ContainsAny(d, " \t\r\n#\x00") }, "domain"),
		schema.Looks("one line", schema.OneLine, "comment"),
	}
}

// Run implements module.Runner.
func (m *PAMLimits) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if err := m.check(); err != nil {
		return module.Result{}, err
	}
	f, err := module.ReadText(ctx, c, m.Dest)
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict()}
	f.Backup = m.Backup
	if f.After, r.Msg, err = m.edit(f.Before); err != nil {
		return r, err
	}
	return r, f.Save(ctx, c, module.FileAttrs{}, &r)
}

func (m *PAMLimits) check() error {
	return m.valid(m.Item, m.Value)
}

// valid validates the value of an item: see limits.conf(5).
func (m *PAMLimits) valid(item, text string) error {
	n, err := strconv.Atoi(text)
	switch item {
	case "nice", "priority":
		if err != nil || n < -20 || n > 19 {
			//nolint:staticcheck // the text users know
			return fmt.Errorf("Value of %s must be between -20 and 19, got %q", item, text)
		}
		return nil
	case "chroot":
		if text == "" || strings.ContainsAny(text, " \t\r\n#\x00") {
			return fmt.Errorf("value of chroot must be a folder, got %q", text)
		}
		return nil
	}
	if unlimited(text) || err == nil && n >= 0 {
		return nil
	}
	//nolint:staticcheck // the text users know
	return fmt.Errorf("Argument 'value' can be one of 'unlimited', 'infinity', '-1' or positive number, got %q", text)
}

func unlimited(text string) bool { return text == "unlimited" || text == "infinity" || text == "-1" }

// edit changes the value of the line, or appends the line.
func (m *PAMLimits) edit(text string) (after, line string, err error) {
	all := module.Lines(text)
	for i, old := range all {
		spec, comment, _ := strings.Cut(old, "#")
		f := strings.Fields(spec)
		if len(f) != 4 || f[0] != m.Domain || f[1] != m.Type || f[2] != m.Item {
			continue
		}
		want := m.Value
		if m.UseMax || m.UseMin {
			if want, err = m.choose(f[3]); err != nil {
				return "", "", err
			}
		}
		line = old
		if want != f[3] {
			if m.Comment != "" {
				comment = m.Comment
			}
			line = m.line(want, comment)
			all[i] = line
		}
	}
	if line == "" {
		line = m.line(m.Value, m.Comment)
		all = append(all, line)
	}
	if after = module.JoinLines(all); after == text+"\n" {
		after = text
	}
	return after, line, nil
}

func (m *PAMLimits) line(want, comment string) string {
	line := strings.Join([]string{m.Domain, m.Type, m.Item, want}, "\t")
	if comment != "" {
		line += "\t#" + comment
	}
	return line
}

// choose returns the higher or the lower of the existing and the desired value.
func (m *PAMLimits) choose(there string) (string, error) {
	if err := m.valid(m.Item, there); err != nil || m.Item == "chroot" {
		return "", fmt.Errorf("%s has %q, which cannot be compared with %q", m.Dest, there, m.Value)
	}
	bounded := m.Item == "nice" || m.Item == "priority" // for these, -1 is a number
	a, _ := strconv.Atoi(there)
	b, _ := strconv.Atoi(m.Value)
	higher := a >= b
	if !bounded && (unlimited(there) || unlimited(m.Value)) {
		higher = unlimited(there)
	}
	if higher == m.UseMax {
		return there, nil
	}
	return m.Value, nil
}
