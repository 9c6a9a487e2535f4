package crypto

import (
	"context"
	_ "embed"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed dhparam.sh
var dhparamScript string

// DHParam is the module openssl_dhparam.
type DHParam struct {
	Backend string `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography,openssl" doc:"without effect: openssl on the host makes them"`
	Size    int    `kk:"size" default:"4096" doc:"bits of the prime, at least 512"`
	placement
}

func dhparamSpec() module.Spec {
	return module.Spec{
		Name: "openssl_dhparam", Collection: "community.crypto",
		Summary: "Keep parameters for a Diffie-Hellman exchange on the host.",
		Notes: []string{
			"They are made by openssl on the host, which takes from seconds (2048 bits) to many minutes (4096 bits). What is there is judged on the control node: its prime must have exactly size bits.",
		},
		Examples: []string{
			"- name: Parameters for the mail server\n  openssl_dhparam:\n    path: /etc/ssl/dhparams.pem\n    size: 1024",
		},
		Returns: placementReturns("dhparams",
			module.Return{Key: "size", Type: "int", Doc: "the argument"},
		),
		New: func() module.Runner { return new(DHParam) },
	}
}

// Rules implements schema.Ruled.
func (*DHParam) Rules() schema.Rules {
	return schema.Rules{
		schema.Between("size", 512, schema.NoLimit).If("state", "present"),
	}
}

// Run implements module.Runner.
func (m *DHParam) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.State == "absent" {
		r, left, err := m.remove(ctx, c)
		m.describe(c, &r, left, nil)
		return r, err
	}
	files, err := pki.ReadHost(ctx, c, m.Path)
	if err != nil {
		return module.Result{}, err
	}
	have := files[0]
	bits := dhparamBits(have.Text)
	var text []byte
	switch {
	case !m.Force && bits == m.Size:
	case c.Check:
		text = []byte("new parameters") // only counted
	default:
		if text, err = m.generate(ctx, c); err != nil {
			return module.Result{}, err
		}
	}
	r, err := m.keep(ctx, c, have, text, 0o644)
	if err != nil {
		return r, err
	}
	before := value.NewDict()
	if bits > 0 {
		before.Set("size", bits)
	}
	noteDiff(c, &r, have.Path, before, value.NewDict("size", m.Size))
	m.describe(c, &r, have, text)
	return r, nil
}

func (m *DHParam) describe(c *module.Call, r *module.Result, have pki.HostFile, text []byte) {
	if r.Data != nil {
		r.Data.Set("size", m.Size)
		m.content(c, r, "dhparams", have, text)
	}
}

func (m *DHParam) generate(ctx context.Context, c *module.Call) ([]byte, error) {
	a, err := hostscript.New(dhparamScript, "dhparam_generate").Number("size", &m.Size).Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	text := []byte(strings.TrimSpace(a.Get("text")) + "\n")
	if got := dhparamBits(text); got != m.Size {
		return nil, errors.New("openssl on the host made no parameters of this size")
	}
	return text, nil
}

// dhparamBits is the size of parameters in PEM form (PKCS #3), 0 if they are none.
func dhparamBits(text []byte) int {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var params struct {
			Prime, Generator *big.Int
			Length           int `asn1:"optional"`
		}
		if block.Type != "DH PARAMETERS" {
			continue
		}
		if left, err := asn1.Unmarshal(block.Bytes, &params); err == nil && len(left) == 0 && params.Prime.Sign() > 0 {
			return params.Prime.BitLen()
		}
	}
	return 0
}
