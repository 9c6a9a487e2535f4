package packages

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed apt_key.sh
var aptKeyScript string

// AptKey is the module apt_key.
type AptKey struct {
	ID        string `kk:"id" doc:"ID of the key or of a subkey: 8, 16 or 40 hexadecimal digits. Default: that of the key in data, file or url"`
	Data      string `kk:"data" doc:"armored key"`
	File      string `kk:"file,path" doc:"file on the host with the key"`
	URL       string `kk:"url" doc:"URL from which the host downloads the key"`
	Keyserver string `kk:"keyserver" doc:"key server from which the host fetches the key with this id, over HKP"`
	Keyring   string `kk:"keyring,path" doc:"keyring file. Default: all keyrings that apt trusts; a new key is added to /etc/apt/trusted.gpg"`
	State     string `kk:"state" default:"present" choices:"absent,present" doc:"whether apt should trust the key"`
	Validate  bool   `kk:"validate_certs" default:"yes" doc:"verify TLS certificates"`
}

func aptKeySpec() module.Spec {
	return module.Spec{
		Name:    "apt_key",
		Summary: "Manages the keys that apt trusts for all repositories.",
		Notes: []string{
			"Prefer deb822_repository or `signed-by`, which trust a key for one repository only.",
			"kk reads and writes keyrings itself: the host needs neither apt-key, which newer releases lack, nor GnuPG. " +
				"With id, an existing key is not fetched again.",
		},
		Examples: []string{
			"- name: Stop trusting a key\n  apt_key:\n    id: \"0x9FED2BCBDCD29CDF762678CBAED4B06F473041FA\"\n    state: absent",
		},
		Returns: []module.Return{
			{Key: "before", Type: "list", Doc: "IDs of the trusted keys before the task, 16 digits each"},
			{Key: "after", Type: "list", Doc: "IDs of the trusted keys after the task"},
			{Key: "id", Type: "str", Doc: "the argument, or the last 16 digits of the key's ID"},
			{Key: "key_id", Type: "str", Doc: "the same in upper case, without 0x"},
			{Key: "fp", Type: "str", Doc: "its last 16 digits"},
			{Key: "short_id", Type: "str", Doc: "its last 8 digits"},
		},
		New: func() module.Runner { return new(AptKey) },
	}
}

// keyring is a keyring file on the host.
type keyring struct {
	path   string
	keys   []pgpKey
	after  []pgpKey
	exists bool
}

// Rules implements schema.Ruled.
func (*AptKey) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("data", "file", "keyserver", "url"),
		schema.AtLeastOne("id", "data", "file", "url").
			Says("missing required arguments: id (or data, file or url with the key)"),
		schema.AtLeastOne("data", "file", "keyserver", "url").If("state", "present").
			Says("one of the following is required: data, file, keyserver, url"),
		schema.Parses("the ID of a key", isKeyID, "id"),
		schema.Address("url", "http", "https", "ftp", "ftps", "file"),
		schema.AddressOr("a host", "keyserver", "hkp", "hkps", "http", "https"),
	}
}

// Run implements module.Runner.
func (m *AptKey) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	id := ""
	if m.ID != "" {
		var err error
		if id, err = parseKeyID(m.ID); err != nil {
			return module.Result{}, err
		}
	}
	read := hostscript.New(aptKeyScript, "apt_key_read").Set("keyring", m.Keyring).Set("file", m.File)
	read.Set("url", m.URL).Flag("fetch", id == "").Flag("insecure", !m.Validate)
	a, err := c.Probe(ctx, read)
	if err != nil {
		return module.Result{}, err
	}
	rings, err := keyrings(a)
	if err != nil {
		return module.Result{}, err
	}
	given, err := m.given(a)
	if err != nil {
		return module.Result{}, err
	}
	if id == "" && len(given) == 0 {
		return module.Result{}, errors.New("read the key: no key found")
	}
	if id == "" {
		id = given[0].fingerprint
	}
	there := slices.ContainsFunc(rings, func(r *keyring) bool { return r.find(id) != nil })
	r := module.Result{Changed: there == (m.State == "absent"), Data: m.about(id)}
	r.Data.Set("before", ringIDs(rings))
	if r.Changed && m.State == "present" {
		rings, err = m.add(ctx, c, rings, given, id)
	} else if r.Changed {
		removeKey(rings, id)
	}
	if err != nil {
		return r, err
	}
	r.Data.Set("after", ringIDs(rings))
	if !r.Changed || c.Check {
		return r, nil
	}
	return r, saveRings(ctx, c, rings)
}

