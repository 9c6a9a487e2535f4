package lookups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/shlex"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/source"
)

func secretLookups() []expr.Lookup {
	return []expr.Lookup{{Names: "password", Params: "length chars encrypt ident seed", Do: lookupPassword}}
}

const (
	asciiLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	decimals     = "0123456789"
	punctuation  = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
)

// lookupPassword reads the password from a file, and generates it when the file does not exist. With /dev/null
// nothing is stored.
func lookupPassword(c *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		words, err := shlex.Split(term)
		if err != nil || len(words) == 0 {
			return nil, fmt.Errorf("needs the path of a file")
		}
		name, opts, err := passwordOptions(words, p)
		if err != nil {
			return nil, err
		}
		return opts.get(c, name)
	})
}

// passwordRule specifies the characters of a new password, and the form in which it is returned.
type passwordRule struct {
	length         int
	chars          string
	encrypt, ident string
	seed           any
}

func passwordOptions(words []string, p *expr.Bound) (string, *passwordRule, error) {
	given := map[string]string{}
	for _, word := range words[1:] {
		k, v, ok := strings.Cut(word, "=")
		if !ok || !strings.Contains(" length chars encrypt ident seed ", " "+k+" ") {
			return "", nil, fmt.Errorf("no option %q (it takes length=, chars=, encrypt=, ident=, seed=)", expr.Shorten(word))
		}
		given[k] = v
	}
	text := func(name string) string {
		if v, ok := given[name]; ok {
			return v
		}
		return p.Str(name, "")
	}
	r := &passwordRule{length: p.Int("length", 20), encrypt: text("encrypt"), ident: text("ident")}
	if v, ok := given["length"]; ok {
		n, ok := expr.WholeNumber(v)
		if !ok {
			return "", nil, fmt.Errorf("option length must be a whole number, not %q", v)
		}
		r.length = n
	}
	if r.length < 1 || r.length > 1<<16 {
		return "", nil, fmt.Errorf("option length must be from 1 to %d, not %d", 1<<16, r.length)
	}
	if s := text("seed"); s != "" {
		r.seed = s
	}
	var classes []any
	if v, ok := given["chars"]; ok {
		classes = []any{v}
	} else {
		classes = p.List("chars")
	}
	var err error
	r.chars, err = passwordLetters(classes)
	return words[0], r, err
}

// passwordLetters joins the named classes of characters and the literal characters.
func passwordLetters(classes []any) (string, error) {
	if len(classes) == 0 {
		return asciiLetters + decimals + ".,:-_", nil
	}
	named := map[string]string{
		"ascii_letters": asciiLetters, "ascii_lowercase": asciiLetters[:26], "ascii_uppercase": asciiLetters[26:],
		"digits": decimals, "hexdigits": decimals + "abcdefABCDEF", "octdigits": "01234567", "punctuation": punctuation,
	}
	out := ""
	for _, class := range classes {
		text, err := expr.Text(class)
		if err != nil {
			return "", err
		}
		for _, word := range strings.Split(strings.ReplaceAll(text, ",,", "\x00"), ",") {
			letters, ok := named[word]
			if !ok {
				letters = strings.ReplaceAll(word, "\x00", ",")
			}
			out += letters
		}
	}
	if out == "" {
		return "", fmt.Errorf("option chars names no character")
	}
	return out, nil
}

func (r *passwordRule) get(c *expr.Call, name string) (string, error) {
	file := name
	if name != "/dev/null" {
		dir := filters.ScopeText(c, "playbook_dir")
		if dir == "" {
			dir = "."
		}
		file = source.Join(dir, filters.ExpandUser(name))
	}
	file, err := source.DiskPath(file)
	if err != nil {
		return "", err
	}
	password, salt, err := readPassword(c, file)
	switch {
	case err != nil:
		return "", err
	case password == "":
		if checks(c) {
			file = "/dev/null"
		}
		if password, salt, err = r.create(c, file); err != nil {
			return "", err
		}
	case salt == "" && r.encrypt != "":
		// The salt is stored, so that the hash is the same in every run.
		if salt, err = r.newSalt(); err != nil {
			return "", err
		}
		if checks(c) {
			break
		}
		if err := writePassword(file, password, salt, true); err != nil {
			return "", err
		}
	}
	if r.encrypt == "" {
		return password, nil
	}
	return filters.HashPassword(password, strings.TrimSuffix(r.encrypt, "_crypt"), salt, 0, 0, r.ident)
}

// checks reports whether the run is in check mode, which writes nothing.
func checks(c *expr.Call) bool {
	if c.Scope == nil {
		return false
	}
	check, _, err := c.Scope.Lookup("ansible_check_mode")
	return err == nil && check == true
}

// readPassword reads "password salt=xyz". It returns "" when there is no file.
func readPassword(c *expr.Call, file string) (password, salt string, err error) {
	if file == "/dev/null" {
		return "", "", nil
	}
	text, err := c.Env.Options().Files.Raw().Read(file, source.MaxSecret)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("read the password: %w", err)
	}
	password = strings.TrimRight(string(text), "\r\n")
	if i := strings.LastIndex(password, " salt="); i >= 0 {
		password, salt = password[:i], password[i+len(" salt="):]
		salt, _, _ = strings.Cut(salt, " ident=")
	}
	return password, salt, nil
}

func (r *passwordRule) newSalt() (string, error) {
	scheme, ok := filters.CryptSchemes()[strings.TrimSuffix(r.encrypt, "_crypt")]
	if !ok {
		return "", fmt.Errorf("no password hash %q (there are md5, sha256, sha512, bcrypt)", r.encrypt)
	}
	return filters.RandomText(scheme.Salt, filters.SaltLetters)
}

// create generates a password and stores it. If another process has stored one first, that one is used.
func (r *passwordRule) create(c *expr.Call, file string) (password, salt string, err error) {
	if password, err = r.random(); err != nil {
		return "", "", err
	}
	if r.encrypt != "" {
		if salt, err = r.newSalt(); err != nil {
			return "", "", err
		}
	}
	if file == "/dev/null" {
		return password, salt, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", "", fmt.Errorf("keep the password: %w", err)
	}
	err = writePassword(file, password, salt, false)
	if errors.Is(err, fs.ErrExist) {
		return readPassword(c, file)
	}
	return password, salt, err
}

func (r *passwordRule) random() (string, error) {
	if r.seed == nil {
		return filters.RandomText(r.length, r.chars)
	}
	numbers := filters.NewGenerator(&expr.Call{}, nil, r.seed)
	letters := []rune(r.chars)
	out := make([]rune, r.length)
	for i := range out {
		out[i] = letters[numbers.Below(len(letters))]
	}
	return string(out), nil
}

// writePassword writes a temporary file next to the target first, so that readers never see a partial file. With
// replace it replaces the file, to add the salt. Otherwise the error is fs.ErrExist if another host or process has
// created the file in the meantime.
func writePassword(file, password, salt string, replace bool) error {
	if salt != "" {
		password += " salt=" + salt
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".password-*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep the password: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(password + "\n")
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("keep the password: %w", err)
	}
	if !replace {
		// A link fails when the file exists. A rename would replace it.
		if err := os.Link(tmp.Name(), file); err == nil || errors.Is(err, fs.ErrExist) && !isEmptyFile(file) {
			return err
		}
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("keep the password: %w", err)
	}
	return nil
}

func isEmptyFile(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() == 0
}
