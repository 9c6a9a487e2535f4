package file

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestFlagsOfTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	p := write(t, dir+"/a b", "x", 0o644)
	if out, err := exec.Command("chattr", "+A", p).CombinedOutput(); err != nil {
		t.Skipf("the file system of the test keeps no flags: %s", out)
	}
	if err := exec.Command("chattr", "-A", p).Run(); err != nil {
		t.Fatal(err)
	}
	o := moduletest.Options{Diff: true}
	for _, step := range []struct {
		module string
		flags  string
		set    bool
	}{{"file", "+A", true}, {"lineinfile", "A", true}, {"copy", "-A", false}, {"file", "dA", true}, {"file", "", false}} {
		a := args("path", p, "attributes", step.flags)
		switch step.module {
		case "lineinfile":
			a = args("path", p, "attributes", step.flags, "line", "x")
		case "copy":
			a = args("dest", p, "attributes", step.flags, "content", "y\n")
		}
		r, _ := moduletest.RunTwice(t, spec(t, step.module), a, o)
		if !r.Changed {
			t.Errorf("%s attributes=%s changed nothing", step.module, step.flags)
		}
		if err := exec.Command("sh", "-c", `lsattr -d "$0" | cut -d " " -f 1 | grep -q A`,
			p).Run(); (err == nil) != step.set {
			t.Errorf("%s attributes=%s: is A set? %v", step.module, step.flags, err == nil)
		}
	}
}

func TestFlagsFailWhereThereAreNone(t *testing.T) {
	if _, err := exec.LookPath("chattr"); err != nil {
		t.Skip("chattr is not installed (package e2fsprogs)")
	}
	moduletest.Fails(t, "chattr failed", spec(t, "file"), args("path", "/proc/version", "attributes", "+A"),
		moduletest.Options{})
}

func TestContextsWithoutSELinux(t *testing.T) {
	if _, err := os.Stat("/sys/fs/selinux/enforce"); err == nil {
		t.Skip("this machine has SELinux")
	}
	shells(t, func(t *testing.T, conn connector.Connector) {
		p := write(t, t.TempDir()+"/f", "x", 0o644)
		r := moduletest.Run(t, spec(t, "file"), args("path", p, "setype", "etc_t", "selevel", "s0"),
			moduletest.Options{Conn: conn})
		if r.Changed || r.Failed {
			t.Errorf("result is %+v", r)
		}
	})
}

func TestFileTimesWithoutTouch(t *testing.T) {
	shells(t, func(t *testing.T, conn connector.Connector) {
		p := write(t, t.TempDir()+"/f", "x", 0o644)
		then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.Local)
		a := args("path", p, "modification_time", then.Format("200601021504.05"))
		moduletest.RunTwice(t, spec(t, "file"), a, moduletest.Options{Conn: conn})
		if info, err := os.Stat(p); err != nil || !info.ModTime().Equal(then) {
			t.Errorf("modified %v, %v", info.ModTime(), err)
		}
		r := moduletest.Run(t, spec(t, "file"), args("path", p, "access_time", "now"), moduletest.Options{Conn: conn})
		if !r.Changed {
			t.Error("access_time: now is no change")
		}
	})
}

func TestFileDiffOfAFolderThatGoes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/d/sub/f", "x", 0o644)
	o := moduletest.Options{Conn: local.New(), Diff: true, Check: true}
	r := moduletest.Run(t, spec(t, "file"), args("path", dir+"/d", "state", "absent"), o)
	before, _ := r.Diff[0].Before.(*value.Dict)
	content, _ := before.Get("path_content")
	desired := value.NewDict("directories", []any{dir + "/d/sub"}, "files", []any{dir + "/d/sub/f"})
	if !value.Equal(content, desired) {
		t.Errorf("path_content is %s", value.Repr(content))
	}
}

func TestFileHardLinkIntoAFolder(t *testing.T) {
	dir := t.TempDir()
	src := write(t, dir+"/f", "x", 0o644)
	if err := os.Mkdir(dir+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	r, _ := moduletest.RunTwice(t, spec(t, "file"), args("src", src, "path", dir+"/d", "state", "hard"),
		moduletest.Options{})
	moduletest.Want(t, r, "dest", dir+"/d/f", "state", "hard")
	r = moduletest.Run(t, spec(t, "file"), args("src", src, "path", dir+"/d/f", "mode", "0600"), moduletest.Options{})
	moduletest.Want(t, r, "state", "hard", "mode", "0600")
}

func TestFileThatCannotGetItsOwnerIsNotLeft(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("another account is needed to fail as")
	}
	dir := t.TempDir()
	for d, mode := range map[string]os.FileMode{dir: 0o777 | os.ModeSticky, filepath.Dir(dir): 0o755} {
		if err := os.Chmod(d, mode); err != nil {
			t.Fatal(err)
		}
	}
	nobody := connector.Become(local.New(), connector.BecomeOptions{User: "nobody", Method: "su", Flags: "-s /bin/sh"})
	moduletest.Fails(t, "set the owner of", spec(t, "file"), args("path", dir+"/f", "state", "touch", "owner", "root"),
		moduletest.Options{Conn: nobody})
	if _, err := os.Stat(dir + "/f"); err == nil {
		t.Error("the file was left behind")
	}
	f := write(t, dir+"/g", "x", 0o666)
	if r := moduletest.Run(t, spec(t, "file"), args("path", f, "state", "touch"),
		moduletest.Options{Conn: nobody}); !r.Changed {
		t.Errorf("who may write a file cannot touch it: %+v", r)
	}
}
