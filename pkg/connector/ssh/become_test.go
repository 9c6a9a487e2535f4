package ssh_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/redact"
)

func TestContractUnderBecome(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	free := connectortest.NewUser(t, "p4ss-word", "/bin/bash", "%s ALL=(ALL) NOPASSWD:ALL")
	asked := connectortest.NewUser(t, "p4ss-word", "/bin/sh", "%s ALL=(ALL) ALL")
	password := new(redact.Set).Secret("p4ss-word")
	for name, tc := range map[string]struct {
		user string
		o    connector.BecomeOptions
	}{
		"sudo, no password needed":    {free, connector.BecomeOptions{}},
		"sudo, password not needed":   {free, connector.BecomeOptions{Password: password}},
		"sudo, password asked":        {asked, connector.BecomeOptions{Password: password}},
		"sudo to another, not root":   {free, connector.BecomeOptions{User: asked}},
		"su with a password":          {free, connector.BecomeOptions{Method: "su", User: asked, Password: password}},
		"su by root without password": {"root", connector.BecomeOptions{Method: "su", User: free}},
		"sudo to the same user":       {"root", connector.BecomeOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract := connectortest.BriefContract
			if strings.HasSuffix(name, "asked") || strings.HasSuffix(name, "with a password") {
				contract = connectortest.Contract
			}
			contract(t, func(t *testing.T) connector.Connector {
				o := options(d)
				o.User = tc.user
				c := connector.Become(connect(t, o), tc.o)
				want := tc.o.User
				if want == "" {
					want = "root"
				}
				if out, _, _ := connectortest.Output(t, c, connector.Command{Line: "id -un"}); out != want+"\n" {
					t.Fatalf("commands run as %q, want %q", out, want)
				}
				return c
			})
		})
	}
}

// RHEL's sudoers have a path without /usr/local/bin. What a command names itself has precedence.
func TestBecomeFindsProgramsOfTheSystem(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	o := options(d)
	o.User = connectortest.NewUser(t, "p4ss-word", "/bin/bash",
		"Defaults:%[1]s secure_path=/opt/bin:/sbin:/bin:/usr/sbin:/usr/bin\n%[1]s ALL=(ALL) NOPASSWD:ALL")
	plain, kept := connect(t, o), connector.PersistentShell(connect(t, o))
	for name, c := range map[string]connector.Connector{"single": plain, "persistent": kept} {
		c = connector.Become(c, connector.BecomeOptions{})
		for _, tc := range []struct {
			env  map[string]string
			want string
		}{
			{nil, "/opt/bin:/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin\n"},
			{map[string]string{"PATH": "/bin"}, "/bin\n"},
		} {
			line := connector.Command{Line: `echo "$PATH"`, Env: tc.env}
			if out, _, _ := connectortest.Output(t, c, line); out != tc.want {
				t.Errorf("%s: the path is %q, want %q", name, out, tc.want)
			}
		}
	}
}

func TestBecomeRefused(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	asked := connectortest.NewUser(t, "p4ss-word", "/bin/bash", "%s ALL=(ALL) ALL")
	nobody := connectortest.NewUser(t, "p4ss-word", "/bin/bash", "")
	for name, tc := range map[string]struct {
		user string
		o    connector.BecomeOptions
		want string
	}{
		"wrong password": {asked, connector.BecomeOptions{Password: new(redact.Set).Secret("wrong")},
			"the password was not accepted"},
		"missing password": {asked, connector.BecomeOptions{}, "a password is needed: give one with -K"},
		"no right": {nobody, connector.BecomeOptions{Password: new(redact.Set).Secret("p4ss-word")},
			"the user has no permission to"},
		"no such program": {asked, connector.BecomeOptions{Exe: "/no/sudo"}, "/no/sudo is not installed on the host"},
		"su, wrong password": {nobody, connector.BecomeOptions{Method: "su", User: asked,
			Password: new(redact.Set).Secret("wrong")}, "the password was not accepted"},
		"su, no password":   {nobody, connector.BecomeOptions{Method: "su", User: asked}, "a password is needed"},
		"unknown method":    {asked, connector.BecomeOptions{Method: "doas"}, `"doas" is not supported: use sudo or su`},
		"password of lines": {asked, connector.BecomeOptions{Password: new(redact.Set).Secret("a\nb")}, "line feed"},
	} {
		for kind, stdin := range map[string]string{"without input": "", "with input": "one\ntwo\nthree\nfour\n"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				o := options(d)
				o.User = tc.user
				c := connector.Become(connect(t, o), tc.o)
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				cmd := connector.Command{Line: "echo ran"}
				if stdin != "" {
					cmd.Stdin = strings.NewReader(stdin)
				}
				_, err := c.Run(ctx, cmd)
				var refused *connector.BecomeError
				if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tc.want) {
					t.Errorf("got %v, want a BecomeError with %q", err, tc.want)
				}
				if strings.Contains(err.Error(), "kk-") {
					t.Errorf("the error shows a sign of the protocol: %v", err)
				}
			})
		}
	}
}
