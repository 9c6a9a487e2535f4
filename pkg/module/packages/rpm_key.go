package packages

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed rpm_key.sh
var rpmKeyScript string

// RPMKey is the module rpm_key.
type RPMKey struct {
	Key         string   `kk:"key,required" doc:"key file on the host, URL that the host fetches, or, with state: absent, ID of a key"`
	State       string   `kk:"state" default:"present" choices:"absent,present" doc:"whether rpm should trust the key"`
	Fingerprint []string `kk:"fingerprint" doc:"allowed fingerprints: a key with any other one is not imported"`
	Validate    bool     `kk:"validate_certs" default:"yes" doc:"verify TLS certificates"`
}

func rpmKeySpec() module.Spec {
	return module.Spec{
		Name:    "rpm_key",
		Summary: "Manages the keys that rpm trusts.",
		Notes: []string{"kk reads keys itself: the host needs no GnuPG. A file or URL is read in each run, to find " +
			"out its key."},
		Examples: []string{"- name: Trust the Kubernetes packages\n  rpm_key:\n" +
			"    key: /etc/pki/rpm-gpg/RPM-GPG-KEY-kubernetes"},
		Returns: []module.Return{{Key: "fingerprint", Type: "str", Doc: "fingerprint of the key, if it was read"}},
		New:     func() module.Runner { return new(RPMKey) },
	}
}

var (
	rpmKeyID  = regexp.MustCompile(`^(0[xX])?([0-9a-fA-F]{8}|[0-9a-fA-F]{16}|[0-9a-fA-F]{40})$`)
	remoteURL = regexp.MustCompile(`^(https?|ftp)://`)
)

// Rules implements schema.Ruled.
func (*RPMKey) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("key"),
		schema.AddressOr("a path or the ID of a key", "key", "http", "https", "ftp"),
		schema.Looks("a file or a URL", func(key string) bool { return !rpmKeyID.MatchString(key) }, "key").If("state",
			"present").
			Says("state: present needs the key itself: set a file or a URL, not an ID"),
	}
}

// Run implements module.Runner.
func (m *RPMKey) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	read := hostscript.New(rpmKeyScript, "rpm_key_read").Flag("insecure", !m.Validate)
	read.Probe = true
	isID := rpmKeyID.MatchString(m.Key)
	switch {
	case remoteURL.MatchString(m.Key):
		read.Set("url", m.Key)
	case !isID:
		read.Set("file", m.Key)
	}
	a, err := read.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict()}
	var ids []string
	var keys []pgpKey
	if isID {
		id, err := parseKeyID(m.Key)
		if err != nil {
			return r, err
		}
		ids = []string{id}
	} else if keys, err = m.keys(a); err != nil {
		return r, err
	} else {
		r.Data.Set("fingerprint", keys[0].fingerprint)
		for _, k := range keys {
			ids = append(ids, k.fingerprint)
		}
	}
	missing, there := m.compare(ids, module.Lines(a.Get("installed")))
	if m.State == "absent" {
		r.Changed = len(there) > 0
	} else {
		r.Changed = len(missing) > 0
	}
	if !r.Changed || c.Check {
		return r, nil
	}
	act := hostscript.New(rpmKeyScript, `rpm_key_erase "$@"`)
	act.Words = there
	if m.State == "present" {
		var all bytes.Buffer
		for _, k := range keys {
			all.Write(k.packets)
		}
		act = hostscript.New(rpmKeyScript, "rpm_key_import")
		act.Stdin = bytes.NewReader(armored(all.Bytes()))
	}
	_, err = act.Run(ctx, c.Conn, c.Check)
	return r, err
}

// keys are the keys in the file or URL; their fingerprint must be an allowed one.
func (m *RPMKey) keys(a hostscript.Answer) ([]pgpKey, error) {
	data, err := base64.StdEncoding.DecodeString(a.Get("key"))
	if err != nil {
		return nil, err
	}
	keys, err := pgpKeys(data)
	if err == nil && len(keys) == 0 {
		err = errors.New("no key found")
	}
	if err != nil {
		return nil, fmt.Errorf("Not a valid key %s: %w", m.Key, err) //nolint:staticcheck // the text users know
	}
	if len(m.Fingerprint) == 0 {
		return keys, nil
	}
	for _, k := range keys {
		for _, want := range m.Fingerprint {
			if strings.EqualFold(strings.ReplaceAll(want, " ", ""), k.fingerprint) {
				return keys, nil
			}
		}
	}
	//nolint:staticcheck // the text users know
	return nil, fmt.Errorf("The specified fingerprint, '%s', does not match the key fingerprint '%s'",
		strings.Join(m.Fingerprint, ", "), keys[0].fingerprint)
}

// compare separates keys that rpm does not know from those that it does, which are named
// by rpm's version of them: the end of the fingerprint, or all of it.
func (m *RPMKey) compare(ids, installed []string) (missing, there []string) {
	for _, id := range ids {
		found := false
		for _, version := range installed {
			v := strings.ToUpper(version)
			if strings.HasSuffix(id, v) || strings.HasSuffix(v, id) {
				found = true
				there = append(there, version)
			}
		}
		if !found {
			missing = append(missing, id)
		}
	}
	return missing, there
}
