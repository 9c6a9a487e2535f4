package packages

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed debconf.sh
var debconfScript string

// Debconf is the module debconf.
type Debconf struct {
	Name     string         `kk:"name,required,alias=pkg" doc:"name of the package"`
	Question string         `kk:"question,alias=selection|setting" doc:"question to answer. Default: none is answered, and all answers are returned"`
	Type     string         `kk:"vtype" choices:"boolean,error,multiselect,note,password,seen,select,string,text,title" doc:"type of the question; seen only sets the flag that it was asked"`
	Value    *redact.Secret `kk:"value,alias=answer" doc:"answer to set; it is sent over standard input"`
	Unseen   bool           `kk:"unseen" default:"no" doc:"do not mark the question as seen"`
}

func debconfSpec() module.Spec {
	return module.Spec{
		Name:    "debconf",
		Summary: "Answers questions of debconf, which Debian packages ask during installation.",
		Notes:   []string{"An installed package uses the new answer after `dpkg-reconfigure`."},
		Examples: []string{
			"- name: Do not use dash as /bin/sh\n  debconf:\n    name: dash\n    question: dash/sh\n    vtype: boolean\n" +
				"    value: \"true\"",
		},
		Returns: []module.Return{
			{Key: "current", Type: "dict", Doc: "answer after the task, or all answers; passwords are masked"},
			{Key: "previous", Type: "dict", Doc: "answer before the task"},
		},
		New: func() module.Runner { return new(Debconf) },
	}
}

func isDebconfWord(word string) error {
	if strings.ContainsAny(word, " \t\r\n\x00") || strings.HasPrefix(word, "-") {
		return fmt.Errorf("%q is not the name of a package or of its question", word)
	}
	return nil
}

// Rules implements schema.Ruled.
func (*Debconf) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name").Says("name is empty"),
		schema.Parses("one word", isDebconfWord, "name", "question"),
		schema.Refuses("vtype", "value").Without("question").Says("vtype and value need question"),
		schema.Needs("vtype", "value").With("question").
			Says("when supplying a question you must supply a valid vtype and value"),
		schema.Looks("one line", schema.OneLine, "value"),
	}
}

// Run implements module.Runner.
func (m *Debconf) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	want := m.desired()
	a, err := c.Probe(ctx, hostscript.New(debconfScript, "debconf_read").Args(m))
	if err != nil {
		return module.Result{}, err
	}
	if m.Question == "" {
		return module.Result{Data: value.NewDict("current", debconfAnswers(a.Get("all")))}, nil
	}
	had := a.Get("value")
	if m.Type == "seen" {
		had = a.Get("seen")
	}
	r := module.ResultOf(a, "current", value.NewDict(m.Question, m.shown(want)), "previous",
		value.NewDict(m.Question, m.shown(had)))
	r.Changed = had != want || m.Type != "seen" && !a.Has("value")
	c.Show(&r, m.Name, value.NewDict(m.Question, m.shown(had)), value.NewDict(m.Question, m.shown(want)))
	act := hostscript.New(debconfScript, "debconf_set").Args(m)
	return c.Act(ctx, r, act, m.Name+" "+m.Question+" "+m.Type+" "+want+"\n")
}

func (m *Debconf) desired() string {
	if m.Question == "" {
		return ""
	}
	want := m.Value.Reveal()
	if m.Type == "boolean" || m.Type == "seen" {
		switch want = strings.ToLower(want); want {
		case "yes", "on", "1":
			want = "true"
		case "no", "off", "0":
			want = "false"
		}
	}
	return want
}

func (m *Debconf) shown(answer string) string {
	if m.Type == "password" && answer != "" {
		return "********"
	}
	return answer
}

// debconfAnswers reads lines "* QUESTION: ANSWER"; the star marks seen questions.
func debconfAnswers(text string) *value.Dict {
	out := value.NewDict()
	for _, line := range module.Lines(text) {
		if question, answer, ok := strings.Cut(strings.TrimLeft(line, "* "), ":"); ok {
			out.Set(question, strings.TrimSpace(answer))
		}
	}
	return out
}
