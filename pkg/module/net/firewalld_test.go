package net

import (
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestFirewalldRefuses(t *testing.T) {
	for text, args := range map[string]*value.Dict{
		"one of the following is required: service": value.NewDict("state", "enabled"),
		"at once":               value.NewDict("state", "enabled", "service", "http", "port", "1/tcp"),
		"improper port format":  value.NewDict("state", "enabled", "port", "1"),
		"zone level operations": value.NewDict("state", "present", "service", "http"),
		"not for permanent":     value.NewDict("state", "enabled", "service", "http", "permanent", true, "timeout", 3),
	} {
		moduletest.Fails(t, text, moduletest.Find(t, Modules(), "firewalld"), args, moduletest.Options{Conn: moduletest.Unreachable{}})
	}
}
