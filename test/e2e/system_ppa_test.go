package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// launchpad answers in the place of Launchpad and of the server of keys, which
// the host's curl is sent to. It returns what it was asked for.
func launchpad(g target, fingerprint, key string) func() string {
	g.t.Helper()
	asked := make(chan string, 100)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Host + r.URL.Path
		switch {
		case r.TLS != nil && r.URL.Path == "/1.0/~someone/+archive/tools":
			fmt.Fprintf(w, `{"signing_key_fingerprint": %q}`, fingerprint)
		case r.TLS != nil && r.URL.Path == "/1.0/~someone/+archive/empty":
			_, _ = io.WriteString(w, `{"signing_key_fingerprint": null}`)
		case r.TLS != nil && r.URL.Path == "/1.0/~someone/+archive/false":
			fmt.Fprintf(w, `{"signing_key_fingerprint": %q}`, strings.Repeat("AB", 20))
		case r.TLS == nil && r.URL.Path == "/pks/lookup" && strings.HasPrefix(r.URL.Query().Get("search"), "0x"):
			_, _ = io.WriteString(w, key)
		default:
			http.NotFound(w, r)
		}
	})
	settings := ""
	for _, host := range []string{"api.launchpad.net:443", "keyserver.ubuntu.com:80"} {
		l, err := net.Listen("tcp", net.JoinHostPort(hosts.Gateway(), "0"))
		if err != nil {
			g.t.Fatal(err)
		}
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}, TLS: &tls.Config{}}
		if strings.HasSuffix(host, ":443") {
			s.StartTLS()
		} else {
			s.Start()
		}
		g.t.Cleanup(s.Close)
		settings += fmt.Sprintf("connect-to = \"%s:%s\"\n", host, l.Addr())
	}
	g.sh("cat >/root/.curlrc <<'END'\n" + settings + "END")
	return func() string {
		var all []string
		for len(asked) > 0 {
			all = append(all, <-asked)
		}
		return strings.Join(all, " ")
	}
}

func TestAptRepositoryOfLaunchpad(t *testing.T) {
	g := newTarget(t)
	const file, ring = "/etc/apt/sources.list.d/ppa_someone_tools_bookworm.list",
		"/etc/apt/trusted.gpg.d/someone-ubuntu-tools.gpg"
	t.Cleanup(func() {
		g.sh("rm -f /root/.curlrc " + file + " " + ring +
			"; mv /srv/aside.d/* /etc/apt/trusted.gpg.d/; rmdir /srv/aside.d; true")
	})
	fingerprint := keyFingerprint(g) // needs apt, and so its keys
	g.sh("mkdir -p /srv/aside.d; mv /etc/apt/trusted.gpg.d/* /srv/aside.d/; rm -f /etc/apt/trusted.gpg " + file + " " +
		ring)
	key := g.sh("cat /srv/aside.d/debian-archive-bookworm-stable.asc")
	asked := launchpad(g, fingerprint, key)
	ppa := []any{"repo", "ppa:someone/tools", "update_cache", false, "validate_certs", false}
	const line = "deb https://ppa.launchpadcontent.net/someone/tools/ubuntu bookworm main"
	g.dry("apt_repository", ppa...)
	if got := asked(); got != "api.launchpad.net/1.0/~someone/+archive/tools" {
		t.Errorf("check mode asked %q", got)
	}
	g.sees("ls "+file+" "+ring+" 2>/dev/null", "")
	g.twice("apt_repository", ppa...)
	g.sees("cat "+file, line)
	g.sees("gpg -q --batch --with-colons --show-keys "+ring+
		" 2>/dev/null | sed -n 's/^fpr:*\\([0-9A-F]*\\):.*/\\1/p' | head -n 1", fingerprint)
	asked()
	g.same("apt_repository", ppa...)
	if got := asked(); got != "" {
		t.Errorf("an archive that is there made it ask %q", got)
	}
	g.twice("apt_repository", append(ppa, "state", "absent")...)
	g.sees("ls "+file+" 2>/dev/null; ls "+ring, ring)
	asked()
	g.run("apt_repository", append(ppa, "codename", "jammy", "filename", "own")...)
	g.sees("cat /etc/apt/sources.list.d/own.list; rm /etc/apt/sources.list.d/own.list",
		strings.Replace(line, "bookworm", "jammy", 1))
	if got := asked(); strings.Contains(got, "keyserver") {
		t.Errorf("a key that is trusted made it ask %q", got)
	}
	g.sh("echo 'deb http://ppa.launchpad.net/someone/tools/ubuntu bookworm main' >" + file)
	g.same("apt_repository", ppa...) // as older tools wrote it
	g.run("apt_repository", append(ppa, "state", "absent")...)
	g.sees("ls "+file+" 2>/dev/null", "")
	for name, why := range map[string]string{
		"someone/empty": "nothing is published there yet", "someone/none": "failed to fetch PPA information",
		"someone/false": "did not return the key",
	} {
		g.fails(why, "apt_repository", "repo", "ppa:"+name, "update_cache", false, "validate_certs", false)
	}
	g.sees("ls /etc/apt/sources.list.d /etc/apt/trusted.gpg.d | grep -c someone", "1")
}
