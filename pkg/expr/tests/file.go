package tests

import (
	"os"
	"syscall"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
)

// fileTests check files on the control node.
func fileTests() []expr.Test {
	return []expr.Test{
		onPath("directory is_dir", func(c *expr.Call, path string) bool { return c.Env.Options().Files.IsDir(path) }),
		onPath("file is_file", isRegular),
		onPath("exists", func(c *expr.Call, path string) bool {
			_, err := c.Env.Options().Files.Stat(path)
			return err == nil
		}),
		onPath("link is_link", func(c *expr.Call, path string) bool { return c.Env.Options().Files.IsLink(path) }),
		onPath("link_exists", func(c *expr.Call, path string) bool {
			_, err := c.Env.Options().Files.Stat(path)
			return err == nil || c.Env.Options().Files.IsLink(path)
		}),
		onPath("abs is_abs", func(_ *expr.Call, path string) bool { return source.IsAbs(path) }),
		onPath("mount is_mount", func(c *expr.Call, path string) bool { return isMount(c.Env.Options().Files, path) }),
		{Names: "same_file is_same_file", Params: "other!", Do: func(c *expr.Call, in any, p *expr.Bound) (bool, error) {
			a, errA := c.Env.Options().Files.Stat(expr.PyStr(in))
			b, errB := c.Env.Options().Files.Stat(p.Str("other", ""))
			return errA == nil && errB == nil && os.SameFile(a, b), nil
		}},
	}
}

func onPath(names string, is func(c *expr.Call, path string) bool) expr.Test {
	return expr.Test{Names: names, Do: func(c *expr.Call, in any, _ *expr.Bound) (bool, error) {
		return is(c, expr.PyStr(in)), nil
	}}
}

func isRegular(c *expr.Call, path string) bool {
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
