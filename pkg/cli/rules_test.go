package cli

import (
	"testing"

	"kubekey/pkg/value"
)

// TestHostFactsReadEveryNameOfAVariable detects two hosts with the same address, whichever name of the variable is
// used.
func TestHostFactsReadEveryNameOfAVariable(t *testing.T) {
	for _, names := range [][2]string{{"ansible_host", "ansible_port"}, {"ansible_ssh_host", "ansible_ssh_port"}} {
		facts := hostFacts("h1", value.NewDict(names[0], "10.0.0.1", names[1], 2222))
		if at, _ := facts.Get("at"); at != "10.0.0.1 port 2222" {
			t.Errorf("with %v the host is at %q", names, at)
		}
	}
}
