package expr

import (
	"os"
	"syscall"

	"kubekey/pkg/source"
)

// fileTests look at files of the control node.
func fileTests() []testSpec {
	return []testSpec{
		onPath("directory is_dir", func(c *Call, path string) bool { return c.Env.Options().Files.IsDir(path) }),
		onPath("file is_file", isRegular),
		onPath("exists", func(c *Call, path string) bool {
			_, err := c.Env.Options().Files.Stat(path)
			return err == nil
		}),
		onPath("link is_link", func(c *Call, path string) bool { return c.Env.Options().Files.IsLink(path) }),
		onPath("link_exists", func(c *Call, path string) bool {
			_, err := c.Env.Options().Files.Stat(path)
			return err == nil || c.Env.Options().Files.IsLink(path)
		}),
		onPath("abs is_abs", func(_ *Call, path string) bool { return source.IsAbs(path) }),
		onPath("mount is_mount", func(c *Call, path string) bool { return isMount(c.Env.Options().Files, path) }),
		{names: "same_file is_same_file", params: "other!", do: func(c *Call, in any, p *bound) (bool, error) {
			a, errA := c.Env.Options().Files.Stat(pyStr(in))
			b, errB := c.Env.Options().Files.Stat(p.str("other", ""))
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
	info, err := c.Env.Options().Files.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// isMount reports whether a folder is on another device than its parent, or is the root.
func isMount(files source.Tree, path string) bool {
	here, err := files.Lstat(path)
	if err != nil || !here.IsDir() {
		return false
	}
	parent, err := files.Lstat(source.Join(path, ".."))
	if err != nil {
		return false
	}
	a, okA := here.Sys().(*syscall.Stat_t)
	b, okB := parent.Sys().(*syscall.Stat_t)
	return okA && okB && (a.Dev != b.Dev || a.Ino == b.Ino)
}
