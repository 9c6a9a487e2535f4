package crypto

import (
	"context"
	"encoding/pem"
	"fmt"
	"strings"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// CSRInfo is the module openssl_csr_info.
type CSRInfo struct {
	Backend string `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography" doc:"without effect: kk needs no library for it"`
	Path    string `kk:"path,path" doc:"path of the request on the host"`
	Content string `kk:"content" doc:"the request, PEM"`
}

func csrInfoSpec() module.Spec {
	return module.Spec{
		Name: "openssl_csr_info", Collection: "community.crypto",
		Summary: "Returns the content of a certificate signing request.",
		Notes: []string{"The request is parsed on the control node, so hosts need no openssl. A request with an " +
			"invalid signature fails, with the same data."},
		Examples: []string{
			"- name: Read the request\n  openssl_csr_info:\n    path: /etc/ssl/web.csr\n  register: request\n" +
				"  failed_when: \"'DNS:www.example.org' not in request.subject_alt_name\"",
		},
		Returns: append([]module.Return{
			{Key: "signature_valid", Type: "bool", Doc: "whether the signature is valid"},
			{Key: "subject", Type: "dict", Doc: "subject, with OpenSSL's long names"},
			{Key: "subject_ordered", Type: "list of list", Doc: "the same in order, including repeated names"},
			{Key: "subject_alt_name", Type: "list of str", Doc: "names, as DNS:NAME, IP:ADDRESS, URI:..., email:...; null " +
				"without the extension, as are the following keys"},
			{Key: "basic_constraints", Type: "list of str", Doc: "CA:TRUE or CA:FALSE, and pathlen:N"},
			{Key: "key_usage", Type: "list of str", Doc: "what the key may be used for, with OpenSSL's names"},
			{Key: "extended_key_usage", Type: "list of str", Doc: "what the certificate may be used for"},
			{Key: "name_constraints_permitted, name_constraints_excluded", Type: "list of str",
				Doc: "names that the CA may sign for, and those that it may not"},
			{Key: "ocsp_must_staple", Type: "bool", Doc: "whether OCSP stapling is required"},
			{Key: "*_critical", Type: "bool", Doc: "whether the extension of this name is marked as critical"},
			{Key: "extensions_by_oid", Type: "dict", Doc: "each extension: critical, and its value in base64"},
			{Key: "subject_key_identifier", Type: "str", Doc: "identifier of its key"},
			{Key: "authority_key_identifier", Type: "str", Doc: "identifier of the CA's key"},
			{Key: "public_key_type", Type: "str", Doc: "RSA, ECC, Ed25519, or unknown"},
			{Key: "public_key_data", Type: "dict", Doc: "size, modulus and exponent, or curve, exponent_size, x and y"},
		}, publicReturns("its key")...),
		New:   func() module.Runner { return &CSRInfo{} },
		Check: module.Harmless,
	}
}

// Rules implements schema.Ruled.
func (*CSRInfo) Rules() schema.Rules { return pki.OneSource() }

// Run implements module.Runner.
func (m *CSRInfo) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	f, err := pki.ReadOne(ctx, c, pki.Source{Path: m.Path, Text: m.Content, Name: "content"})
	if err != nil {
		return module.Result{}, err
	}
	block, _ := pem.Decode(f.Text)
	if block == nil || !strings.HasSuffix(block.Type, "CERTIFICATE REQUEST") {
		return module.Result{}, fmt.Errorf("%s %w", f.Path, errNoRequest)
	}
	csr, err := certs.ReadRequest(block.Bytes)
	if err != nil {
		return module.Result{}, fmt.Errorf("%s: %w", f.Path, err)
	}
	wrong := csr.CheckSignature()
	d := value.NewDict("signature_valid", wrong == nil)
	d.Merge(certs.DescribeName("subject", csr.Subject))
	d.Merge(certs.DescribePublic(csr.PublicKey, csr.RawSubjectPublicKeyInfo))
	d.Merge(certs.DescribeExtensions(csr.Extensions))
	d.Merge(certs.DescribeNameConstraints(csr.Extensions))
	r := module.Result{Data: d}
	if wrong != nil {
		r.Failed, r.Msg = true, "CSR signature is invalid!"
	}
	return r, nil
}
