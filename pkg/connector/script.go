package connector

import (
	"strings"

	"kubekey/pkg/shell"
)

// Script is a command that kk wrote itself, in parts. It leaves nothing behind that
// holds its outputs, and where it wants a number of its own says ${kk_id:-$$}: a
// shell that stays (Stay) runs it in a fork, with less work for the host.
type Script struct {
	// Functions are definitions of functions and nothing else, with names that no other
	// script has: a shell that stays reads them once.
	Functions string
	Library   string   // comes first, and is the same for many commands
	Code      string   // comes after it
	Args      []string // positional parameters of both
	// Renews says that it may change what a login begins with: groups, mostly.
	Renews bool
	// InputVar says that it takes its input as the variable kk_input, if that is not
	// empty: a shell that stays can then do without a pipe.
	InputVar bool
}

// Command returns the command that runs s, wherever that may be.
func (s Script) Command() Command {
	return Command{Line: shell.Script(s.Functions+s.Library+s.Code, s.Args...), Script: &s}
}

// ownNumber is how scripts name what must differ from one run to the next.
const ownNumber = "${kk_id:-$$}"

// forkable says whether a fork can run s: there $$ is another's number.
func (s *Script) forkable() bool {
	for _, text := range []string{s.Functions, s.Library, s.Code} {
		if strings.Count(text, "$$") != strings.Count(text, ownNumber) {
			return false
		}
	}
	return true
}
