package pki

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func genCertSpec() module.Spec {
	return module.Spec{
		Name: "gen_cert", Collection: "kk",
		Summary: "Creates a key and a certificate on the control node, and renews them before they expire.",
		Notes: []string{
			"With ca_cert and ca_key the certificate is signed by that CA, otherwise it is self-signed. Without cert and " +
				"common_name only a key is created; pub writes its public key.",
			"A certificate is replaced when it expires within renew_before_days, when its subject, names, usages, key type " +
				"or CA differ from the arguments, when days is set and it was made for another number of days, when its key " +
				"does not match, or when a file cannot be read. reason in the result explains it.",
			"A CA keeps its key if the key has the requested type, so certificates that it signed and pins of it remain " +
				"valid; other certificates get a new key each time. A key without a certificate is used.",
			"With policy if_not_present an existing CA is never replaced: any problem with it is an error.",
			"The key has mode 0600 and is written before its certificate, each file atomically. An interruption in between " +
				"leaves a pair that does not match; the next run repairs it. Missing folders are created with mode 0700. " +
				"Concurrent runs take turns.",
			"extended_key_usage defaults to server_auth and client_auth for a certificate with sans, client_auth for one " +
				"without, and none for a CA; key_usage to digital_signature, with key_encipherment for RSA, and cert_sign and " +
				"crl_sign for a CA.",
			"A certificate never outlives its CA. One that expires together with its CA is not renewed early.",
			"In check mode it predicts the result and changes nothing.",
		},
		Examples: []string{
			"- name: Create the CA\n  gen_cert:\n    cert: pki/ca.crt\n    key: pki/ca.key\n    common_name: example\n" +
				"    is_ca: true\n    policy: if_not_present",
			"- name: Create a server certificate\n  gen_cert:\n    cert: pki/server.crt\n    key: pki/server.key\n" +
				"    ca_cert: pki/ca.crt\n    ca_key: pki/ca.key\n    common_name: www.example.org\n" +
				"    sans: [www.example.org, 192.0.2.10, \"2001:db8::10\"]",
			"- name: Create a key pair for signing tokens\n  gen_cert:\n    key: pki/sa.key\n    pub: pki/sa.pub\n" +
				"    key_type: RSA\n    policy: if_not_present",
		},
		Returns: []module.Return{
			{Key: "reason", Type: "str", Doc: "why it was created, or would be; empty if nothing differs"},
			{Key: "cert", Type: "str", Doc: "path of the certificate"},
			{Key: "key", Type: "str", Doc: "path of the key"},
			{Key: "pub", Type: "str", Doc: "path of the public key"},
			{Key: "not_before", Type: "str", Doc: "start of the validity, RFC 3339"},
			{Key: "not_after", Type: "str", Doc: "end of the validity"},
			{Key: "days_left", Type: "int", Doc: "full days until the certificate expires"},
			{Key: "serial", Type: "str", Doc: "serial number of the certificate, hexadecimal"},
			{Key: "fingerprint", Type: "str", Doc: "sha256:HEX of the certificate"},
			{Key: "spki_sha256", Type: "str", Doc: "sha256:HEX of the public key, as in the CA pins of kubeadm; in check " +
				"mode empty for a key that would be created"},
		},
		New:   func() module.Runner { return &GenCert{} },
		Where: module.OnControl,
	}
}

// GenCert is the module gen_cert.
type GenCert struct {
	Cert         string          `kk:"cert,path" doc:"path of the certificate, PEM"`
	Key          string          `kk:"key,required,path" doc:"path of the key, PEM (PKCS #8), mode 0600"`
	Pub          string          `kk:"pub,path" doc:"path of the public key, PEM"`
	CACert       string          `kk:"ca_cert,path" doc:"path of the certificate of the signing CA"`
	CAKey        string          `kk:"ca_key,path" doc:"path of the key of ca_cert"`
	CommonName   string          `kk:"common_name" doc:"CN of the subject"`
	Organization []string        `kk:"organization" doc:"O of the subject"`
	SANs         []string        `kk:"sans" doc:"subject alternative names; IP addresses, URIs (with ://), email addresses (with @) and DNS names are recognized; the prefixes DNS:, IP:, URI: and email: set the type"`
	IsCA         bool            `kk:"is_ca" default:"no" doc:"create a CA"`
	PathLength   *int            `kk:"path_length" doc:"maximum number of CAs below this one. Default: unlimited"`
	KeyType      string          `kk:"key_type" default:"ECDSA" choices:"RSA,ECDSA,Ed25519" doc:"type of the key"`
	KeySize      int             `kk:"key_size" default:"2048" doc:"size of an RSA key in bits, 2048 to 4096"`
	Curve        string          `kk:"curve" default:"P-256" choices:"P-256,P-384" doc:"curve of an ECDSA key"`
	KeyUsage     []string        `kk:"key_usage" choices:"digital_signature,content_commitment,key_encipherment,data_encipherment,key_agreement,cert_sign,crl_sign" doc:"what the key may be used for"`
	ExtKeyUsage  []string        `kk:"extended_key_usage" choices:"any,server_auth,client_auth,code_signing,email_protection,time_stamping,ocsp_signing" doc:"what the certificate may be used for"`
	Days         *int            `kk:"days" doc:"days of validity. Default: 3650 for a CA, otherwise 365"`
	Policy       string          `kk:"policy" default:"renew" choices:"renew,always,if_not_present" doc:"renew: create it when it differs from the arguments or is about to expire; always: in each run; if_not_present: only when it is missing or unusable"`
	RenewBefore  int             `kk:"renew_before_days" default:"30" doc:"days before expiry from which it is renewed"`
	Mode         schema.FileMode `kk:"mode" default:"0644" doc:"permission bits of certificate and public key"`
}

