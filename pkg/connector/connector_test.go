package connector_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
)

func TestReadOnlyLetsProbesThroughOnly(t *testing.T) {
	fake := &connectortest.Fake{}
	c := connector.ReadOnly(fake)
	if _, err := c.Run(context.Background(), connector.Command{Line: "rm x"}); !errors.Is(err, connector.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Run(context.Background(), connector.Command{Line: "ls", Probe: true}); err != nil {
		t.Error(err)
	}
	if got := fake.Lines(); len(got) != 1 || got[0] != "ls" {
		t.Errorf("ran %q", got)
	}
}

func TestEnvOfTheCommandWins(t *testing.T) {
	fake := &connectortest.Fake{}
	c := connector.Env(fake, map[string]string{"A": "1", "B": "2"})
	if _, err := c.Run(context.Background(), connector.Command{Line: "x", Env: map[string]string{"B": "3"}}); err != nil {
		t.Fatal(err)
	}
	env := fake.Calls()[0].Command.Env
	if env["A"] != "1" || env["B"] != "3" {
		t.Errorf("env is %v", env)
	}
	if err := c.Close(); err != nil || !fake.Closed() {
		t.Errorf("close did not reach the connector: %v", err)
	}
}

func TestFakeAnswers(t *testing.T) {
	fake := &connectortest.Fake{Host: "a", Answer: func(_ context.Context, c connectortest.Call) connectortest.Answer {
		return connectortest.Answer{Stdout: c.Host + c.Stdin, Stderr: "e", Exit: connector.Exit{Code: 7}}
	}}
	out, errs, exit := connectortest.Output(t, fake, connector.Command{Line: "x", Stdin: strings.NewReader("in")})
	if out != "ain" || errs != "e" || exit.Code != 7 {
		t.Errorf("got %q, %q, %+v", out, errs, exit)
	}
	if exit, err := connectortest.Noop().Run(context.Background(), connector.Command{}); err != nil || exit.Code != 0 {
		t.Errorf("noop: %+v, %v", exit, err)
	}
}
