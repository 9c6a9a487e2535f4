package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/engine"
)

func TestSSHArgs(t *testing.T) {
	var o ssh.Options
	err := sshArgs(&o, `-o UserKnownHostsFile=/dev/null -oStrictHostKeyChecking=no -o "User somebody" -J jump:22 -i /key -p 2222 -C -F /conf -o ConnectTimeout=3 -o ServerAliveInterval=7 -o ControlMaster=auto -o IdentityAgent=/sock -o IdentityFile=/other -q`)
	if err != nil {
		t.Fatal(err)
	}
	if o.HostKey != ssh.Insecure || o.User != "somebody" || o.ProxyJump != "jump:22" || o.Port != 2222 ||
		o.ConfigFile != "/conf" ||
		o.ConnectTimeout != 3*time.Second || o.KeepAlive != 7*time.Second || o.AgentSocket != "/sock" {
		t.Errorf("%+v", o)
	}
	if strings.Join(o.PrivateKeyFiles, " ") != "/key /other" || strings.Join(o.KnownHosts, " ") != "/dev/null" {
		t.Errorf("keys %v, known hosts %v", o.PrivateKeyFiles, o.KnownHosts)
	}
	o = ssh.Options{}
	if err := sshArgs(&o, "-l me -o StrictHostKeyChecking=accept-new -o ProxyJump=j"); err != nil || o.User != "me" ||
		o.HostKey != ssh.AcceptNew || o.ProxyJump != "j" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestSSHArgsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-o ProxyCommand=nc":  "the ssh option ProxyCommand is not supported",
		"-D 1080":             "the ssh argument -D is not supported",
		"-p many":             `port must be a number, not "many"`,
		"-o ConnectTimeout=x": "must be a number",
		"-o 'open":            "ansible_ssh_common_args",
	} {
		var o ssh.Options
		if err := sshArgs(&o, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestConnect(t *testing.T) {
	dial := connect("", "", nil, func(string) {})
	for _, name := range []string{"local", "ssh", "smart"} {
		c, err := dial(context.Background(), engine.Target{Connection: name, Host: "h", Address: "127.0.0.1", Port: 1,
			KeyFile: "/nowhere", HostKeyChecking: "no"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := dial(context.Background(), engine.Target{Connection: "docker"}); err == nil ||
		!strings.Contains(err.Error(), "use ssh or local") {
		t.Errorf("docker: %v", err)
	}
}

func TestFalseWord(t *testing.T) {
	for word, want := range map[string]bool{"no": true, "False": true, "0": true, "off": true, "yes": false, "": false} {
		if falseWord(word) != want {
			t.Errorf("%q is false: %v", word, !want)
		}
	}
}

func TestWorkDir(t *testing.T) {
	base := t.TempDir()
	t.Setenv("HOME", filepath.Join(base, "home"))
	if dir, err := workDir(""); err != nil || dir != filepath.Join(base, "home", ".kk") {
		t.Errorf("%s, %v", dir, err)
	}
	if dir, err := workDir(filepath.Join(base, "flag")); err != nil || dir != filepath.Join(base, "flag") {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv("HOME", "")
	if _, err := workDir(""); err == nil || !strings.Contains(err.Error(), "set --workdir") {
		t.Error(err)
	}
}
