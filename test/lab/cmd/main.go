// Command cmd brings labs up and down from a shell: see "make lab-up".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"kubekey/test/lab"
)

const usage = `usage: lab COMMAND [-name NAME] [-n HOSTS] [-cache FOLDER] [-packages LIST]
                   [-own-kernel]

commands:
  up         bring up the lab and print where its inventory is
  down       remove the lab and everything it made, and labs of tests that crashed
  status     list the labs and their hosts
  inventory  print the path of the lab's inventory
  cut        cut the lab off the network, and print the network namespace that reaches its hosts
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name a command\n%s", usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	o := lab.Options{Log: os.Stderr}
	flags.StringVar(&o.Name, "name", "default", "name of the lab")
	flags.IntVar(&o.N, "n", 1, "number of hosts")
	flags.StringVar(&o.Cache, "cache", "", "folder of root file systems (default $KK_CACHE or ~/.cache/kk-lab)")
	flags.Func("packages", "further Debian packages of all hosts, separated by commas", func(list string) error {
		o.Packages = strings.Split(list, ",")
		return nil
	})
	own := flags.Bool("own-kernel", false, "give each host a kernel of its own")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *own {
		o.Hosts = map[int]lab.HostOptions{}
		for i := range o.N {
			o.Hosts[i] = lab.HostOptions{OwnKernel: true}
		}
	}
	switch args[0] {
	case "up":
		return up(ctx, o)
	case "down":
		return errors.Join(lab.Down(ctx, o.Name), lab.Sweep(ctx))
	case "status":
		return status()
	case "inventory":
		return inventory(o.Name)
	case "cut":
		return cut(ctx, o.Name)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

func up(ctx context.Context, o lab.Options) error {
	began := time.Now()
	l, err := lab.Up(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "lab %s is up (%.1f s)\n", l.Name, time.Since(began).Seconds())
	fmt.Println(l.Inventory())
	return nil
}

func inventory(name string) error {
	l, err := lab.Open(name)
	if err != nil {
		return err
	}
	fmt.Println(l.Inventory())
	return nil
}

func cut(ctx context.Context, name string) error {
	l, err := lab.Open(name)
	if err != nil {
		return err
	}
	if err := l.Cut(ctx); err != nil {
		return err
	}
	fmt.Println(l.Outpost())
	return nil
}

func status() error {
	names, err := lab.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		l, err := lab.Open(name)
		if err != nil {
			return err
		}
		for _, h := range l.Hosts {
			fmt.Printf("%s\t%s\t%s\t%s\n", name, h.Name, h.Address, power(h))
		}
	}
	return nil
}

func power(h *lab.Host) string {
	if h.Running() {
		return "on"
	}
	return "off"
}
