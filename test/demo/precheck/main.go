// Command precheck brings up the lab "demo": three hosts, the first of which has
// a name that DNS does not take and too little memory. It prints the path of
// the lab's inventory.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"kubekey/test/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	l, err := lab.Up(ctx, lab.Options{Name: "demo", N: 3, Log: os.Stderr, Hosts: map[int]lab.HostOptions{
		0: {Hostname: "node_1", MemoryMB: 512},
	}})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	fmt.Println(l.Inventory())
}
