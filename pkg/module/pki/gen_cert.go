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
		Summary: "Makes a key and a certificate on the control node, and renews them when it is time.",
		Notes: []string{
			"With ca_cert and ca_key that authority signs, else the certificate signs itself. With neither cert nor common_name it makes a key alone, and pub its public half.",
			"A certificate is made anew when it ends within renew_before_days, when its subject, names, usages, kind of key or authority are not those wanted, when its key is not the one beside it, or when a file cannot be read. The result's reason says which.",
			"An authority keeps a key of the wanted kind, so what it signed stays valid and pins of it hold; other certificates get a new key each time. A key that has no certificate yet is used.",
			"With policy if_not_present an authority that is there is never replaced: what is broken about it is an error.",
			"The key is 0600 and is put in place before its certificate, each file whole. A run that ends in between leaves a pair that does not match, which the next run mends. Folders that are missing are made 0700. Two runs at once take turns.",
			"extended_key_usage is by default server_auth and client_auth for a certificate with sans, client_auth for one without, and none for an authority; key_usage is digital_signature, with key_encipherment for RSA, and cert_sign and crl_sign for an authority.",
			"A certificate never outlives its authority. Where it ends with it, it is not renewed for the days that are left.",
			"In check mode it tells what it would do, and touches nothing.",
		},
		Examples: []string{
			"- name: Make the authority\n  gen_cert:\n    cert: pki/ca.crt\n    key: pki/ca.key\n    common_name: example\n    is_ca: true\n    policy: if_not_present",
			"- name: Make the server's certificate\n  gen_cert:\n    cert: pki/server.crt\n    key: pki/server.key\n    ca_cert: pki/ca.crt\n    ca_key: pki/ca.key\n    common_name: www.example.org\n    sans: [www.example.org, 192.0.2.10, \"2001:db8::10\"]",
			"- name: Make a key pair that signs tokens\n  gen_cert:\n    key: pki/sa.key\n    pub: pki/sa.pub\n    key_type: RSA\n    policy: if_not_present",
		},
		Returns: []module.Return{
			{Key: "reason", Type: "str", Doc: "why it was made, or would be; empty when all is as wanted"},
			{Key: "cert", Type: "str", Doc: "path of the certificate"},
			{Key: "key", Type: "str", Doc: "path of the key"},
			{Key: "pub", Type: "str", Doc: "path of the public key"},
			{Key: "not_before", Type: "str", Doc: "when the certificate begins, RFC 3339"},
			{Key: "not_after", Type: "str", Doc: "when it ends"},
			{Key: "days_left", Type: "int", Doc: "whole days until then"},
			{Key: "serial", Type: "str", Doc: "its serial number, hexadecimal"},
			{Key: "fingerprint", Type: "str", Doc: "sha256:HEX of the certificate"},
			{Key: "spki_sha256", Type: "str", Doc: "sha256:HEX of the public key, as kubeadm pins an authority; in check mode empty for a key that is still to be made"},
		},
		New:   func() module.Runner { return &GenCert{} },
		Where: module.OnControl,
	}
}

