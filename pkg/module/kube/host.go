// Package kube holds the modules that change what a Kubernetes cluster holds:
// k8s, k8s_info and helm. They run kubectl and helm of a host.
//
// A module sends one POSIX shell script that looks, acts and answers in fields
// (lib.sh). Objects, values and charts travel on standard input, never in a
// command line, and lie on the host in a folder 0700 that the script removes.
package kube

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
)

//go:embed lib.sh
var library string

// Modules returns the modules of this package.
func Modules() []module.Spec { return []module.Spec{k8sSpec(), infoSpec(), helmSpec()} }

// script is shell code with its parameters.
type script struct {
	code   string
	call   string // the function to call
	params []string
	stdin  io.Reader
	probe  bool // changes nothing, in check mode or not
}

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

// answer is what a script said, by key.
type answer map[string][]string

func (a answer) get(key string) string {
	if v := a[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// missingError says that the host lacks the program that a module runs, or the kubeconfig.
type missingError struct{ program string }

func (e *missingError) Error() string {
	return fmt.Sprintf("the host has no %s: a task before must put it there, or name its path", e.program)
}

// run runs the script. The fields fail and missing of its answer become the error.
func (s *script) run(ctx context.Context, c *module.Call) (answer, error) {
	s.flag("check", c.Check)
	var out, errs bytes.Buffer
	exit, err := c.Conn.Run(ctx, connector.Command{
		Line:  shell.Script(library+s.code+"\n"+s.call+"\n", s.params...),
		Stdin: s.stdin, Stdout: &out, Stderr: &errs,
		Probe: s.probe || c.Check,
	})
	if err != nil {
		return nil, err
	}
	a, err := parseAnswer(out.Bytes())
	switch {
	case exit.Signal != "":
		return nil, fmt.Errorf("the script on the host was ended by signal %s", exit.Signal)
	case err != nil, exit.Code != 0:
		return nil, fmt.Errorf("the script on the host ended with status %d: %s", exit.Code, strings.TrimSpace(errs.String()))
	case a.get("missing") != "":
		return a, &missingError{a.get("missing")}
	case a.get("fail") != "":
		return a, errors.New(strings.TrimSpace(a.get("fail")))
	}
	return a, nil
}

func parseAnswer(out []byte) (answer, error) {
	a := answer{}
	for len(out) > 0 {
		field, rest, whole := bytes.Cut(out, []byte{0})
		key, text, pair := strings.Cut(string(field), "=")
		if !whole || !pair {
			return nil, fmt.Errorf("the host's answer breaks off at %.40q", field)
		}
		a[key] = append(a[key], text)
		out = rest
	}
	return a, nil
}

// lostHost tells whether the host, not the work, failed.
func lostHost(err error) bool {
	var lost *connector.UnreachableError
	return errors.As(err, &lost)
}
