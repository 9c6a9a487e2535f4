package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"kubekey/pkg/connector"
)

// runTTY runs cmd with a new pseudo terminal, without echo, as its streams.
func runTTY(ctx context.Context, cmd *exec.Cmd, c connector.Command) (connector.Exit, error) {
	master, slave, err := openTTY()
	if err != nil {
		return connector.Exit{}, fmt.Errorf("open a pseudo terminal: %w", err)
	}
	defer master.Close()
	stdin := cmd.Stdin
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	// A new session is a new process group, too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return connector.Exit{}, fmt.Errorf("start /bin/sh: %w", err)
	}
	go feedTTY(master, stdin)
	out := c.Stdout
	if out == nil {
		out = io.Discard
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		// Reading a master returns EIO once the last process has closed the terminal.
		_, _ = io.Copy(out, master)
	}()
	exit, err := wait(ctx, cmd)
	if err == nil {
		<-drained
	}
	return exit, err
}

// feedTTY types stdin, then the end-of-file character.
func feedTTY(master *os.File, stdin io.Reader) {
	if stdin != nil {
		if _, err := io.Copy(master, stdin); err != nil {
			return
		}
	}
	_, _ = master.Write([]byte{4})
}

func openTTY() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	slave, err = openSlave(master)
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

func openSlave(master *os.File) (*os.File, error) {
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err == nil {
		modes.Lflag &^= unix.ECHO
		err = unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, modes)
	}
	if err != nil {
		slave.Close()
		return nil, err
	}
	return slave, nil
}