// about returns the ID of the key in several forms.
func (m *AptKey) about(id string) *value.Dict {
	given := m.ID
	if given == "" {
		id = pgpID(id)
		given = id
	}
	return value.NewDict("id", given, "key_id", id, "fp", id[max(0, len(id)-16):], "short_id", id[len(id)-8:])
}

func isKeyID(text string) error {
	_, err := parseKeyID(text)
	return err
}

// given are the keys in data, in file, or in url if it was fetched.
func (m *AptKey) given(a hostscript.Answer) ([]pgpKey, error) {
	data := []byte(m.Data)
	if a.Has("key") {
		var err error
		if data, err = base64.StdEncoding.DecodeString(a.Get("key")); err != nil {
			return nil, err
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	return readKeys(data)
}

// readKeys reads keys, at least one.
func readKeys(data []byte) ([]pgpKey, error) {
	keys, err := pgpKeys(data)
	if err == nil && len(keys) == 0 {
		err = errors.New("no key found")
	}
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	return keys, nil
}

// add adds the key to its ring, and fetches it first if it was not given.
func (m *AptKey) add(ctx context.Context, c *module.Call, rings []*keyring, given []pgpKey,
	id string) ([]*keyring, error) {
	if given == nil {
		var err error
		if given, err = m.fetch(ctx, c, id); err != nil {
			return nil, err
		}
	}
	if (&keyring{after: given}).find(id) == nil {
		return nil, fmt.Errorf("key does not seem to have been added: the given key is %s, not %s", given[0].fingerprint, id)
	}
	path := m.Keyring
	if path == "" {
		path = "/etc/apt/trusted.gpg"
	}
	at := slices.IndexFunc(rings, func(r *keyring) bool { return r.path == path })
	if at < 0 {
		rings = append(rings, &keyring{path: path})
		at = len(rings) - 1
	}
	rings[at].after = append(slices.Clone(rings[at].after), given...)
	return rings, nil
}

func (m *AptKey) fetch(ctx context.Context, c *module.Call, id string) ([]pgpKey, error) {
	from := m.URL
	if from == "" {
		from = keyserverURL(m.Keyserver, id)
	}
	data, err := fetchOnHost(ctx, c, from, !m.Validate)
	if err != nil {
		return nil, err
	}
	return readKeys(data)
}

// keyserverURL is the URL of a key on an HKP server.
func keyserverURL(server, id string) string {
	if !strings.Contains(server, "://") {
		server = "hkp://" + server
	}
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	switch u.Scheme {
	case "hkp":
		u.Scheme = "http"
		if u.Port() == "" {
			u.Host += ":11371"
		}
	case "hkps":
		u.Scheme = "https"
	}
	u.Path, u.RawQuery = "/pks/lookup", "op=get&options=mr&search=0x"+id
	return u.String()
}

func keyrings(a hostscript.Answer) ([]*keyring, error) {
	if err := a.Together("file", "ring"); err != nil {
		return nil, err
	}
	var rings []*keyring
	for i, path := range a["file"] {
		data, err := base64.StdEncoding.DecodeString(a["ring"][i])
		if err != nil {
			return nil, err
		}
		keys, err := pgpKeys(data)
		if err != nil {
			return nil, fmt.Errorf("read the keys of %s: %w", path, err)
		}
		rings = append(rings, &keyring{path: path, keys: keys, after: keys, exists: true})
	}
	return rings, nil
}

func (r *keyring) find(id string) *pgpKey {
	for i := range r.after {
		if r.after[i].has(id) {
			return &r.after[i]
		}
	}
	return nil
}

func removeKey(rings []*keyring, id string) {
	for _, r := range rings {
		r.after = slices.DeleteFunc(slices.Clone(r.after), func(k pgpKey) bool { return k.has(id) })
	}
}

func ringIDs(rings []*keyring) []any {
	ids := []any{}
	for _, r := range rings {
		for _, k := range r.after {
			ids = append(ids, k.id())
		}
	}
	return ids
}

// saveRings writes the files whose keys changed; a file without keys is removed.
func saveRings(ctx context.Context, c *module.Call, rings []*keyring) error {
	for _, r := range rings {
		if len(r.after) == len(r.keys) {
			continue
		}
		var data bytes.Buffer
		for _, k := range r.after {
			data.Write(k.packets)
		}
		text := base64.StdEncoding.EncodeToString(data.Bytes())
		if strings.HasSuffix(r.path, ".asc") {
			text = base64.StdEncoding.EncodeToString(armored(data.Bytes()))
		}
		s := hostscript.New(aptKeyScript, "apt_key_write").Set("path", r.path).Flag("remove", len(r.after) == 0)
		s.Stdin = strings.NewReader(text)
		if _, err := s.Run(ctx, c.Conn, c.Check); err != nil {
			return err
		}
	}
	return nil
}
