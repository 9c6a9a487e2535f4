package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/vault"
)

// vaultFlags select the sources of vault passwords.
type vaultFlags struct {
	ids   []string
	files []string
	asked bool
}

func (v *vaultFlags) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&v.ids, "vault-id", nil, "vault password: [ID@]FILE, [ID@]SCRIPT or [ID@]prompt; may be repeated")
	f.StringArrayVar(&v.files, "vault-password-file", nil,
		"file with the vault password, or an executable that prints it; may be repeated")
	f.StringArrayVar(&v.files, "vault-pass-file", nil, "")
	_ = f.MarkHidden("vault-pass-file")
	f.BoolVarP(&v.asked, "ask-vault-password", "J", false, "ask for the vault password")
	f.BoolVar(&v.asked, "ask-vault-pass", false, "")
	_ = f.MarkHidden("ask-vault-pass")
}

// vaultSettings are the defaults of the vault flags.
type vaultSettings struct {
	passwordFile string
	identities   []string // each in the format of --vault-id
	exactID      bool     // only try passwords with the same ID as the vault
	encryptID    string   // ID of the password to encrypt with
}

// vaultDefaults returns the settings for vaults.
func (a *app) vaultDefaults() vaultSettings {
	s := a.settings
	return vaultSettings{
		passwordFile: s.VaultPasswordFile, identities: s.VaultIdentityList,
		exactID: s.VaultIDMatch, encryptID: s.VaultEncryptIdentity,
	}
}

// Sources of passwords that the user types.
const (
	fromPrompt    = "prompt"
	fromAskPrompt = "prompt_ask_vault_pass" // the prompt does not show the ID
)

// sources lists the password sources in the order in which they are tried: the identities of the settings,
// --vault-id, files, the prompt.
func (v *vaultFlags) sources(s vaultSettings) []string {
	out := append(append([]string(nil), s.identities...), v.ids...)
	files := v.files
	if s.passwordFile != "" {
		files = append(files[:len(files):len(files)], s.passwordFile)
	}
	for _, file := range files {
		out = append(out, vault.DefaultID+"@"+file)
	}
	if v.asked {
		out = append(out, vault.DefaultID+"@"+fromAskPrompt)
	}
	return out
}

// cutIdentity splits ID@SOURCE. Without an @ the whole text is the source.
func cutIdentity(text string) (id, from string) {
	id, from, ok := strings.Cut(text, "@")
	if !ok {
		return vault.DefaultID, text
	}
	if id == "" {
		id = vault.DefaultID
	}
	return id, from
}

// vaultPasswords reads the passwords from their sources.
func (a *app) vaultPasswords(ctx context.Context, sources []string) ([]vault.Password, error) {
	var out []vault.Password
	for _, s := range sources {
		id, from := cutIdentity(s)
		p, err := a.vaultPassword(ctx, id, from, out)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// vaultPassword reads one password. A password file may be a vault that one of the earlier passwords decrypts.
func (a *app) vaultPassword(ctx context.Context, id, from string, earlier []vault.Password) (vault.Password, error) {
	var text string
	var err error
	switch from {
	case fromPrompt:
		text, err = a.askVault(ctx, fmt.Sprintf("Vault password (%s): ", id))
	case fromAskPrompt:
		text, err = a.askVault(ctx, "Vault password: ")
	default:
		text, err = a.vaultPasswordFrom(ctx, id, expandHome(from), earlier)
	}
	if err != nil {
		return vault.Password{}, err
	}
	p, err := vault.NewPassword(id, text)
	if err != nil {
		return p, fmt.Errorf("%w (from %s)", err, from)
	}
	a.secret.Add(p.Reveal())
	return p, nil
}

func (a *app) askVault(ctx context.Context, prompt string) (string, error) {
	text, ok, err := a.ask(ctx, prompt, false)
	if err == nil && !ok {
		err = usage("%sthere is no terminal and standard input is empty", prompt)
	}
	return text, err
}

// vaultPasswordFrom reads a password from a file or from the output of a program.
func (a *app) vaultPasswordFrom(ctx context.Context, id, path string, earlier []vault.Password) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the vault password file %s was not found", path)
	case err != nil:
		return "", fmt.Errorf("read the vault password: %w", err)
	case info.IsDir():
		return "", fmt.Errorf("the vault password file %s is a folder", path)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0:
		return a.vaultScript(ctx, id, path)
	}
	text, err := a.tree.Raw().Read(path, source.MaxSecret)
	if err != nil {
		return "", fmt.Errorf("read the vault password: %w", err)
	}
	if source.IsVault(text) {
		at := source.Pos{File: source.NewFile(path, text), Line: 1, Col: 1}
		text, err = source.Decrypt(vault.NewKeyring(earlier, vault.Options{}), at, text)
	}
	return string(text), err
}

// vaultScript runs a program that prints a password. A program with a name that ends in -client gets the ID as an
// argument.
func (a *app) vaultScript(ctx context.Context, id, path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	var args []string
	if strings.HasSuffix(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), "-client") {
		args = []string{"--vault-id", id}
	}
	cmd := exec.Command(abs, args...)
	cmd.Stdin, cmd.Stderr = a.In, a.Err.Writer()
	out, err := a.passwordProgram(cmd).Output(ctx)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("the vault password script %s exited with code %d (for the vault ID %s)", path, exit.ExitCode(),
			id)
	}
	if err != nil {
		return "", fmt.Errorf("run the vault password script %s: %w", path, err)
	}
	return string(out), nil
}

func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// unlock registers the passwords with everything that reads files and variables.
func (a *app) unlock(ctx context.Context, v *vaultFlags) error {
	s := a.vaultDefaults()
	passwords, err := a.vaultPasswords(ctx, v.sources(s))
	var known *exitError
	if errors.As(err, &known) {
		return err
	}
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	a.tree.Vault = vault.NewKeyring(passwords, vault.Options{Exact: s.exactID, Learned: a.hideVault})
	return nil
}
