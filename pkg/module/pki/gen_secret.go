package pki

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func genSecretSpec() module.Spec {
	return module.Spec{
		Name: "gen_secret", Collection: "kk",
		Summary: "Generates a random secret and stores it in a file on the control node.",
		Notes: []string{
			"An existing file is kept, whatever its content; only its mode is restricted to 0600. A missing folder is " +
				"created with mode 0700.",
			"The file has no trailing newline. The secret is not in the result: read it with lookup('file', ...).",
		},
		Examples: []string{
			"- name: Generate the registry password\n  gen_secret:\n    dest: secrets/registry-password\n    bytes: 24",
			"- name: Generate the key for encryption at rest\n  gen_secret:\n    dest: secrets/encryption-key\n" +
				"    encoding: base64",
		},
		Returns: []module.Return{{Key: "dest", Type: "str", Doc: "path of the file"}},
		New:     func() module.Runner { return &GenSecret{} },
		Where:   module.OnControl,
	}
}

// GenSecret is the module gen_secret.
type GenSecret struct {
	Dest     string `kk:"dest,required,path,alias=path" doc:"path of the file, mode 0600"`
	Bytes    int    `kk:"bytes" default:"32" doc:"number of random bytes, 16 to 1024"`
	Encoding string `kk:"encoding" default:"base64url" choices:"base64,base64url,hex" doc:"encoding of the bytes; base64url has no padding and never needs quotes"`
}

// Rules implements schema.Ruled.
func (*GenSecret) Rules() schema.Rules {
	return schema.Rules{
		schema.Between("bytes", 16, 1024),
	}
}

// Run implements module.Runner.
func (m *GenSecret) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	data := value.NewDict("dest", m.Dest)
	if c.Check {
		info, err := os.Stat(m.Dest)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return module.Result{}, err
		}
		return module.Result{Changed: err != nil || info.Mode().Perm()&0o077 != 0, Data: data}, nil
	}
	if err := makeFolders(m.Dest); err != nil {
		return module.Result{}, err
	}
	unlock, err := lockFolder(ctx, filepath.Dir(m.Dest))
	if err != nil {
		return module.Result{}, err
	}
	defer unlock()
	changed, err := m.ensure()
	return module.Result{Changed: changed, Data: data}, err
}

func (m *GenSecret) ensure() (changed bool, err error) {
	info, err := os.Stat(m.Dest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, replace(m.Dest, m.secret(), 0o600)
	case err != nil:
		return false, err
	case info.Size() == 0:
		return false, fmt.Errorf("%s is empty: remove it, and a secret is made up", m.Dest)
	case info.Mode().Perm()&0o077 != 0:
		return true, os.Chmod(m.Dest, 0o600)
	}
	return false, nil
}

func (m *GenSecret) secret() []byte {
	raw := make([]byte, m.Bytes)
	_, _ = rand.Read(raw) // it never fails
	switch m.Encoding {
	case "hex":
		return []byte(hex.EncodeToString(raw))
	case "base64":
		return []byte(base64.StdEncoding.EncodeToString(raw))
	}
	return []byte(base64.RawURLEncoding.EncodeToString(raw))
}