const (
	pathLength = "path_length must be 0 or more, and needs is_ca"
	noCert     = "a certificate is described, but cert, its path, is missing"
	noNames    = "a certificate needs a common_name or sans, a CA a common_name"
)

func isCommonName(name string) error {
	if len(name) > 64 {
		return fmt.Errorf("common_name has %d characters; certificates allow 64: put long names into sans", len(name))
	}
	return nil
}

// Rules implements schema.Ruled.
func (*GenCert) Rules() schema.Rules {
	return schema.Rules{
		schema.AllOrNone("ca_cert", "ca_key"),
		schema.Between("key_size", 2048, 4096).If("key_type", "RSA"),
		schema.Between("path_length", 0, schema.NoLimit).Says(pathLength),
		schema.Refuses("path_length").Unless("is_ca", true).Says(pathLength),
		schema.Needs("cert").If("is_ca", true).Says(noCert),
		schema.Needs("cert").With("ca_cert", "common_name", "sans").Says(noCert),
		schema.AtLeastOne("common_name", "sans").With("cert").Says(noNames),
		schema.Entries("sans", 1, schema.NoLimit).With("cert").Without("common_name").Says(noNames),
		schema.Needs("common_name").With("cert").If("is_ca", true).Says(noNames),
		schema.Parses("at most 64 characters", isCommonName, "common_name"),
		schema.Between("days", 1, 36500),
		schema.Between("renew_before_days", 0, schema.NoLimit),
	}
}

// Run implements module.Runner.
func (m *GenCert) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	w, err := m.desired(c.Now())
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	if m.CACert != "" {
		if w.authority, err = readAuthority(ctx, m.CACert, m.CAKey); err != nil {
			if c.Check && missing(m.CACert) {
				return m.result("its CA "+m.CACert+" would be created", files{}, w), nil
			}
			return module.Result{}, fmt.Errorf("read CA: %w", err)
		}
	}
	if err := w.fitsAuthority(); err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	if c.Check {
		have := m.read()
		reason, _, err := m.evaluate(w, have)
		return m.result(reason, have, w), err
	}
	return m.make(ctx, w)
}

// make applies the steps under a lock, so that no other run does.
func (m *GenCert) make(ctx context.Context, w desired) (module.Result, error) {
	if err := makeFolders(m.Cert, m.Key, m.Pub); err != nil {
		return module.Result{}, err
	}
	unlock, err := lockFolder(ctx, filepath.Dir(m.Key))
	if err != nil {
		return module.Result{}, err
	}
	defer unlock()
	have := m.read()
	reason, steps, err := m.evaluate(w, have)
	if err != nil || reason == "" {
		return m.result(reason, have, w), err
	}
	if have, err = m.write(w, have, steps); err != nil {
		return module.Result{}, err
	}
	return m.result(reason, have, w), nil
}

// desired checks the arguments and makes the desired certificate from them.
func (m *GenCert) desired(now time.Time) (desired, error) {
	w := desired{now: now, self: m.CACert == "", alone: m.Cert == "",
		kind: certs.KeyKind{Algorithm: m.KeyType, Bits: m.KeySize, Curve: m.Curve}}
	if err := m.consistent(); err != nil {
		return w, err
	}
	names, err := certs.ParseNames(m.SANs)
	if err != nil {
		return w, err
	}
	w.days = 365
	if m.IsCA {
		w.days = 3650
	}
	if m.Days != nil {
		w.days, w.exact = *m.Days, true
	}
	if m.RenewBefore < 0 || m.RenewBefore >= w.days && !w.alone {
		return w, fmt.Errorf("renew_before_days (%d) must be less than days (%d), or each run would renew it",
			m.RenewBefore, w.days)
	}
	w.template, err = m.template(names, w)
	return w, err
}

// consistent checks that the arguments go together.
func (m *GenCert) consistent() error {
	paths := slices.DeleteFunc([]string{m.Cert, m.Key, m.Pub, m.CACert, m.CAKey}, func(p string) bool { return p == "" })
	for i, p := range paths {
		if slices.Contains(paths[:i], p) {
			return fmt.Errorf("%s is named for two files", p)
		}
	}
	return nil
}

// result describes the current certificate, or what is wrong with it.
func (m *GenCert) result(reason string, have files, w desired) module.Result {
	d := value.NewDict("reason", reason, "cert", m.Cert, "key", m.Key, "pub", m.Pub, "spki_sha256", "")
	if have.signer != nil {
		d.Set("spki_sha256", pin(have.signer.Public()))
	}
	if crt := have.cert; crt != nil {
		d.Merge(value.NewDict("not_before", rfc3339(crt.NotBefore), "not_after", rfc3339(crt.NotAfter), "days_left",
			daysLeft(crt, w.now),
			"serial", serial(crt), "fingerprint", fingerprint(crt)))
	}
	return module.Result{Changed: reason != "", Msg: strings.TrimSpace(reason), Data: d}
}
