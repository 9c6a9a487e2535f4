package file

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// TempFile is the module tempfile.
type TempFile struct {
	State  string `kk:"state" default:"file" choices:"file,directory" doc:"type of the new path"`
	Path   string `kk:"path,path" doc:"folder to create it in. Default: TMPDIR of the host, otherwise /tmp"`
	Prefix string `kk:"prefix" default:"ansible." doc:"prefix of the name"`
	Suffix string `kk:"suffix" doc:"suffix of the name"`
}

func tempFileSpec() module.Spec {
	return module.Spec{
		Name:    "tempfile",
		Summary: "Creates a temporary file or folder, accessible only by its owner.",
		Notes:   []string{"It is not removed automatically."},
		Examples: []string{
			"- name: Create a temporary folder\n  tempfile:\n    state: directory\n    suffix: .build\n  register: work",
		},
		Returns:      append([]module.Return{{Key: "path", Type: "str", Doc: "the created path"}}, FileReturns()...),
		New:          func() module.Runner { return new(TempFile) },
		Check:        module.Skips,
		CheckSkipMsg: "remote module (tempfile) does not support check mode",
	}
}

// Run implements module.Runner.
func (m *TempFile) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	b := make([]byte, 8)
	if _, err := rand.Read(b); err != nil {
		return module.Result{}, fmt.Errorf("choose a name: %w", err)
	}
	folder := `"${TMPDIR:-/tmp}"`
	if m.Path != "" {
		folder, _ = hostWord(m.Path)
	}
	var s script
	s.line("kk_path=" + folder + "/" + shell.Quote(m.Prefix+hex.EncodeToString(b)+m.Suffix))
	s.line(`kk_do "create $kk_path" kk_new ` + m.State + ` "$kk_path"`)
	s.line(`kk_probe n "$kk_path"`)
	out, err := s.run(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	var ans answer
	if err := ans.parse(out, "", "", 1); err != nil {
		return module.Result{}, err
	}
	e := ans.entries[0]
	if !e.exists() {
		return module.Result{}, fmt.Errorf("%s was created but does not exist", e.path)
	}
	d := value.NewDict("path", e.path)
	e.self.describe(d)
	return module.Result{Changed: true, Data: d}, nil
}
