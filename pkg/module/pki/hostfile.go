package pki

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed hostfile.sh
var hostFileScript string

// HostFile is a file on the host; text is nil if it does not exist.
type HostFile struct {
	Path                   string
	There                  bool
	Mode                   fs.FileMode
	UID, GID, Owner, Group string
	Text                   []byte
}

// Source is PEM that a task gives as a path of the host or as a text.
type Source struct{ Path, Text, Name string }

// ReadHost reads files of the host, and treats texts as existing files.
func ReadHost(ctx context.Context, c *module.Call, path string, more ...Source) ([]HostFile, error) {
	s := hostscript.New(hostFileScript, `pki_look "$@"`)
	s.Probe = true
	s.Words = []string{path}
	for _, one := range more {
		if one.Path != "" {
			s.Words = append(s.Words, one.Path)
		}
	}
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	if err := a.Together("path", "stat", "text"); err != nil {
		return nil, err
	}
	if len(a["text"]) != len(s.Words) {
		return nil, fmt.Errorf("the host answered about %d of %d files", len(a["text"]), len(s.Words))
	}
	read := 0
	next := func() (HostFile, error) {
		f := HostFile{Path: a["path"][read]}
		err := f.parse(a["stat"][read], a["text"][read])
		read++
		return f, err
	}
	first, err := next()
	files := []HostFile{first}
	for _, one := range more {
		f := HostFile{Path: one.Name, There: one.Text != "", Text: []byte(one.Text)}
		if one.Path != "" && err == nil {
			f, err = next()
		}
		files = append(files, f)
	}
	return files, err
}

func (f *HostFile) parse(stat, text string) error {
	w := strings.Fields(stat)
	if len(w) != 5 {
		return nil
	}
	bits, err := strconv.ParseUint(w[0], 8, 32)
	if err != nil {
		return fmt.Errorf("the host's stat answered %q", stat)
	}
	f.There, f.Mode = true, schema.ModeOfUnix(uint32(bits))
	f.UID, f.GID, f.Owner, f.Group = w[1], w[2], w[3], w[4]
	f.Text, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
	return err
}

// ErrAway means that a required file does not exist. In check mode an earlier task may
// be about to create it.
var ErrAway = errors.New("does not exist")
