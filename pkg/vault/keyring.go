package vault

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Password is a vault password with its ID.
type Password struct {
	ID     string
	secret []byte
}

// NewPassword returns a password; an empty ID is DefaultID. Blanks around the text are removed, as
// in Ansible.
func NewPassword(id, text string) (Password, error) {
	return ExactPassword(id, strings.TrimSpace(text))
}

// ExactPassword is NewPassword without removing blanks.
func ExactPassword(id, text string) (Password, error) {
	if text == "" {
		return Password{}, errors.New("the vault password is empty")
	}
	if id == "" {
		id = DefaultID
	}
	return Password{id, []byte(text)}, nil
}

// As is the same password with another ID.
func (p Password) As(id string) Password { return Password{id, p.secret} }

// Reveal returns the password itself.
func (p Password) Reveal() string { return string(p.secret) }

// Format prevents every verb of fmt from showing the password.
func (p Password) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "vault password %s", p.ID) }

// NoPasswordError reports that there is no password at all.
type NoPasswordError struct{}

func (NoPasswordError) Error() string {
	return "this is encrypted with a vault, and no vault password was given"
}

// Help explains how to pass one.
func (NoPasswordError) Help() string {
	return "pass --vault-password-file FILE, --vault-id ID@FILE or --ask-vault-password"
}

// WrongPasswordError reports that none of the passwords decrypts a vault.
type WrongPasswordError struct {
	ID    string   // from the vault's header
	Tried []string // IDs, in order
}

func (e *WrongPasswordError) Error() string {
	return fmt.Sprintf("Decryption failed (no vault secrets were found that could decrypt): "+
		"the vault ID is %q, tried the passwords of %s", e.ID, strings.Join(e.Tried, ", "))
}

// Help explains what can be wrong.
func (e *WrongPasswordError) Help() string {
	return "a password is wrong or missing (--vault-id ID@FILE), or the vault was changed"
}

// Keyring is the vault passwords of a run. It is safe for concurrent use.
type Keyring struct {
	passwords []Password
	exact     bool
	learned   func(plain []byte)

	mu     sync.Mutex
	opened map[[sha256.Size]byte]*opening
}

// opening is a vault that is or was decrypted: deriving keys is slow, and many hosts share a
// value.
type opening struct {
	once  sync.Once
	plain []byte
	by    Opened
	err   error
}

// Opened describes how a vault was decrypted.
type Opened struct {
	Password Password // that decrypted it
	ID       string   // from its header
}

// Options select how a keyring decrypts vaults. The zero value is Ansible's default.
type Options struct {
	// Exact tries only the passwords with the ID of the vault.
	Exact bool
	// Learned is called with every decrypted text, once each; may be nil.
	Learned func(plain []byte)
}

// NewKeyring returns a keyring of passwords, in the order in which to try them.
func NewKeyring(passwords []Password, o Options) *Keyring {
	return &Keyring{passwords: passwords, exact: o.Exact, learned: o.Learned, opened: map[[sha256.Size]byte]*opening{}}
}

// Decrypt decrypts a text. The error is a NoPasswordError, a *WrongPasswordError or a
// *FormatError. The result is shared: do not modify it.
func (k *Keyring) Decrypt(text []byte) ([]byte, error) {
	o := k.open(text)
	return o.plain, o.err
}

// Opened reports which password Decrypt uses for a text.
func (k *Keyring) Opened(text []byte) (Opened, error) {
	o := k.open(text)
	return o.by, o.err
}

func (k *Keyring) open(text []byte) *opening {
	if k == nil {
		k = NewKeyring(nil, Options{})
	}
	sum := sha256.Sum256(text)
	k.mu.Lock()
	o := k.opened[sum]
	if o == nil {
		o = &opening{}
		k.opened[sum] = o
	}
	k.mu.Unlock()
	o.once.Do(func() {
		if o.plain, o.by, o.err = k.try(text); o.err == nil && k.learned != nil {
			k.learned(o.plain)
		}
	})
	return o
}

// try tries the passwords in order.
func (k *Keyring) try(text []byte) ([]byte, Opened, error) {
	e, err := parse(text)
	if err != nil {
		return nil, Opened{}, err
	}
	if len(k.passwords) == 0 {
		return nil, Opened{}, NoPasswordError{}
	}
	wrong := &WrongPasswordError{ID: e.id}
	for _, p := range k.candidates(e.id) {
		plain, ok, err := e.open(p)
		if ok || err != nil {
			return plain, Opened{p, e.id}, err
		}
		if !slices.Contains(wrong.Tried, p.ID) {
			wrong.Tried = append(wrong.Tried, p.ID)
		}
	}
	if len(wrong.Tried) == 0 {
		wrong.Tried = []string{"none, since no password has this ID"}
	}
	return nil, Opened{}, wrong
}

// candidates are the passwords to try: those with the vault's ID come first.
func (k *Keyring) candidates(id string) []Password {
	var named, others []Password
	for _, p := range k.passwords {
		if p.ID == id {
			named = append(named, p)
		} else {
			others = append(others, p)
		}
	}
	if k.exact {
		return named
	}
	return append(named, others...)
}
