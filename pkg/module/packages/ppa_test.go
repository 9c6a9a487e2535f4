package packages

import (
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
)

func TestPPA(t *testing.T) {
	for repo, want := range map[string]ppa{
		"ppa:nginx/stable":        {"nginx", "stable", "jammy"},
		"ppa:nginx":               {"nginx", "ppa", "jammy"},
		"ppa:nginx/ubuntu/stable": {"nginx", "stable", "jammy"},
		" ppa:a.b+c/d-e ":         {"a.b+c", "d-e", "jammy"},
	} {
		if got, err := parsePPA(repo, "jammy"); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", repo, got, err)
		}
	}
	for _, repo := range []string{"ppa:", "ppa:a/b/c", "ppa:a b/c", "ppa:-a/b", "ppa:a/../b"} {
		if got, err := parsePPA(repo, "jammy"); err == nil || !strings.Contains(err.Error(), "write ppa:OWNER/NAME") {
			t.Errorf("%s: got %+v, %v", repo, got, err)
		}
	}
	if _, err := parsePPA("ppa:nginx/stable", ""); err == nil || !strings.Contains(err.Error(), "codename") {
		t.Errorf("without a codename: %v", err)
	}
	p := ppa{"nginx", "stable", "jammy"}
	if got := p.sources(); got[0] != "deb https://ppa.launchpadcontent.net/nginx/stable/ubuntu jammy main" ||
		!slices.Contains(got, "deb http://ppa.launchpad.net/nginx/stable/ubuntu jammy main") {
		t.Errorf("got %q", got)
	}
	if got := p.fileName(); got != "ppa_nginx_stable_jammy" {
		t.Errorf("got %q", got)
	}
}

func TestCheckModeAsksLaunchpadAndNobodyElse(t *testing.T) {
	h := moduletest.NewStandIns(t, map[string]string{
		"apt-get": "exit 1", "base64": `exec /usr/bin/base64 "$@"`,
		"curl": `case "$*" in
*archive/empty) echo '{"signing_key_fingerprint": null}' >"$3" ;;
*archive/broken) echo '<html>' >"$3" ;;
*) echo '{"signing_key_fingerprint": "AE9C184E2D4A9AE03BC72D2F274C2ADBC218D95A"}' >"$3" ;;
esac`,
	})
	o := moduletest.Options{Conn: h, Check: true}
	r := run(t, "apt_repository", o, "repo", "ppa:nginx/stable", "codename", "jammy")
	if got, _ := moduletest.Field(r, "sources_added").([]any); !r.Changed || len(got) != 1 ||
		got[0] != "/etc/apt/sources.list.d/ppa_nginx_stable_jammy.list" {
		t.Errorf("got %+v", r)
	}
	var asked []string
	for _, call := range strings.Split(h.Calls(), "\n") {
		if strings.HasPrefix(call, "curl") {
			asked = append(asked, call[strings.LastIndex(call, " ")+1:])
		}
	}
	if !slices.Equal(asked, []string{"https://api.launchpad.net/1.0/~nginx/+archive/stable"}) {
		t.Errorf("asked %q", asked)
	}
	fails(t, "nothing is published there yet", "apt_repository", o, "repo", "ppa:nginx/empty", "codename", "jammy")
	fails(t, "read the answer of Launchpad for nginx/broken", "apt_repository", o, "repo", "ppa:nginx/broken", "codename",
		"jammy")
}
