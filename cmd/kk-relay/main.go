// Command kk-relay stores, fetches and serves blobs on a host for a run of kk, which starts it over SSH, speaks to it
// over its standard input and output, and ends it by closing these.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"kubekey/pkg/relay"
	"kubekey/pkg/relay/agent"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kk-relay:", err)
		if errors.Is(err, agent.ErrBusy) {
			os.Exit(relay.ExitBusy)
		}
		os.Exit(1)
	}
}

// run expects the folder for blobs; with "-once" before it, the program removes itself from the disk.
func run(args []string) error {
	if len(args) > 0 && args[0] == "-once" {
		args = args[1:]
		if err := agent.RemoveItself(); err != nil {
			return err
		}
	}
	if len(args) != 1 {
		return errors.New("usage: kk-relay [-once] FOLDER; kk starts it")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // an output that is closed is an error, and no reason to leave parts behind
	return agent.Run(ctx, args[0], os.Stdin, os.Stdout)
}
