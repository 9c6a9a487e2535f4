package image

import (
	"net/http"
	"strings"
	"testing"

	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
	"kubekey/test/harbor"
)

// Harbor sends clients to its host name for tokens. Where the control node cannot resolve that name, it is reached at
// the address that is known.
func TestTokensOfAHostNameThatOnlyTheRegistryKnows(t *testing.T) {
	from := plain(t)
	from.push(t, "one", artifacttest.PlatformImage(t, "amd64"))
	ca, port := harbor.NewCA(t), harbor.Port(t)
	to := ca.Serve(t, "harbor.invalid", "127.0.0.1", port, "admin", "right-password")
	run := func(dest, host, password, resolve string, tls *value.Dict) module.Result {
		t.Helper()
		conf := plainTLS(from)
		conf.Set(host, tls)
		args := value.NewDict("tls", conf, "auth",
			value.NewDict(host, value.NewDict("username", "admin", "password", password)),
			"src", from.host+"/one", "dest", dest, "attempts", 1)
		if resolve != "" {
			args.Set("resolve", value.NewDict("harbor.invalid", resolve))
		}
		return moduletest.Run(t, spec(t), args, moduletest.Options{})
	}
	named, numbered := "harbor.invalid:"+port, "127.0.0.1:"+port
	trusted := value.NewDict("ca", ca.PEM)
	for _, c := range []struct{ dest, host, resolve string }{
		{named + "/library/a:1", named, "127.0.0.1"},
		{numbered + "/library/b:1", numbered, ""},
	} {
		if r := run(c.dest, c.host, "right-password", c.resolve, trusted); r.Failed || !r.Changed {
			t.Errorf("%s: %+v", c.dest, r)
		}
		before := to.Uploads()
		if r := run(c.dest, c.host, "right-password", c.resolve, trusted); r.Failed || r.Changed || to.Uploads() != before {
			t.Errorf("%s again: %+v", c.dest, r)
		}
	}
	if to.Digest("library/a", "1") == "" || to.Digest("library/a", "1") != to.Digest("library/b", "1") {
		t.Error("the images are not in the registry")
	}
	for dest, want := range map[string]string{
		named + "/pause:1":        "invalid repository name: pause",
		named + "/missing/one:1":  "project missing not found",
		numbered + "/library/c:1": "unauthorized",
	} {
		host, _, _ := strings.Cut(dest, "/")
		password := map[bool]string{true: "right-password", false: "wrong-password"}[host == named]
		r := run(dest, host, password, "127.0.0.1", trusted)
		if !r.Failed || !strings.Contains(strings.ToLower(r.Msg), want) || strings.Contains(r.Msg, "wrong-password") {
			t.Errorf("%s: %+v", dest, r)
		}
	}
	if r := run(numbered+"/library/d:1", numbered, "right-password", "", value.NewDict()); !r.Failed ||
		!strings.Contains(r.Msg, "certificate") {
		t.Errorf("without the CA: %+v", r)
	}
	_, err := moduletest.Try(t, spec(t), value.NewDict("src", "a", "dest", "b", "resolve",
		value.NewDict("harbor.invalid", "10.0.0.9:80")), moduletest.Options{})
	if err == nil || !strings.Contains(err.Error(), `"harbor.invalid": "10.0.0.9:80" must be a host name, and its IP address`) {
		t.Errorf("got %v", err)
	}
}

func TestRealmOf(t *testing.T) {
	for header, want := range map[string]string{
		`Bearer realm="https://h.example:8443/service/token",service="harbor-registry"`: "h.example:8443",
		`bearer service="x", REALM="http://[::1]/t"`:                                    "[::1]",
		`Basic realm="https://h.example/"`:                                              "",
		`Bearer realm="ftp://h.example/"`:                                               "",
		`Bearer realm="/token"`:                                                         "",
		`Bearer`:                                                                        "",
		`Bearer realm="https://%zz/"`:                                                   "",
	} {
		got := ""
		if u := realmOf(http.Header{"Www-Authenticate": {header}}); u != nil {
			got = u.Host
		}
		if got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func FuzzRealm(f *testing.F) {
	f.Add(`Bearer realm="https://h.example:8443/service/token",service="harbor-registry"`, `Basic realm="harbor"`)
	f.Add(`bearer realm="http://[::1]:5000"`, `Bearer realm=""`)
	f.Fuzz(func(t *testing.T, first, second string) {
		u := realmOf(http.Header{"Www-Authenticate": {first, second}})
		if u != nil && (u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http") {
			t.Errorf("%q, %q: %v", first, second, u)
		}
	})
}
