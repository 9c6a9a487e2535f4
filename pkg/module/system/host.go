// Package system holds the modules for what a host's administration tools
// keep: services, packages, users and groups, the host name, kernel settings
// and modules, mounts and cron jobs.
//
// Each module runs one POSIX shell script that looks, acts if it must, and
// answers in fields (lib.sh). Modules that edit a table (mount, sysctl, cron)
// read with one script, decide in Go, and act with a second one only if
// something is to change. In check mode the same scripts run with a flag that
// keeps them from acting.
package system

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

//go:embed lib.sh
var library string

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		systemdSpec(), serviceSpec(),
		packageSpec(), aptSpec(), dnfSpec(), zypperSpec(), apkSpec(),
		userSpec(), groupSpec(),
		hostnameSpec(), sysctlSpec(), modprobeSpec(), mountSpec(), cronSpec(),
		getentSpec(), packageFactsSpec(), serviceFactsSpec(),
		authorizedKeySpec(), knownHostsSpec(),
		aptRepositorySpec(), aptKeySpec(), deb822RepositorySpec(), yumRepositorySpec(), rpmKeySpec(),
		selinuxSpec(), sebooleanSpec(), mountFactsSpec(), sysvinitSpec(), localeGenSpec(), pamLimitsSpec(), pipSpec(),
		debconfSpec(), dpkgSelectionsSpec(), timezoneSpec(), alternativesSpec(),
	}
}

// script is shell code with its parameters.
type script struct {
	code   string
	params []string // key=value
	words  []string // positional parameters
	stdin  io.Reader
	probe  bool // changes nothing, in check mode or not
}

// newScript starts a script made of several files of code.
func newScript(code ...string) *script { return &script{code: strings.Join(code, "\n")} }

func (s *script) set(key, text string) *script {
	s.params = append(s.params, key+"="+text)
	return s
}

// flag sets key to 1 if on; scripts read an unset parameter as off.
func (s *script) flag(key string, on bool) *script {
	if on {
		return s.set(key, "1")
	}
	return s
}

// choice sets key to 1 or 0, if the argument was given.
func (s *script) choice(key string, on *bool) *script {
	if on == nil {
		return s
	}
	return s.flag(key, *on).flag("no_"+key, !*on)
}

func (s *script) number(key string, n *int) *script {
	if n == nil {
		return s
	}
	return s.set(key, strconv.Itoa(*n))
}

// answer is what a script said, by key.
type answer struct {
	fields map[string][]string
	stderr string
}

func (a *answer) get(key string) string {
	if v := a.fields[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func (a *answer) has(key string) bool { return len(a.fields[key]) > 0 }

func (a *answer) changed() bool { return a.has("changed") }

// number is a field that is a number; 0 if it is none.
func (a *answer) number(key string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(a.get(key)))
	return n
}

// run runs the script. The field fail of its answer becomes the error.
func (s *script) run(ctx context.Context, c *module.Call) (*answer, error) {
	params := s.params
	if c.Check {
		params = append(params, "check=1")
	}
	words := append(append(params, "--"), s.words...)
	var out, errs bytes.Buffer
	exit, err := c.Conn.Run(ctx, connector.Command{
		Line:  shell.Script(library+s.code, words...),
		Stdin: s.stdin, Stdout: &out, Stderr: &errs,
		Probe: s.probe || c.Check,
	})
	if err != nil {
		return nil, err
	}
	a, err := parseAnswer(out.Bytes())
	if err != nil || exit.Code != 0 {
		return nil, scriptError(exit, errs.String())
	}
	a.stderr = strings.TrimSpace(errs.String())
	if a.has("fail") {
		return a, errors.New(strings.TrimSpace(a.get("fail")))
	}
	return a, nil
}

func scriptError(exit connector.Exit, stderr string) error {
	if exit.Signal != "" {
		return fmt.Errorf("the script on the host was ended by signal %s", exit.Signal)
	}
	return fmt.Errorf("the script on the host ended with status %d: %s", exit.Code, strings.TrimSpace(stderr))
}

func parseAnswer(out []byte) (*answer, error) {
	a := &answer{fields: map[string][]string{}}
	for len(out) > 0 {
		field, rest, whole := bytes.Cut(out, []byte{0})
		key, text, pair := strings.Cut(string(field), "=")
		if !whole || !pair {
			return nil, fmt.Errorf("the host's answer breaks off at %.40q", field)
		}
		a.fields[key] = append(a.fields[key], text)
		out = rest
	}
	return a, nil
}

// result starts a module's result from an answer.
func (a *answer) result(pairs ...any) module.Result {
	return module.Result{Changed: a.changed(), Warnings: a.fields["warn"], Data: value.NewDict(pairs...)}
}

// diffOf is a difference between two states that are shown as JSON.
func diffOf(header string, before, after *value.Dict) []event.Diff {
	return []event.Diff{{BeforeHeader: header, AfterHeader: header, Before: before, After: after}}
}

func textDiff(header, before, after string) []event.Diff {
	return []event.Diff{{BeforeHeader: header, AfterHeader: header, Before: before, After: after}}
}

// deref is the value of an optional text, "" if there is none.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// lines splits a text into lines without their ends.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// joined is the counterpart of lines.
func joined(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// list is strings as a value of playbooks.
func list(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}
