package expr

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"kubekey/pkg/source"
)

// fileTests look at files of the control node.
func fileTests() []testSpec {
	return []testSpec{
		onPath("directory is_dir", func(c *Call, path string) bool { return c.Env.opts.Files.IsDir(path) }),
		onPath("file is_file", isRegular),
		onPath("exists", func(c *Call, path string) bool {
			_, err := c.Env.opts.Files.Stat(path)
			return err == nil
		}),
		onPath("link is_link", func(_ *Call, path string) bool { return isLink(path) }),
		onPath("link_exists", func(c *Call, path string) bool {
			_, err := c.Env.opts.Files.Stat(path)
			return err == nil || isLink(path)
		}),
		onPath("abs is_abs", func(_ *Call, path string) bool { return source.IsAbs(path) }),
		onPath("mount is_mount", func(_ *Call, path string) bool { return isMount(path) }),
		{names: "same_file is_same_file", params: "other!", do: func(c *Call, in any, p *bound) (bool, error) {
			a, errA := c.Env.opts.Files.Stat(pyStr(in))
			b, errB := c.Env.opts.Files.Stat(p.str("other", ""))
			return errA == nil && errB == nil && os.SameFile(a, b), nil
		}},
	}
}

func onPath(names string, is func(c *Call, path string) bool) testSpec {
	return testSpec{names: names, do: func(c *Call, in any, _ *bound) (bool, error) {
		return is(c, pyStr(in)), nil
	}}
}

func isRegular(c *Call, path string) bool {
	info, err := c.Env.opts.Files.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isLink(path string) bool {
	if source.IsBuiltin(path) {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// isMount reports whether a folder is on another device than its parent, or is the root.
func isMount(path string) bool {
	if source.IsBuiltin(path) {
		return false
	}
	here, err := os.Lstat(path)
	if err != nil || !here.IsDir() {
		return false
	}
	parent, err := os.Lstat(filepath.Join(path, ".."))
	if err != nil {
		return false
	}
	a, okA := here.Sys().(*syscall.Stat_t)
	b, okB := parent.Sys().(*syscall.Stat_t)
	return okA && okB && (a.Dev != b.Dev || a.Ino == b.Ino)
}
