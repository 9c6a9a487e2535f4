package pki

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

func certInfoSpec() module.Spec {
	return module.Spec{
		Name: "x509_certificate_info", Collection: "kk",
		Summary: "Tells what a certificate says and how long it is valid.",
		Notes: []string{
			"The certificate is a file of the control node or a text, so hosts need no openssl: slurp the file and give its content.",
			"A text with several certificates is described by its first; all of them are in chain. Keys in it are passed over.",
		},
		Examples: []string{
			"- name: Read the certificate\n  slurp:\n    src: /etc/kubernetes/pki/apiserver.crt\n  register: pem\n- name: Does it last?\n  x509_certificate_info:\n    content: \"{{ pem.content | b64decode }}\"\n    before_days: 14\n  register: cert\n  failed_when: cert.expiring",
		},
		Returns: []module.Return{
			{Key: "days_left", Type: "int", Doc: "whole days until it ends; negative once it has"},
			{Key: "expired", Type: "bool", Doc: "it has ended"},
			{Key: "expiring", Type: "bool", Doc: "it has ended, or does within before_days"},
			{Key: "not_before", Type: "str", Doc: "when it begins, RFC 3339"},
			{Key: "not_after", Type: "str", Doc: "when it ends"},
			{Key: "common_name", Type: "str", Doc: "CN of the subject"},
			{Key: "organization", Type: "list of str", Doc: "O of the subject"},
			{Key: "subject", Type: "str", Doc: "the whole subject"},
			{Key: "issuer", Type: "str", Doc: "who signed it"},
			{Key: "sans", Type: "list of str", Doc: "names that it is valid for, as DNS:NAME, IP:ADDRESS, URI:..., email:..."},
			{Key: "is_ca", Type: "bool", Doc: "it is an authority"},
			{Key: "key_type", Type: "str", Doc: "kind of its key: RSA 2048, ECDSA P-256, Ed25519"},
			{Key: "key_usage", Type: "list of str", Doc: "what the key may be used for, by the names that gen_cert takes"},
			{Key: "extended_key_usage", Type: "list of str", Doc: "what the certificate may be used for"},
			{Key: "serial", Type: "str", Doc: "serial number, hexadecimal"},
			{Key: "fingerprint", Type: "str", Doc: "sha256:HEX of the certificate"},
			{Key: "spki_sha256", Type: "str", Doc: "sha256:HEX of its public key"},
			{Key: "chain", Type: "list of dict", Doc: "all certificates of the text, each with these keys"},
		},
		New:   func() module.Runner { return &CertInfo{} },
		Where: module.OnControl,
		Check: module.Harmless,
	}
}

// CertInfo is the module x509_certificate_info.
type CertInfo struct {
	Content string `kk:"content" doc:"the certificate, PEM"`
	Path    string `kk:"path,path" doc:"file of the control node that holds it"`
	Before  int    `kk:"before_days" default:"30" doc:"days before its end from which it is expiring"`
}

// Run implements module.Runner.
func (m *CertInfo) Run(_ context.Context, c *module.Call) (module.Result, error) {
	if (m.Content == "") == (m.Path == "") {
		return module.Result{Failed: true, Msg: "give either content or path"}, nil
	}
	text, name := []byte(m.Content), "content"
	if m.Path != "" {
		var err error
		if text, err = os.ReadFile(m.Path); err != nil {
			return module.Result{}, err
		}
		name = m.Path
	}
	certs, err := parseCerts(text)
	if err != nil {
		return module.Result{Failed: true, Msg: fmt.Sprintf("%s %v", name, err)}, nil
	}
	chain := make([]any, len(certs))
	for i, crt := range certs {
		chain[i] = m.describe(crt, c.Now())
	}
	data := m.describe(certs[0], c.Now())
	data.Set("chain", chain)
	return module.Result{Data: data}, nil
}

func (m *CertInfo) describe(crt *x509.Certificate, now time.Time) *value.Dict {
	ended := !crt.NotAfter.After(now)
	soon := crt.NotAfter.Sub(now) < time.Duration(m.Before)*24*time.Hour
	return value.NewDict(
		"days_left", daysLeft(crt, now), "expired", ended, "expiring", ended || soon,
		"not_before", rfc3339(crt.NotBefore), "not_after", rfc3339(crt.NotAfter),
		"common_name", crt.Subject.CommonName, "organization", value.List(crt.Subject.Organization),
		"subject", crt.Subject.String(), "issuer", crt.Issuer.String(), "sans", value.List(sanTexts(crt)),
		"is_ca", crt.IsCA, "key_type", kindName(crt.PublicKey),
		"key_usage", value.List(keyUsageNames(crt)), "extended_key_usage", value.List(usageNames(crt)),
		"serial", serial(crt), "fingerprint", fingerprint(crt), "spki_sha256", pin(crt.PublicKey),
	)
}

func keyUsageNames(crt *x509.Certificate) []string {
	var texts []string
	for name, bit := range keyUsages() {
		if crt.KeyUsage&bit != 0 {
			texts = append(texts, name)
		}
	}
	slices.Sort(texts)
	return texts
}
