package net_test

import (
	"testing"

	"kubekey/pkg/module/net"
	"kubekey/pkg/schema"
)

func TestEveryModuleIsDocumented(t *testing.T) {
	for _, s := range net.Modules() {
		args, err := schema.Describe(s.New())
		if err != nil || s.Summary == "" || len(s.Examples) == 0 || len(s.Returns) == 0 {
			t.Errorf("%s: %v, summary %q, %d examples, %d results", s.Name, err, s.Summary, len(s.Examples), len(s.Returns))
		}
		for _, a := range args {
			if a.Doc == "" {
				t.Errorf("%s: argument %s has no description", s.Name, a.Name)
			}
		}
	}
}
