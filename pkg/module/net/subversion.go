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
	Dest          string        `kk:"dest,path" doc:"folder of the host for it; needed unless checkout, update and export are all no"`
	Revision      string        `kk:"revision,alias=rev|version" default:"HEAD" doc:"the revision to have"`
	Force         bool          `kk:"force" default:"no" doc:"discard local changes instead of failing"`
	InPlace       bool          `kk:"in_place" default:"no" doc:"check out over a folder that is there and no checkout; with force, files in it that differ are reverted"`
	Username      string        `kk:"username" doc:"user of the repository"`
	Password      redact.Secret `kk:"password" doc:"password of the user; svn 1.10 or newer takes it"`
	Executable    string        `kk:"executable,path" doc:"the svn of the host. Default: the one in PATH"`
	Checkout      bool          `kk:"checkout" default:"yes" doc:"check out what is not there"`
	Update        bool          `kk:"update" default:"yes" doc:"bring a checkout that is there to the revision"`
	Export        bool          `kk:"export" default:"no" doc:"the files alone, without what makes them a checkout; that is a change each time, and a folder that is there needs force"`
	Switch        bool          `kk:"switch" default:"yes" doc:"lead a checkout of another address to this one"`
	ValidateCerts bool          `kk:"validate_certs" default:"no" doc:"refuse servers whose certificate no authority of the host has signed"`
}

func subversionSpec() module.Spec {
	return module.Spec{
		Name:    "subversion",
		Summary: "Check out a Subversion repository to the host, and keep it at a revision.",
		Notes:   []string{"The host needs svn. The password reaches it through its standard input: it is not in the process list and not stored on the host."},
		Examples: []string{
			"- name: Check out a branch\n  subversion:\n    repo: file:///srv/svn/app/trunk\n    dest: /srv/app",
		},
		Returns: []module.Return{
			{Key: "before", Type: "list", Doc: "revision and address before, as svn info prints them; null if there was no checkout. In check mode the revision alone, as text"},
			{Key: "after", Type: "list", Doc: "the same now; the revision of the repository alone, as text, if neither checkout nor update is wanted"},
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
		schema.Looks("a word that does not begin with a dash", schema.NoDash, "revision"),
		schema.Looks("an address", schema.NoDash, "repo").Says("repo must not begin with a dash or have a line end in it"),
		schema.AddressOr("a path", "repo"),
		schema.Looks("without a password", hasNoPassword, "repo").
			Says("repo holds a password, which the host's list of processes would show: give it as password"),
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
