// Command kk runs playbooks on hosts over SSH.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"kubekey/builtin"
	"kubekey/pkg/cli"
)

func main() {
	if os.Getenv("GOGC") == "" {
		// What many hosts print is garbage soon. Collecting it twice as often costs a few
		// percent of time, and a third of the memory less is needed.
		debug.SetGCPercent(50)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends kk at once
	code := cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, builtin.FS())
	stop()
	os.Exit(code)
}
