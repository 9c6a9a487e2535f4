package net

import (
	"context"
	_ "embed"
	"net/url"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed subversion.sh
var subversionScript string

// subversion is the module of that name.
type subversion struct {
	Repo          string        `kk:"repo,required,private,alias=name|repository" doc:"address of the repository"`
	Dest          string        `kk:"dest,path" doc:"folder on the host to check out into; needed unless checkout, update and export are all no"`
	Revision      string        `kk:"revision,alias=rev|version" default:"HEAD" doc:"revision to check out"`
	Force         bool          `kk:"force" default:"no" doc:"discard local changes instead of failing"`
	InPlace       bool          `kk:"in_place" default:"no" doc:"check out into an existing folder that is not a working copy; with force, files that differ are reverted"`
	Username      string        `kk:"username" doc:"user name for the repository"`
	Password      redact.Secret `kk:"password" doc:"password of the user; needs svn 1.10 or newer"`
	Executable    string        `kk:"executable,path" doc:"path of svn on the host. Default: found in PATH"`
	Checkout      bool          `kk:"checkout" default:"yes" doc:"check out a working copy that does not exist"`
	Update        bool          `kk:"update" default:"yes" doc:"update an existing working copy to the revision"`
	Export        bool          `kk:"export" default:"no" doc:"export the files without version control; always a change, and an existing folder needs force"`
	Switch        bool          `kk:"switch" default:"yes" doc:"switch a working copy of another address to this one"`
	ValidateCerts bool          `kk:"validate_certs" default:"no" doc:"reject servers whose certificate is not signed by a CA that the host trusts"`
}

func subversionSpec() module.Spec {
	return module.Spec{
		Name:    "subversion",
		Summary: "Checks out a Subversion repository on the host at a revision.",
		Notes: []string{"The host needs svn. The password is passed on standard input: it does not appear in the " +
			"process list and is not stored on the host."},
		Examples: []string{
			"- name: Check out a branch\n  subversion:\n    repo: file:///srv/svn/app/trunk\n    dest: /srv/app",
		},
		Returns: []module.Return{
			{Key: "before", Type: "list", Doc: "revision and address before the task, as svn info prints them; null if " +
				"there was no working copy. In check mode the revision alone, as text"},
			{Key: "after", Type: "list", Doc: "the same after the task; if both checkout and update are no, the revision " +
				"of the repository alone, as text"},
		},
		New: func() module.Runner { return &subversion{} },
	}
}

const svnDest = "the destination directory must be specified unless checkout=no, update=no, and export=no"

func hasNoPassword(repo string) bool {
	u, err := url.Parse(repo)
	if err != nil {
		return true
	}
	_, inside := u.User.Password()
	return !inside
}

// Rules implements schema.Ruled.
func (*subversion) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("repo"),
		schema.Needs("dest").If("checkout", true).Says(svnDest),
		schema.Needs("dest").If("update", true).Says(svnDest),
		schema.Needs("dest").If("export", true).Says(svnDest),
		schema.Looks("a single argument that does not begin with a dash", schema.NoDash, "revision"),
		schema.Looks("an address", schema.NoDash, "repo").Says("repo must not begin with a dash or contain a line break"),
		schema.AddressOr("a path", "repo"),
		schema.Looks("without a password", hasNoPassword, "repo").
			Says("repo contains a password, which the process list of the host would show: set it with password"),
	}
}

// Run implements module.Runner.
func (m *subversion) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	asks := !m.Checkout && !m.Update && !m.Export
	s := hostscript.New(subversionScript, "subversion_main").Args(m)
	s.Env = map[string]string{"KK_REPO": m.Repo, "KK_PASSWORD": m.Password.Reveal()}
	r, a, err := c.Do(ctx, s)
	if err != nil {
		return r, err
	}
	for _, key := range []string{"before", "after"} {
		switch v := a[key]; {
		case len(v) == 1:
			r.Data.Set(key, v[0])
		case len(v) > 1:
			r.Data.Set(key, value.Of(v))
		}
	}
	if a.Has("after") && !a.Has("before") && !asks {
		r.Data.Set("before", nil)
	}
	return r, nil
}
