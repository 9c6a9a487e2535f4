// Package hostscript runs POSIX shell scripts that inspect a host, change it if necessary,
// and answer in fields.
//
// A script gets its parameters quoted, as variables p_NAME, and answers with the functions of
// lib.sh: say KEY TEXT, fail TEXT, step WHAT COMMAND... In check mode p_check is set and step
// only counts the changes, so one script serves both modes.
package hostscript

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/schema"
)

//go:embed lib.sh
var library string

// Script is shell code with its parameters. They are visible on the command line, so none
// may be a secret: secrets go through Env or Stdin.
type Script struct {
	code   string
	params []string // key=value
	err    error    // of Args
	Words  []string // positional parameters
	Env    map[string]string
	Stdin  io.Reader
	Probe  bool // changes nothing, in check mode or not
	Renews bool // may change what applies to new logins, such as groups
	Large  bool // its answer may contain content of the host: a file, objects of a cluster
	// IgnoresDeferred is that of connector.Command.
	IgnoresDeferred bool
}

// New returns a script whose code is the given texts, in order.
func New(code ...string) *Script { return &Script{code: strings.Join(code, "\n")} }

// Set gives the script the parameter p_KEY.
func (s *Script) Set(key, text string) *Script {
	s.params = append(s.params, key+"="+text)
	return s
}

// Args passes the arguments of a module, whose struct m points to, each under its own name:
// p_NAME. Secrets among them are skipped, see schema.Params. A parameter that is set later
// replaces one of them.
func (s *Script) Args(m any) *Script {
	params, err := schema.Params(m)
	s.err = errors.Join(s.err, err)
	for _, p := range params {
		s.Set(p.Name, p.Text)
	}
	return s
}

// Flag sets key to 1 if on; scripts read an unset parameter as off.
func (s *Script) Flag(key string, on bool) *Script {
	if on {
		return s.Set(key, "1")
	}
	return s
}

// Number sets key to a number, if the argument was given.
func (s *Script) Number(key string, n *int) *Script {
	if n == nil {
		return s
	}
	return s.Set(key, strconv.Itoa(*n))
}

// HasParams reports whether the script was given any parameter.
func (s *Script) HasParams() bool { return len(s.params) > 0 }

// Answer is the output of a script, by key.
type Answer map[string][]string

// Get returns the last text for a key, "" if there is none.
func (a Answer) Get(key string) string {
	if all := a[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// Has reports whether there is a text for a key.
func (a Answer) Has(key string) bool { return len(a[key]) > 0 }

// Together is an error unless the keys have equally many texts: texts with the same index
// belong together.
func (a Answer) Together(keys ...string) error {
	for _, key := range keys[1:] {
		if len(a[key]) != len(a[keys[0]]) {
			return fmt.Errorf("the host's answer has %d values of %s and %d of %s", len(a[keys[0]]), keys[0], len(a[key]), key)
		}
	}
	return nil
}

// Number returns the last text for a key as a number, 0 if it is not one.
func (a Answer) Number(key string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(a.Get(key)))
	return n
}

// Changed reports whether the script changed the host, or in check mode would.
func (a Answer) Changed() bool { return a.Has("changed") }

// Run runs the script. A text for the key fail becomes the error; the answer is returned
// with it.
func (s *Script) Run(ctx context.Context, conn connector.Connector, check bool) (Answer, error) {
	if s.err != nil {
		return nil, s.err
	}
	params := append([]string{}, s.params...)
	if check {
		params = append(params, "check=1")
	}
	words := append(append(params, "--"), s.Words...)
	cmd := connector.Script{Library: library + s.code, Args: words, Renews: s.Renews}.Command()
	cmd.Env, cmd.Stdin = s.Env, s.Stdin
	cmd.Probe, cmd.IgnoresDeferred = s.Probe || check, s.IgnoresDeferred
	most := connector.MaxAnswer
	if s.Large {
		most = connector.MaxLargeAnswer
	}
	out, err := connector.Collect(ctx, conn, cmd, most)
	if err != nil {
		return nil, err
	}
	a, err := parse(out.Stdout)
	if err != nil || out.Code != 0 {
		return nil, scriptError(out.Exit, out.Stderr)
	}
	if a.Has("fail") {
		return a, errors.New(cmp.Or(strings.TrimSpace(a.Get("fail")), "the script on the host failed without a message"))
	}
	return a, nil
}

func scriptError(exit connector.Exit, stderr string) error {
	if exit.Signal != "" {
		return fmt.Errorf("the script on the host was killed by signal %s", exit.Signal)
	}
	return fmt.Errorf("the script on the host exited with status %d: %s", exit.Code, strings.TrimSpace(stderr))
}

func parse(out []byte) (Answer, error) {
	a := Answer{}
	for len(out) > 0 {
		field, rest, whole := bytes.Cut(out, []byte{0})
		key, text, pair := strings.Cut(string(field), "=")
		if !whole || !pair {
			return nil, fmt.Errorf("the host's answer is truncated at %.40q", field)
		}
		a[key] = append(a[key], text)
		out = rest
	}
	return a, nil
}
