package net

import (
	"context"
	_ "embed"
	"errors"
	"net/url"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

//go:embed git.sh
var gitScript string

// gitModule is the module git.
type gitModule struct {
	Repo          string `kk:"repo,required,private,alias=name" doc:"address of the repository: https, ssh, git, user@host:path, or a path of the host"`
	Dest          string `kk:"dest,path" doc:"folder of the host for it; needed unless clone is no"`
	Version       string `kk:"version" default:"HEAD" doc:"branch, tag, full name of a commit, or HEAD: the branch that is checked out, at first the remote's own"`
	Remote        string `kk:"remote" default:"origin" doc:"name of the remote"`
	Refspec       string `kk:"refspec" doc:"what else to fetch"`
	Reference     string `kk:"reference,path" doc:"a repository of the host to take objects from"`
	Depth         *int   `kk:"depth" doc:"fetch only so many commits back"`
	SingleBranch  bool   `kk:"single_branch" default:"no" doc:"clone only the history of version"`
	Clone         bool   `kk:"clone" default:"yes" doc:"clone what is not there; no only tells the remote's commit"`
	Update        bool   `kk:"update" default:"yes" doc:"fetch and check out what is newer"`
	Force         bool   `kk:"force" default:"no" doc:"discard local changes instead of failing"`
	Bare          bool   `kk:"bare" default:"no" doc:"a bare repository: no files are checked out"`
	Recursive     bool   `kk:"recursive" default:"yes" doc:"submodules too"`
	Track         bool   `kk:"track_submodules" default:"no" doc:"take the newest commit of the branches of submodules"`
	KeyFile       string `kk:"key_file,path" doc:"private key of the host for ssh"`
	SSHOpts       string `kk:"ssh_opts" doc:"further options of ssh"`
	AcceptHostKey bool   `kk:"accept_hostkey" default:"no" doc:"take any key of the server, without looking at it"`
	AcceptNewKey  bool   `kk:"accept_newhostkey" default:"no" doc:"take the key of a server that is not known yet"`
	VerifyCommit  bool   `kk:"verify_commit" default:"no" doc:"fail if the commit that is checked out is not signed by a key that gpg of the host trusts"`
	Executable    string `kk:"executable,path" doc:"the git of the host. Default: the one in PATH"`
	Umask         string `kk:"umask" doc:"umask for the files, in octal digits"`
	Archive       string `kk:"archive,path" doc:"file of the host to pack the files of the commit into; its ending says how: .zip, .tar, .tar.gz or .tgz"`
	ArchivePrefix string `kk:"archive_prefix" doc:"put before every name in the archive, usually with a slash at its end; needs archive"`
	SeparateDir   string `kk:"separate_git_dir,path" doc:"folder of the host for the repository itself; in dest a file .git leads to it"`
}

func gitSpec() module.Spec {
	return module.Spec{
		Name:    "git",
		Summary: "Clone a git repository to the host, and keep it at a version.",
		Notes: []string{
			"The host needs git. It never asks: a missing password or an unknown host key is a failure.",
			"A user and a password in repo reach git through its environment: they are not seen in the process list, and are not stored on the host.",
			"Local commits of a branch that the remote does not have are given up, as are local changes with force. Files that git does not track stay, unless they are in the way.",
			"A short name of a commit is none: it is taken for a branch or a tag. With depth a commit must be one that the server hands out by its name, or all is fetched.",
			"Check mode asks the remote for its commits and changes nothing.",
		},
		Examples: []string{
			"- name: Check out a release\n  git:\n    repo: https://git.example.org/app.git\n    dest: /srv/app\n    version: v1.4.2\n    depth: 1",
			"- name: Follow a branch with a key of its own\n  git:\n    repo: git@git.example.org:ops/config.git\n    dest: /etc/app/config\n    version: main\n    key_file: /root/.ssh/deploy\n    accept_newhostkey: true\n    force: true",
		},
		Returns: []module.Return{
			{Key: "before", Type: "str", Doc: "the commit before; null if there was none"},
			{Key: "after", Type: "str", Doc: "the commit now"},
			{Key: "remote_url_changed", Type: "bool", Doc: "the remote had another address; not there for a new clone"},
			{Key: "archive", Type: "str", Doc: "the archive, if one was asked for"},
			{Key: "msg", Type: "str", Doc: "Local modifications exist., if force discarded some"},
		},
		New: func() module.Runner { return &gitModule{} },
	}
}

// Rules implements schema.Ruled.
func (*gitModule) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("repo"),
		schema.Needs("dest").If("clone", true).Says("the destination directory must be specified unless clone=no"),
		schema.Between("depth", 1, schema.NoLimit),
		schema.Needs("archive").With("archive_prefix"),
		schema.AtMostOne("separate_git_dir", "bare"),
		schema.Looks("a word that does not begin with a dash", schema.NoDash, "version", "remote", "refspec"),
		schema.Looks("an address", schema.NoDash, "repo").Says("repo must not begin with a dash or have a line end in it"),
		schema.AddressOr("a path, or user@host:path", "repo"),
	}
}

