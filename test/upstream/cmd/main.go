// Command cmd builds the lab's mirror, and serves it to a lab: see "make mirror".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"kubekey/test/lab"
	"kubekey/test/upstream"
)

const usage = `usage: upstream build | serve [-lab NAME]

commands:
  build  build what the cache does not have
  serve  serve a lab until interrupted; its folder then has overlay.yaml and config.yaml for kk -c
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name a command\n%s", usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	name := flags.String("lab", "default", "name of the lab")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	u, err := upstream.Build(ctx, "test/upstream", os.Stderr)
	if err != nil || args[0] == "build" {
		return err
	}
	l, err := lab.Open(*name)
	if err != nil {
		return err
	}
	m, err := u.Serve(ctx, l.Gateway()+":5080")
	if err != nil {
		return err
	}
	defer m.Close()
	config, err := m.WriteConfig(l.Dir())
	if err != nil {
		return err
	}
	fmt.Println(config)
	fmt.Fprintf(os.Stderr, "serving at %s; kk create cluster -i %s -c %s\n", m.Address, l.Inventory(),
		filepath.Join(l.Dir(), "config.yaml"))
	<-ctx.Done()
	return nil
}
