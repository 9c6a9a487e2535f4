package crypto

import (
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestDHParam(t *testing.T) {
	p := t.TempDir() + "/dh's.pem"
	r := keep(t, "openssl_dhparam", "path", p, "size", 512)
	if got := openssl(t, "dhparam", "-in", p, "-noout", "-text"); !strings.Contains(got, "(512 bit)") {
		t.Errorf("openssl says %s", got)
	}
	if size, _ := r.Data.Get("size"); size != 512 || len(r.Diff) != 1 || mode(t, p) != "-rw-r--r--" ||
		r.Data.String("filename") != p {
		t.Errorf("%s, %s, %+v", value.Repr(r.Data), mode(t, p), r.Diff)
	}
	first := text(t, p)
	r = keep(t, "openssl_dhparam", "path", p, "size", 513, "backup", true, "return_content", true, "mode", "0600")
	if text(t, r.Data.String("backup_file")) != first || r.Data.String("dhparams") != text(t, p) ||
		mode(t, p) != "-rw-------" {
		t.Errorf("of other parameters it tells %s", value.Repr(r.Data))
	}
	was := text(t, p)
	if r := once(t, "openssl_dhparam", "path", p, "size", 513, "force", true); !r.Changed || text(t, p) == was {
		t.Errorf("force left them: %+v", r)
	}
	if err := os.WriteFile(p, []byte("-----BEGIN DH PARAMETERS-----\nMAA=\n-----END DH PARAMETERS-----\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	keep(t, "openssl_dhparam", "path", p, "size", 512)
	absent := value.NewDict("path", p, "size", 512, "state", "absent", "return_content", true)
	if r := moduletest.Run(t, dhparamSpec(), absent, moduletest.Options{Check: true}); r.Data.String("dhparams") != text(t,
		p) {
		t.Errorf("what check mode leaves is %s", value.Repr(r.Data))
	}
	r = keep(t, "openssl_dhparam", "path", p, "size", 512, "state", "absent", "backup", true)
	if !strings.Contains(text(t, r.Data.String("backup_file")), "DH PARAMETERS") {
		t.Error("the backup holds no parameters")
	}
	refuses(t, "at least 512", "openssl_dhparam", "path", p, "size", 511)
	refuses(t, "is a folder", "openssl_dhparam", "path", t.TempDir())
}

func TestDHParamNeedsOpenSSL(t *testing.T) {
	host := moduletest.NewStandIns(t, map[string]string{"openssl": "echo no entropy >&2; exit 1"})
	moduletest.Fails(t, "512 bits: no entropy", dhparamSpec(), value.NewDict("path", t.TempDir()+"/p", "size", 512),
		moduletest.Options{Conn: host})
}
