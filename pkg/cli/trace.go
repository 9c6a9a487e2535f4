package cli

import (
	"context"
	"flag"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"kubekey/pkg/connector"
	"kubekey/pkg/engine"
	"kubekey/pkg/redact"
	"kubekey/pkg/ui"
)

// traceAt is the number of -v from which every command line that is run on a host is shown.
const traceAt = 3

// connectFunc makes the connection to a target.
type connectFunc func(context.Context, engine.Target) (connector.Connector, error)

// traced logs what is run, for developers of kk and its modules.
func traced(inner connectFunc, verbosity int, to *ui.Screen, hide *redact.Set) connectFunc {
	if verbosity < traceAt {
		return inner
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	// Everything is written to the screen, including errors: the entries contain lines from hosts.
	for name, v := range map[string]string{
		"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true", "v": fmt.Sprint(verbosity),
	} {
		if err := flags.Set(name, v); err != nil {
			klog.ErrorS(err, "set up the log")
		}
	}
	klog.SetOutput(to)
	return func(ctx context.Context, t engine.Target) (connector.Connector, error) {
		c, err := inner(ctx, t)
		if err != nil {
			return nil, err
		}
		klog.V(traceAt).InfoS("connect", "host", t.Host, "connection", t.Connection, "address", t.Address, "user", t.User)
		return trace{c, t.Host, hide}, nil
	}
}

type trace struct {
	connector.Connector
	host string
	hide *redact.Set
}

func (t trace) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	start := time.Now()
	exit, err := t.Connector.Run(ctx, c)
	line := t.hide.Text(c.Line)
	if connector.IsNoLog(ctx) {
		line = "(hidden by no_log)"
	}
	klog.V(traceAt).InfoS("exec", "host", t.host, "line", line, "exit", exit.Code, "took", time.Since(start), "err",
		t.hide.Text(fmt.Sprint(err)))
	return exit, err
}
