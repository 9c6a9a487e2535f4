package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/vault"
)

func (a *app) vaultCreate() *cobra.Command {
	cmd, w := a.vaultSubcommand("create FILE", "Write a new encrypted file in $EDITOR", cobra.ExactArgs(1),
		func(ctx context.Context, w *vaultWork, args []string) error {
			if _, err := os.Lstat(args[0]); err == nil {
				return fmt.Errorf("%s exists, please use 'edit' instead", args[0])
			}
			p, err := w.newPassword(ctx, w.sources(w.settings))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(args[0]), 0o700); err != nil {
				return err
			}
			return w.edit(ctx, args[0], nil, p, true)
		})
	w.encryptFlag(cmd)
	return cmd
}

func (a *app) vaultEdit() *cobra.Command {
	cmd, w := a.vaultSubcommand("edit FILE...", "Change encrypted files in $EDITOR", needFiles,
		func(ctx context.Context, w *vaultWork, args []string) error {
			k, err := w.keyring(ctx)
			if err != nil {
				return err
			}
			for _, name := range args {
				plain, opened, err := w.decrypted(k, name)
				if err != nil {
					return err
				}
				p := opened.Password.As(opened.ID) // keeps the header
				if err := w.edit(ctx, name, plain, p, false); err != nil {
					return err
				}
			}
			return nil
		})
	w.encryptFlag(cmd)
	return cmd
}

// edit opens a text in the editor and encrypts the result. The plain text is stored in a folder that only the user
// can access. It is overwritten afterwards, even when kk is interrupted.
func (w *vaultWork) edit(ctx context.Context, name string, plain []byte, p vault.Password, always bool) (err error) {
	dir, err := os.MkdirTemp("", "kk-vault-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tmp := filepath.Join(dir, "plain"+filepath.Ext(name))
	if err := os.WriteFile(tmp, plain, 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shredAll(dir)) }()
	if err := w.runEditor(ctx, tmp); err != nil {
		return fmt.Errorf("%w; %s was not changed", err, name)
	}
	text, err := w.tree.Raw().Read(tmp, source.MaxData)
	if err != nil || bytes.Equal(text, plain) && !always {
		return err
	}
	sealed, err := vault.Encrypt(text, p)
	if err != nil {
		return err
	}
	return replaceFile(name, sealed, false)
}

// runEditor runs $EDITOR, which may contain arguments, on a file.
func (w *vaultWork) runEditor(ctx context.Context, path string) error {
	editor := os.Getenv("EDITOR")
	if editor == "" {
		editor = "vi"
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+editor+` "$1"`, "sh", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = w.In, w.Out.Writer(), w.Err.Writer()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return &exitError{engine.ExitInterrupted, errors.New("interrupted")}
	}
	if err != nil {
		return fmt.Errorf("the editor %s: %w", editor, err)
	}
	return nil
}

// shredAll overwrites all files in a folder: editors leave copies next to the file.
func shredAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(overwrite(f), f.Close())
	})
}

// overwrite replaces the bytes of a file with random data. This has no effect on file systems that write changes to
// a new location.
func overwrite(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := io.CopyN(f, rand.Reader, info.Size()); err != nil {
		return err
	}
	return f.Sync()
}

// replaceFile replaces a file atomically with a new text and keeps its mode and owner. A new file is only
// accessible to its owner. Symbolic links are followed. With shred the old bytes are overwritten, unless the file
// has other hard links.
func replaceFile(name string, text []byte, shred bool) (err error) {
	path, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = name, nil
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".kk-vault-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	old, there := os.Stat(path)
	if there == nil {
		err = errors.Join(err, like(f, old))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	var last *os.File
	if st, ok := sysOf(old); shred && ok && st.Nlink == 1 {
		if last, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return err
		}
		defer last.Close()
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if last != nil {
		return overwrite(last)
	}
	return nil
}

// like gives a file the mode of another file and, where permitted, its owner.
func like(f *os.File, old fs.FileInfo) error {
	if st, ok := sysOf(old); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // only root can
	}
	return f.Chmod(old.Mode().Perm())
}

func sysOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}
