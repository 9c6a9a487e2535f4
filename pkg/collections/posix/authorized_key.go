package posix

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/module/account"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed authorized_key.sh
var authorizedKeyScript string

// AuthorizedKey is the module authorized_key.
type AuthorizedKey struct {
	User      string  `kk:"user,required" doc:"user to manage the keys of"`
	Key       string  `kk:"key,required" doc:"public keys, one per line, or an http, https or ftp URL that the host fetches them from, or file:// with a path on the host"`
	State     string  `kk:"state" default:"present" choices:"absent,present" doc:"whether the keys should be in the file"`
	Path      string  `kk:"path,path" doc:"the file. Default: .ssh/authorized_keys in the user's home folder"`
	ManageDir bool    `kk:"manage_dir" default:"yes" doc:"create the folder of the file, owned by the user, with mode 0700"`
	Options   *string `kk:"key_options" doc:"options of the keys; they replace those in key"`
	Exclusive bool    `kk:"exclusive" default:"no" doc:"remove all other keys: set all keys in one task, since each iteration of a loop would remove those of the previous one"`
	Validate  bool    `kk:"validate_certs" default:"yes" doc:"verify the TLS certificate of a URL"`
	Comment   *string `kk:"comment" doc:"comment of the keys; it replaces those in key"`
	Follow    bool    `kk:"follow" default:"no" doc:"if the file is a link, write to its target instead of replacing the link"`
}

func authorizedKeySpec() module.Spec {
	return module.Spec{
		Name: "authorized_key", Collection: "ansible.posix",
		Summary: "Manages the authorized SSH keys of a user.",
		Notes:   []string{"A key is identified by its key material: with other options or another comment it is replaced."},
		Examples: []string{
			"- name: Let the team log in\n  authorized_key:\n    user: root\n" +
				"    key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Hp5mVdSpIGg0mVYLdOxSoyLKf9VVRY9nP1oLPxSZk team\n" +
				"    key_options: no-port-forwarding",
		},
		Returns: []module.Return{
			{Key: "keyfile", Type: "str", Doc: "the file"},
			{Key: "user, key, path, state, key_options, comment, exclusive, manage_dir, follow, validate_certs", Type: "any",
				Doc: "the arguments"},
		},
		New: func() module.Runner { return new(AuthorizedKey) },
	}
}

// Rules implements schema.Ruled.
func (*AuthorizedKey) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("user"),
		account.IsAccount("user", "user"),
		schema.Looks("one line", schema.OneLine, "key_options", "comment"),
		schema.AddressOr("public keys", "key", "http", "https", "ftp", "file"),
	}
}

// Run implements module.Runner.
func (m *AuthorizedKey) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	read := m.script("authorized_key_read").Flag("insecure", !m.Validate)
	if m.remote() {
		read.Set("url", m.Key)
	}
	a, err := c.Probe(ctx, read)
	if err != nil {
		return module.Result{}, err
	}
	text := m.Key
	if a.Has("key") {
		text = a.Get("key")
	}
	desired, err := m.desired(text)
	if err != nil {
		return module.Result{}, err
	}
	before := strings.TrimSuffix(a.Get("text"), "x")
	after := m.edit(before, desired)
	r := m.result(a)
	r.Changed = after != before
	c.Show(&r, a.Get("file"), before, after)
	act := m.script("authorized_key_write").Flag("manage_dir", m.ManageDir).Flag("follow", m.Follow)
	return c.Act(ctx, r, act, after)
}

func (m *AuthorizedKey) script(what string) *hostscript.Script {
	return hostscript.New(account.AccountScript, authorizedKeyScript, what).Set("user", m.User).Set("path", m.Path)
}

func (m *AuthorizedKey) remote() bool {
	for _, scheme := range []string{"http://", "https://", "ftp://", "file://"} {
		if strings.HasPrefix(m.Key, scheme) {
			return true
		}
	}
	return false
}

func (m *AuthorizedKey) result(a hostscript.Answer) module.Result {
	r := module.Result{Warnings: a["warn"], Data: value.NewDict(
		"user", m.User, "key", m.Key, "path", m.Path, "state", m.State, "key_options", schema.Text(m.Options),
		"comment", schema.Text(m.Comment), "exclusive", m.Exclusive, "manage_dir", m.ManageDir, "follow", m.Follow,
		"validate_certs", m.Validate, "keyfile", a.Get("file"),
	)}
	for key, given := range map[string]bool{"path": m.Path != "", "key_options": m.Options != nil,
		"comment": m.Comment != nil} {
		if !given {
			r.Data.Set(key, nil)
		}
	}
	return r
}

// desired parses the keys of the argument, and applies the task's options and comment.
func (m *AuthorizedKey) desired(text string) ([]account.PublicKey, error) {
	var keys []account.PublicKey
	for _, line := range module.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, ok := account.ParsePublicKey(line)
		if !ok {
			return nil, fmt.Errorf("invalid key specified: %s", line)
		}
		if m.Options != nil {
			k.Options = *m.Options
		}
		if m.Comment != nil {
			k.Comment = *m.Comment
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 && !m.Exclusive {
		return nil, errors.New("invalid key specified: there is none in key")
	}
	return keys, nil
}

// edit adds the keys to the text of the file, or removes them, one after the other. An existing key with other
// options or another comment is removed, and the desired one is appended. Lines that are not keys are kept.
func (m *AuthorizedKey) edit(text string, desired []account.PublicKey) string {
	var file []keyLine
	for _, line := range module.Lines(text) {
		k, isKey := account.ParsePublicKey(line)
		file = append(file, keyLine{line, k, isKey})
	}
	for _, want := range desired {
		there := m.State == "present" && slices.ContainsFunc(file, func(l keyLine) bool { return l.isKey && l.key == want })
		kept := false
		file = slices.DeleteFunc(file, func(l keyLine) bool {
			if !l.isKey || l.key.Blob != want.Blob {
				return false
			}
			first := there && !kept && l.key == want
			kept = kept || first
			return !first
		})
		if m.State == "present" && !there {
			file = append(file, keyLine{want.String(), want, true})
		}
	}
	if m.State == "present" && m.Exclusive {
		file = slices.DeleteFunc(file, func(l keyLine) bool {
			return l.isKey && !slices.ContainsFunc(desired, func(k account.PublicKey) bool { return k.Blob == l.key.Blob })
		})
	}
	out := make([]string, len(file))
	for i, l := range file {
		out[i] = l.text
	}
	if after := module.JoinLines(out); after != text+"\n" {
		return after
	}
	return text
}

// keyLine is a line of the file with its parsed key.
type keyLine struct {
	text  string
	key   account.PublicKey
	isKey bool
}
