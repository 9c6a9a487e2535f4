package connector

import (
	"strings"

	"kubekey/pkg/shell"
)

// Script is a command that kk itself wrote, in parts. It must leave no process behind that
// keeps its outputs open, and must use ${kk_id:-$$} as its unique number. A persistent shell
// runs it in a fork, which is cheaper for the host.
type Script struct {
	// Functions contains only function definitions, with names that no other script uses:
	// a persistent shell reads them once.
	Functions string
	Library   string   // precedes Code, and is shared by many commands
	Code      string   // follows Library
	Args      []string // positional parameters of both
	// Renews marks a script that can change what applies to new logins, mostly groups.
	Renews bool
	// InputVar marks a script that reads its input from the variable kk_input, if that is
	// not empty: a persistent shell then needs no pipe.
	InputVar bool
}

// Command returns the command that runs s on any connector.
func (s Script) Command() Command {
	return Command{Line: shell.Script(s.Functions+s.Library+s.Code, s.Args...), Script: &s}
}

// ownNumber is how scripts spell a number that is unique for each run.
const ownNumber = "${kk_id:-$$}"

// forkable reports whether a fork can run s: in a fork, $$ is the number of its parent.
func (s *Script) forkable() bool {
	for _, text := range []string{s.Functions, s.Library, s.Code} {
		if strings.Count(text, "$$") != strings.Count(text, ownNumber) {
			return false
		}
	}
	return true
}
