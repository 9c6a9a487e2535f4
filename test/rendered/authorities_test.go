package rendered

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/test/simulated"
)

// pairOf writes a certificate and its key; they are NAME.crt and NAME.key of the folder.
func pairOf(t *testing.T, dir, name string, change func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	crt := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "corporate " + name}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(5, 0, 0)}
	if change != nil {
		change(crt)
	}
	der, err := x509.CreateCertificate(rand.Reader, crt, crt, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	write := func(ending, kind string, der []byte) string {
		file := filepath.Join(dir, name+ending)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write(".crt", "CERTIFICATE", der), write(".key", "PRIVATE KEY", private)
}

// createWith creates a cluster with a further config in a folder, which keeps the work dir.
func createWith(t *testing.T, dir, further string) (fleet *simulated.Fleet, code int, out string) {
	t.Helper()
	c := plain("1.34")
	c["registry"] = "registry"
	c.write(t, dir)
	fleet = &simulated.Fleet{Record: true, Nodes: c.layout().Hosts()}
	var text bytes.Buffer
	args := append([]string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c",
		filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true", "--workdir", filepath.Join(dir, "work")},
		withConfig(t, further)...)
	code = fleet.Run(t.Context(), &text, args...)
	return fleet, code, text.String()
}

// The CAs of the user are those of the cluster, for its life.
func TestOwnCAs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	further := "kubernetes:\n  certificates:\n    ca:\n"
	files := map[string]string{}
	for name, file := range map[string]string{"kubernetes": "ca", "front_proxy": "front-proxy-ca", "etcd": "etcd/ca",
		"registry": "registry/ca"} {
		cert, key := pairOf(t, dir, name, nil)
		further += fmt.Sprintf("      %s: {cert: %s, key: %s}\n", name, cert, key)
		files[file+".crt"], files[file+".key"] = cert, key
	}
	fleet, code, out := createWith(t, dir, further)
	if code != 0 {
		t.Fatal(out)
	}
	for name, own := range files {
		want, err := os.ReadFile(own)
		if err != nil {
			t.Fatal(err)
		}
		if got, mode := content(fleet, "localhost", filepath.Join(dir, "work/clusters/kk/pki", name)); got != string(want) ||
			mode != "0600" {
			t.Errorf("pki/%s is not the user's, or its mode %s: %q", name, mode, got)
		}
	}
	for _, call := range fleet.Calls() {
		if cert := call.Args.String("cert"); call.Module == "gen_cert" && strings.HasSuffix(cert, "ca.crt") {
			t.Errorf("%s: %s is made", call.Task, cert)
		}
	}
}

// What is wrong with the files is reported before a host is reached, with the file.
func TestWrongCAs(t *testing.T) {
	dir := t.TempDir()
	cert, key := pairOf(t, dir, "good", nil)
	other, otherKey := pairOf(t, dir, "other", nil)
	leaf, leafKey := pairOf(t, dir, "leaf", func(c *x509.Certificate) { c.IsCA = false })
	old, oldKey := pairOf(t, dir, "old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	late, lateKey := pairOf(t, dir, "late", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	two := filepath.Join(dir, "two.crt")
	first, _ := os.ReadFile(cert)
	second, _ := os.ReadFile(other)
	if err := os.WriteFile(two, append(first, second...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cert, key, want string }{
		{cert, "", "kubernetes.certificates.ca.etcd.cert: the key is missing: kubernetes.certificates.ca.etcd.key"},
		{"", key, "kubernetes.certificates.ca.etcd.key: the certificate is missing: kubernetes.certificates.ca.etcd.cert"},
		{cert, otherKey, "kubernetes.certificates.ca.etcd.key: " + otherKey + " is not the key of " + cert},
		{leaf, leafKey, leaf + " (CN=corporate leaf) is not a CA"},
		{old, oldKey, old + " expired on "}, {late, lateKey, late + " is not valid before "},
		{key, key, key + ": holds no certificate"}, {cert, cert, cert + " holds no key"},
		{two, key, two + " holds 2 certificates"},
		{dir + "/none.crt", key, dir + "/none.crt: no such file"},
	} {
		fleet, code, out := createWith(t, t.TempDir(),
			fmt.Sprintf("kubernetes:\n  certificates:\n    ca:\n      etcd: {cert: '%s', key: '%s'}\n", c.cert, c.key))
		if code != 4 || !strings.Contains(out, c.want) || !strings.Contains(out, "further.yaml:4:") {
			t.Errorf("exit code %d, want %q in:\n%s", code, c.want, out)
		}
		if len(fleet.Calls()) > 0 {
			t.Errorf("%s: a task ran", c.want)
		}
	}
}
