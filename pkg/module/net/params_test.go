package net

import (
	"strings"
	"testing"

	"kubekey/pkg/schema"
)

// The address of a repository may have a password in it.
func TestAddressesOfRepositoriesAreNoParameters(t *testing.T) {
	const address = "https://u:hidden@example.org/r"
	for _, m := range []any{&gitModule{Repo: address, Dest: "/srv"}, &subversion{Repo: address, Dest: "/srv"}} {
		params, err := schema.Params(m)
		if err != nil || len(params) == 0 {
			t.Fatal(params, err)
		}
		for _, p := range params {
			if strings.Contains(p.Text, "hidden") {
				t.Errorf("%T: %s is a parameter of the script", m, p.Name)
			}
		}
	}
}
