package file

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/module/moduletest"
)

// Contents are passed over standard input with sudo, too: files, bundles, archives and long scripts.
func TestAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	if err := exec.Command("sudo", "-n", "-u", "nobody", "true").Run(); err != nil {
		t.Skipf("sudo does not work here: %v", err)
	}
	src, dir := t.TempDir(), t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, -1); err != nil {
		t.Fatal(err)
	}
	write(t, src+"/files/a.tgz", packed(t, gzipTar), 0o644)
	for _, name := range oddNames {
		write(t, src+"/files/tree/"+name, name, 0o644)
	}
	conn := connector.Env(connector.Become(local.New(), connector.BecomeOptions{User: "nobody"}),
		map[string]string{"KK": "x y"})
	o := moduletest.Options{Conn: conn, Dir: src}
	r, _ := moduletest.RunTwice(t, spec(t, "copy"), args("content", "x", "dest", dir+"/f"), o)
	moduletest.Want(t, r, "owner", "nobody", "uid", 65534)
	moduletest.RunTwice(t, spec(t, "copy"), args("src", "tree", "dest", dir), o)
	moduletest.RunTwice(t, spec(t, "lineinfile"), args("path", dir+"/f", "line", "y"), o)
	moduletest.RunTwice(t, spec(t, "file"), args("path", dir+"/d", "state", "directory", "mode", "0700"), o)
	moduletest.RunTwice(t, spec(t, "unarchive"),
		args("src", "a.tgz", "dest", dir+"/d", "extra_opts", "--strip-components=1"), o)
	checkUnpacked(t, dir+"/d")
	if got := read(t, dir+"/tree/it's"); got != "it's" {
		t.Errorf("it's holds %q", got)
	}
	if got := read(t, dir+"/f"); got != "x\ny\n" {
		t.Errorf("f holds %q", got)
	}
	moduletest.Fails(t, "set the owner of "+dir+"/f: ", spec(t, "file"), args("path", dir+"/f", "owner", "root"), o)
}
