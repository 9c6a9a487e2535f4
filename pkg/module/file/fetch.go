package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Fetch is the module fetch.
type Fetch struct {
	Src              string `kk:"src,required,path" doc:"file on the host"`
	Dest             string `kk:"dest,required,makes" doc:"folder on the control node: the file is stored as dest/HOST/SRC. With flat: path of the file, or a folder that ends in /"`
	Flat             bool   `kk:"flat" default:"no" doc:"do not create folders for host and path"`
	FailOnMissing    bool   `kk:"fail_on_missing" default:"yes" doc:"fail if the file does not exist"`
	ValidateChecksum bool   `kk:"validate_checksum" default:"yes" doc:"without effect: the received file is always verified"`
}

func fetchSpec() module.Spec {
	return module.Spec{
		Name:    "fetch",
		Summary: "Fetches a file from the host to the control node.",
		Notes: []string{
			"A file that already exists is not fetched again. A new file is readable only by its owner; an existing one " +
				"keeps its mode.",
			"A relative dest is below the folder of the playbook.",
		},
		Examples: []string{
			"- name: Back up the certificate\n  fetch:\n    src: /etc/app/tls.crt\n    dest: backup/",
			"- name: Fetch the kubeconfig\n  fetch:\n    src: /etc/kubernetes/admin.conf\n    dest: ./kubeconfig\n    flat: yes",
		},
		Returns: []module.Return{
			{Key: "dest", Type: "str", Doc: "path on the control node"},
			{Key: "checksum", Type: "str", Doc: "SHA-1 of the file at dest"},
			{Key: "remote_checksum", Type: "str", Doc: "SHA-1 of the file of the host, when it was fetched"},
			{Key: "md5sum", Type: "str", Doc: "MD5 of the file"},
			{Key: "file", Type: "str", Doc: "path on the host, if nothing was fetched"},
		},
		New: func() module.Runner { return new(Fetch) },
	}
}

// Run implements module.Runner.
func (m *Fetch) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	e, err := probeOne(ctx, c, "h1m", m.Src)
	if err != nil {
		return module.Result{}, err
	}
	n := e.followed()
	switch {
	case n == nil && m.FailOnMissing:
		return module.Result{}, fmt.Errorf("the remote file does not exist: %s", e.path)
	case n == nil:
		return module.Result{Msg: "the remote file does not exist, not transferring, ignored",
			Data: value.NewDict("file", e.path)}, nil
	case n.is(typeDir) && !m.FailOnMissing:
		return module.Result{Msg: "remote file is a directory, fetch cannot work on directories, not transferring, " +
			"ignored", Data: value.NewDict("file", e.path)}, nil
	case n.is(typeDir):
		return module.Result{}, fmt.Errorf("remote file is a directory, fetch cannot work on directories: %s", e.path)
	case !strings.Contains(e.access, "r"):
		return module.Result{}, fmt.Errorf("file is not readable: %s", e.path)
	}
	dest, err := m.destination(c, e.path)
	if err != nil {
		return module.Result{}, err
	}
	data := value.NewDict("dest", dest)
	have, err := localFile(source.Tree{}, dest)
	if err == nil && n.is(typeFile) && have.sha256 == e.sha256 {
		data.Set("checksum", have.sha1)
		data.Set("md5sum", have.md5)
		data.Set("file", e.path)
		return module.Result{Data: data}, nil
	}
	if c.Check {
		data.Set("checksum", e.sha1)
		data.Set("remote_checksum", e.sha1)
		return module.Result{Changed: true, Data: data}, nil
	}
	if err := download(ctx, c, e.path, dest); err != nil {
		return module.Result{}, err
	}
	got, err := localFile(source.Tree{}, dest)
	if err != nil {
		return module.Result{}, err
	}
	data.Set("checksum", got.sha1)
	data.Set("remote_checksum", got.sha1) // connector.Get compared them, even if the file existed before
	data.Set("md5sum", got.md5)
	return module.Result{Changed: true, Data: data}, nil
}

// destination returns the path on the control node where the file is stored.
func (m *Fetch) destination(c *module.Call, src string) (string, error) {
	dest, err := localPath(c, m.Dest)
	if err != nil {
		return "", err
	}
	folder := strings.HasSuffix(m.Dest, "/")
	if !m.Flat {
		return filepath.Join(dest, hostFolder(c.Host), path.Clean("/"+src)), nil
	}
	info, err := os.Stat(dest)
	switch {
	case folder:
		return filepath.Join(dest, path.Base(src)), nil
	case err == nil && info.IsDir():
		return "", fmt.Errorf("dest is an existing directory, use a trailing slash if you want to fetch src into that "+
			"directory: %s", m.Dest)
	}
	return dest, nil
}

// hostFolder converts a host name to a folder name that cannot refer to another folder.
func hostFolder(host string) string {
	name := strings.ReplaceAll(host, "/", "_")
	if name == "" || name == "." || name == ".." {
		return "_"
	}
	return name
}

// localPath resolves a path on the control node that a playbook refers to.
func localPath(c *module.Call, name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the home folder for %s: %w", name, err)
		}
		name = filepath.Join(home, rest)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	v, _, err := c.Scope.Lookup("playbook_dir")
	if err != nil {
		return "", err
	}
	dir, _ := v.(string)
	return filepath.Abs(filepath.Join(source.DiskDir(dir), name))
}

// download copies a file from the host to dest. dest is never incomplete.
func download(ctx context.Context, c *module.Call, src, dest string) error {
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return fmt.Errorf("create the folder of %s: %w", dest, pathCause(err))
	}
	f, err := os.CreateTemp(filepath.Dir(dest), ".kk-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", dest, pathCause(err))
	}
	defer os.Remove(f.Name())
	if err := receive(ctx, c, src, f); err != nil {
		f.Close()
		return err
	}
	if info, err := os.Stat(dest); err == nil {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", dest, pathCause(err))
	}
	if err := os.Rename(f.Name(), dest); err != nil {
		return fmt.Errorf("put %s in place: %w", dest, linkCause(err))
	}
	return nil
}

func linkCause(err error) error {
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

func receive(ctx context.Context, c *module.Call, src string, w io.Writer) error {
	var progress connector.Progress
	if c.Progress != nil {
		progress = func(done, total int64) { c.Progress(src, done, total) }
	}
	_, err := connector.Get(ctx, c.Conn, src, w, progress)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s vanished while it was being fetched", src)
	}
	return err
}