// GenCert is the module gen_cert.
type GenCert struct {
	Cert         string          `kk:"cert,path" doc:"where the certificate goes, PEM"`
	Key          string          `kk:"key,required,path" doc:"where the key goes, PEM (PKCS #8), 0600"`
	Pub          string          `kk:"pub,path" doc:"where the public key goes, PEM"`
	CACert       string          `kk:"ca_cert,path" doc:"certificate of the authority that signs"`
	CAKey        string          `kk:"ca_key,path" doc:"its key"`
	CommonName   string          `kk:"common_name" doc:"CN of the subject"`
	Organization []string        `kk:"organization" doc:"O of the subject"`
	SANs         []string        `kk:"sans" doc:"names that it is valid for: addresses, URIs (with ://), email (with @) and DNS names are told apart; DNS:, IP:, URI: and email: before one say which"`
	IsCA         bool            `kk:"is_ca" default:"no" doc:"make an authority"`
	PathLength   *int            `kk:"path_length" doc:"how many authorities may follow below this one; unlimited by default"`
	KeyType      string          `kk:"key_type" default:"ECDSA" choices:"RSA,ECDSA,Ed25519" doc:"kind of the key"`
	KeySize      int             `kk:"key_size" default:"2048" doc:"bits of an RSA key, 2048 to 4096"`
	Curve        string          `kk:"curve" default:"P-256" choices:"P-256,P-384" doc:"curve of an ECDSA key"`
	KeyUsage     []string        `kk:"key_usage" choices:"digital_signature,content_commitment,key_encipherment,data_encipherment,key_agreement,cert_sign,crl_sign" doc:"what the key may be used for"`
	ExtKeyUsage  []string        `kk:"extended_key_usage" choices:"any,server_auth,client_auth,code_signing,email_protection,time_stamping,ocsp_signing" doc:"what the certificate may be used for"`
	Days         *int            `kk:"days" doc:"how long it is valid; default is 3650 for an authority, else 365"`
	Policy       string          `kk:"policy" default:"renew" choices:"renew,always,if_not_present" doc:"make it when it is not as wanted, at each run, or only when it is missing or cannot be used"`
	RenewBefore  int             `kk:"renew_before_days" default:"30" doc:"days before its end from which it is renewed"`
	Mode         schema.FileMode `kk:"mode" default:"0644" doc:"permission bits of certificate and public key"`
}

const (
	pathLength = "path_length is a number from 0 on, of an authority (is_ca)"
	noCert     = "a certificate is described, but cert does not say where it goes"
	noNames    = "a certificate needs a common_name or sans, an authority a common_name"
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
	w, err := m.wanted(c.Now())
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	if m.CACert != "" {
		if w.authority, err = readAuthority(ctx, m.CACert, m.CAKey); err != nil {
			if c.Check && missing(m.CACert) {
				return m.result("its authority "+m.CACert+" is to be made", files{}, w), nil
			}
			return module.Result{}, fmt.Errorf("read authority: %w", err)
		}
	}
	if err := w.fitsAuthority(); err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	if c.Check {
		have := m.read()
		reason, _, err := m.judge(w, have)
		return m.result(reason, have, w), err
	}
	return m.make(ctx, w)
}

// make does what is to be done while no other run does it.
func (m *GenCert) make(ctx context.Context, w wanted) (module.Result, error) {
	if err := makeFolders(m.Cert, m.Key, m.Pub); err != nil {
		return module.Result{}, err
	}
	unlock, err := lockFolder(ctx, filepath.Dir(m.Key))
	if err != nil {
		return module.Result{}, err
	}
	defer unlock()
	have := m.read()
	reason, steps, err := m.judge(w, have)
	if err != nil || reason == "" {
		return m.result(reason, have, w), err
	}
	if have, err = m.write(w, have, steps); err != nil {
		return module.Result{}, err
	}
	return m.result(reason, have, w), nil
}

// wanted checks the arguments and makes of them what is wanted.
func (m *GenCert) wanted(now time.Time) (wanted, error) {
	w := wanted{now: now, self: m.CACert == "", alone: m.Cert == "", kind: certs.KeyKind{Algorithm: m.KeyType, Bits: m.KeySize, Curve: m.Curve}}
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
		w.days = *m.Days
	}
	if m.RenewBefore < 0 || m.RenewBefore >= w.days && !w.alone {
		return w, fmt.Errorf("renew_before_days (%d) must be less than days (%d), or each run would renew it", m.RenewBefore, w.days)
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

// result tells what is there now, or what is wrong with it.
func (m *GenCert) result(reason string, have files, w wanted) module.Result {
	d := value.NewDict("reason", reason, "cert", m.Cert, "key", m.Key, "pub", m.Pub, "spki_sha256", "")
	if have.signer != nil {
		d.Set("spki_sha256", pin(have.signer.Public()))
	}
	if crt := have.cert; crt != nil {
		d.Merge(value.NewDict("not_before", rfc3339(crt.NotBefore), "not_after", rfc3339(crt.NotAfter), "days_left", daysLeft(crt, w.now),
			"serial", serial(crt), "fingerprint", fingerprint(crt)))
	}
	return module.Result{Changed: reason != "", Msg: strings.TrimSpace(reason), Data: d}
}
