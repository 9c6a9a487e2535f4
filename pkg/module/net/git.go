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
	Repo          string `kk:"repo,required,private,alias=name" doc:"address of the repository: https, ssh, git, user@host:path, or a path on the host"`
	Dest          string `kk:"dest,path" doc:"folder on the host to clone into; needed unless clone is no"`
	Version       string `kk:"version" default:"HEAD" doc:"branch, tag, full commit hash, or HEAD: the current branch, in a new clone the default branch of the remote"`
	Remote        string `kk:"remote" default:"origin" doc:"name of the remote"`
	Refspec       string `kk:"refspec" doc:"additional refspec to fetch"`
	Reference     string `kk:"reference,path" doc:"repository on the host to reuse objects from (git clone --reference)"`
	Depth         *int   `kk:"depth" doc:"create a shallow clone with this many commits"`
	SingleBranch  bool   `kk:"single_branch" default:"no" doc:"clone only the history of version"`
	Clone         bool   `kk:"clone" default:"yes" doc:"clone a repository that does not exist; with no, only the commit of the remote is returned"`
	Update        bool   `kk:"update" default:"yes" doc:"fetch and check out newer commits"`
	Force         bool   `kk:"force" default:"no" doc:"discard local changes instead of failing"`
	Bare          bool   `kk:"bare" default:"no" doc:"create a bare repository, without checked-out files"`
	Recursive     bool   `kk:"recursive" default:"yes" doc:"update submodules too"`
	Track         bool   `kk:"track_submodules" default:"no" doc:"use the newest commit on the branch of each submodule"`
	KeyFile       string `kk:"key_file,path" doc:"private key on the host for ssh"`
	SSHOpts       string `kk:"ssh_opts" doc:"additional options of ssh"`
	AcceptHostKey bool   `kk:"accept_hostkey" default:"no" doc:"accept any host key of the server, without verification"`
	AcceptNewKey  bool   `kk:"accept_newhostkey" default:"no" doc:"accept the host key of an unknown server"`
	VerifyCommit  bool   `kk:"verify_commit" default:"no" doc:"fail if the checked-out commit is not signed by a key that gpg on the host trusts"`
	Executable    string `kk:"executable,path" doc:"path of git on the host. Default: found in PATH"`
	Umask         string `kk:"umask" doc:"umask for the files, octal"`
	Archive       string `kk:"archive,path" doc:"archive of the commit to create on the host; the extension sets the format: .zip, .tar, .tar.gz or .tgz"`
	ArchivePrefix string `kk:"archive_prefix" doc:"prefix of every name in the archive, usually with a trailing slash; needs archive"`
	SeparateDir   string `kk:"separate_git_dir,path" doc:"folder on the host for the repository itself; dest gets a file .git that points to it"`
}

func gitSpec() module.Spec {
	return module.Spec{
		Name:    "git",
		Summary: "Clones a git repository to the host and checks out a version.",
		Notes: []string{
			"The host needs git. It never prompts: a missing password or an unknown host key is a failure.",
			"A user name and password in repo are passed to git in its environment: they do not appear in the process list " +
				"and are not stored on the host.",
			"Local commits that the remote branch does not have are discarded, as are local changes with force. Untracked " +
				"files are kept unless they conflict with the checkout.",
			"An abbreviated commit hash is read as a branch or a tag. With depth, a commit that the server does not serve " +
				"by its hash makes git fetch everything.",
			"Check mode asks the remote for its commits and changes nothing.",
		},
		Examples: []string{
			"- name: Check out a release\n  git:\n    repo: https://git.example.org/app.git\n    dest: /srv/app\n" +
				"    version: v1.4.2\n    depth: 1",
			"- name: Follow a branch with a deploy key\n  git:\n    repo: git@git.example.org:ops/config.git\n" +
				"    dest: /etc/app/config\n    version: main\n    key_file: /root/.ssh/deploy\n    accept_newhostkey: true\n" +
				"    force: true",
		},
		Returns: []module.Return{
			{Key: "before", Type: "str", Doc: "the commit before the task; null if there was none"},
			{Key: "after", Type: "str", Doc: "the commit after the task"},
			{Key: "remote_url_changed", Type: "bool", Doc: "whether the address of the remote was changed; not set for a " +
				"new clone"},
			{Key: "archive", Type: "str", Doc: "path of the archive, if archive was given"},
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
		schema.Looks("a single argument that does not begin with a dash", schema.NoDash, "version", "remote", "refspec"),
		schema.Looks("an address", schema.NoDash, "repo").Says("repo must not begin with a dash or contain a line break"),
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

// ssh is the ssh command for git, "" for git's default.
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

// access separates user and password from the address.
func (m *gitModule) access() map[string]string {
	env := map[string]string{"KK_REPO": m.Repo}
	if m.Depth != nil && strings.HasPrefix(m.Repo, "/") {
		env["KK_REPO"] = "file://" + m.Repo // git ignores the depth for a plain path
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

// describe adds the commits before and after, and other changes.
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
