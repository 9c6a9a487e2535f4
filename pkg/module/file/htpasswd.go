package file

import (
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // a scheme that web servers know
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/GehirnInc/crypt"
	"github.com/GehirnInc/crypt/apr1_crypt"
	"github.com/GehirnInc/crypt/md5_crypt"
	"github.com/GehirnInc/crypt/sha256_crypt"
	"github.com/GehirnInc/crypt/sha512_crypt"
	"golang.org/x/crypto/bcrypt"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// HTPasswd is the module htpasswd.
type HTPasswd struct {
	Attributes
	Path     string         `kk:"path,required,path,alias=dest|destfile" doc:"file on the host"`
	Name     string         `kk:"name,required,alias=username" doc:"the user"`
	Password *redact.Secret `kk:"password" doc:"the password; needed with state: present"`
	Scheme   string         `kk:"hash_scheme,alias=crypt_scheme" default:"apr_md5_crypt" choices:"apr_md5_crypt,md5_crypt,sha256_crypt,sha512_crypt,bcrypt,portable_apache24,host_apache24,portable,ldap_sha1" doc:"hash scheme of the password. Apache supports apr_md5_crypt and bcrypt everywhere, nginx those of the host's crypt; the names with apache24 are bcrypt, portable is apr_md5_crypt"`
	State    string         `kk:"state" default:"present" choices:"absent,present" doc:"whether the user should exist"`
	Create   bool           `kk:"create" default:"yes" doc:"create the file if it does not exist"`
}

func htpasswdSpec() module.Spec {
	return module.Spec{
		Name: "htpasswd", Collection: "community.general",
		Summary: "Manages users in a password file for web servers.",
		Notes: []string{
			"Passwords are hashed on the control node, so hosts need no library. A user whose password already matches " +
				"keeps the hash, whatever its scheme.",
			"No diff is shown: it would contain hashes.",
		},
		Examples: []string{
			"- name: Add a user\n  htpasswd:\n    path: /etc/nginx/users\n    name: ada\n" +
				"    password: \"{{ ada_password }}\"\n    hash_scheme: sha512_crypt\n    owner: root\n    mode: \"0640\"",
		},
		Returns: append([]module.Return{
			{Key: "msg", Type: "str", Doc: "what was changed"},
			{Key: "path", Type: "str", Doc: "the file"},
		}, FileReturns()...),
		New: func() module.Runner { return new(HTPasswd) },
	}
}

// Rules implements schema.Ruled.
func (*HTPasswd) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("password").If("state", "present"),
		schema.Parses("a name without colons and line ends", func(name string) error {
			if strings.ContainsAny(name, ":\r\n") {
				return fmt.Errorf("name must not contain colons or line breaks, got %q", name)
			}
			return nil
		}, "name"),
	}
}

// Run implements module.Runner.
func (m *HTPasswd) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	e, err := OpenEdit(ctx, c, m.Path, &m.Attributes, m.Create || m.State == "absent")
	if err != nil {
		return module.Result{}, err
	}
	if !e.Exists && m.State == "absent" {
		return module.Result{Msg: m.Path + " not present", Data: value.NewDict()}, nil
	}
	to := Edited{Text: e.Text, Touched: true, Data: value.NewDict()}
	if m.State == "absent" {
		to.Text, to.Msg = m.remove(e.Text)
	} else if to.Text, to.Msg, err = m.set(e.Text); err != nil {
		return module.Result{}, err
	}
	if !e.Exists {
		to.Msg = "Created " + m.Path
	}
	quiet := *c
	quiet.Diff = false
	return e.Save(ctx, &quiet, &m.Attributes, to)
}

func (m *HTPasswd) is(line string) bool { return strings.HasPrefix(line, m.Name+":") }

func (m *HTPasswd) remove(text string) (string, string) {
	var kept []string
	lines := SplitLines(text)
	for _, line := range lines {
		if !m.is(line) {
			kept = append(kept, line)
		}
	}
	if len(kept) == len(lines) {
		return text, m.Name + " not present"
	}
	return strings.Join(kept, ""), "Removed " + m.Name
}

func (m *HTPasswd) set(text string) (after, msg string, err error) {
	lines := SplitLines(text)
	at := -1
	for i, line := range lines {
		if m.is(line) {
			if at = i; fitsHash(strings.TrimRight(line[len(m.Name)+1:], "\r\n"), m.Password.Reveal()) {
				return text, m.Name + " already present", nil
			}
			break
		}
	}
	hash, err := hashPassword(m.Scheme, m.Password.Reveal())
	if err != nil {
		return "", "", fmt.Errorf("hash the password of %s: %w", m.Name, err)
	}
	line := m.Name + ":" + hash + "\n"
	if at >= 0 {
		lines[at] = line
		return strings.Join(lines, ""), "Updated " + m.Name, nil
	}
	if text != "" {
		text = Ended(text)
	}
	return text + line, "Added " + m.Name, nil
}

// crypts returns the schemes of crypt(3), keyed by the prefix of their hashes.
func crypts() map[string]crypt.Crypter {
	return map[string]crypt.Crypter{
		"$apr1$": apr1_crypt.New(), "$1$": md5_crypt.New(), "$5$": sha256_crypt.New(), "$6$": sha512_crypt.New(),
	}
}

func hashPassword(scheme, password string) (string, error) {
	prefix := map[string]string{"apr_md5_crypt": "$apr1$", "portable": "$apr1$", "md5_crypt": "$1$",
		"sha256_crypt": "$5$", "sha512_crypt": "$6$"}[scheme]
	switch {
	case scheme == "ldap_sha1":
		return sha1Hash(password), nil
	case prefix == "":
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
		return strings.Replace(string(hash), "$2a$", "$2y$", 1), err // the prefix that htpasswd uses for the same algorithm
	}
	salt := rand.Text()[:8]
	if prefix == "$5$" || prefix == "$6$" {
		salt = rand.Text()[:16]
	}
	return crypts()[prefix].Generate([]byte(password), []byte(prefix+salt))
}

// fitsHash reports whether a hash matches the password.
func fitsHash(hash, password string) bool {
	for prefix, c := range crypts() {
		if strings.HasPrefix(hash, prefix) {
			return c.Verify(hash, []byte(password)) == nil
		}
	}
	if strings.HasPrefix(hash, "$2") {
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
	}
	return subtle.ConstantTimeCompare([]byte(hash), []byte(sha1Hash(password))) == 1
}

func sha1Hash(password string) string {
	sum := sha1.Sum([]byte(password)) //nolint:gosec // as above
	return "{SHA}" + base64.StdEncoding.EncodeToString(sum[:])
}