// Run implements module.Runner.
func (m *gitModule) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	code := gitScript
	if m.Executable != "" {
		code += "\ngit() { command " + shell.Quote(m.Executable) + ` "$@"; }`
	}
	s := hostscript.New(code, "git_main").Args(m).Set("ssh", m.ssh())
	s.Env = m.access()
	r, a, err := c.Do(ctx, s)
	if err != nil {
		return r, m.hidden(err)
	}
	m.describe(c, &r, a)
	return r, nil
}

// ssh is the command for git to connect with, "" for git's own choice.
func (m *gitModule) ssh() string {
	if m.KeyFile == "" && m.SSHOpts == "" && !m.AcceptHostKey && !m.AcceptNewKey {
		return ""
	}
	command := "ssh -o BatchMode=yes"
	switch {
	case m.AcceptHostKey:
		command += " -o StrictHostKeyChecking=no"
	case m.AcceptNewKey:
		command += " -o StrictHostKeyChecking=accept-new"
	}
	if m.KeyFile != "" {
		command += " -o IdentitiesOnly=yes -i " + shell.Quote(m.KeyFile)
	}
	return strings.TrimSpace(command + " " + m.SSHOpts)
}

// access takes user and password out of the address.
func (m *gitModule) access() map[string]string {
	env := map[string]string{"KK_REPO": m.Repo}
	if m.Depth != nil && strings.HasPrefix(m.Repo, "/") {
		env["KK_REPO"] = "file://" + m.Repo // of a path git would ignore the depth
	}
	u, err := url.Parse(m.Repo)
	if err != nil || u.User == nil || u.Scheme != "http" && u.Scheme != "https" {
		return env
	}
	password, given := u.User.Password()
	if !given {
		return env
	}
	env["KK_USER"], env["KK_PASSWORD"] = u.User.Username(), password
	u.User = nil
	env["KK_REPO"] = u.String()
	return env
}

// hidden is an error without the password.
func (m *gitModule) hidden(err error) error {
	if password := m.access()["KK_PASSWORD"]; password != "" && strings.Contains(err.Error(), password) {
		return errors.New(strings.ReplaceAll(err.Error(), password, "********"))
	}
	return err
}

// describe adds the commits before and after, and what else was done.
func (m *gitModule) describe(c *module.Call, r *module.Result, a hostscript.Answer) {
	before, after := commit(a.Get("before")), commit(a.Get("after"))
	r.Data.Merge(value.NewDict("before", before, "after", after))
	if m.Archive != "" {
		r.Data.Set("archive", m.Archive)
	}
	if changed := a.Has("url_changed"); changed || before != nil && m.Update {
		r.Data.Set("remote_url_changed", changed)
	}
	c.Show(r, m.Dest, value.NewDict("commit", before), value.NewDict("commit", after))
}

func commit(name string) any {
	if name == "" {
		return nil
	}
	return name
}
