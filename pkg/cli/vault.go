package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/source"
	"kubekey/pkg/vault"
)

// vaultCommand returns the command that matches ansible-vault. Each can read files that the other wrote.
func (a *app) vaultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vault",
		Short: "Encrypt files and values with a password, as ansible-vault does",
		Long: "Encrypt files and values with a password, in the format of Ansible Vault. " +
			"Without --vault-id and --vault-password-file the password is asked for.",
	}
	cmd.AddCommand(a.vaultCreate(), a.vaultEdit(), a.vaultView(), a.vaultEncrypt(), a.vaultDecrypt(), a.vaultRekey(),
		a.vaultEncryptString())
	return cmd
}

// vaultWork is one call of a vault command.
type vaultWork struct {
	*app
	vaultFlags
	encryptID string
	output    string
	newFile   string // --new-vault-password-file
	newID     string // --new-vault-id

	settings vaultSettings
}

// vaultSubcommand returns a command whose run function gets the flags.
func (a *app) vaultSubcommand(use, short string, args cobra.PositionalArgs,
	run func(ctx context.Context, w *vaultWork, args []string) error) (*cobra.Command, *vaultWork) {
	w := &vaultWork{app: a}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.output != "" && len(args) > 1 {
				return usage("--output works with one file only")
			}
			w.settings = a.vaultDefaults()
			return run(cmd.Context(), w, args)
		},
	}
	w.flags(cmd.Flags())
	return cmd, w
}

func (w *vaultWork) encryptFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.encryptID, "encrypt-vault-id", "",
		"ID of the password to encrypt with; needed when there are several")
}

func (w *vaultWork) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.output, "output", "", "file to write, - for standard output (default: the file itself)")
}

// keyring returns the passwords for decryption. It prompts for one if no source is given.
func (w *vaultWork) keyring(ctx context.Context) (*vault.Keyring, error) {
	sources := w.sources(w.settings)
	if len(sources) == 0 {
		sources = []string{vault.DefaultID + "@" + fromAskPrompt}
	}
	passwords, err := w.vaultPasswords(ctx, sources)
	return vault.NewKeyring(passwords, vault.Options{Exact: w.settings.exactID}), err
}

// newPassword returns the password for encryption. It prompts for one, twice, if no source is given.
func (w *vaultWork) newPassword(ctx context.Context, sources []string) (vault.Password, error) {
	if len(sources) == 0 {
		sources = []string{vault.DefaultID + "@" + fromAskPrompt}
	}
	id := w.encryptID
	if id == "" {
		id = w.settings.encryptID
	}
	var known []string
	var found []vault.Password
	for _, s := range sources {
		name, from := cutIdentity(s)
		known = append(known, name)
		if id != "" && name != id {
			continue
		}
		p, err := w.chosenPassword(ctx, name, from)
		if err != nil {
			return p, err
		}
		found = append(found, p)
	}
	switch {
	case len(found) == 0:
		return vault.Password{}, usage("Did not find a match for --encrypt-vault-id=%s in the known vault-ids %s", id,
			strings.Join(known, ","))
	case len(found) > 1 && id == "":
		return vault.Password{}, usage("The vault-ids %s are available to encrypt. Specify the vault-id to encrypt with "+
			"--encrypt-vault-id", strings.Join(known, ","))
	}
	return found[0], nil
}

// chosenPassword reads a password for encryption. A typed password must be entered twice.
func (w *vaultWork) chosenPassword(ctx context.Context, id, from string) (vault.Password, error) {
	if strings.Contains(id, ";") {
		return vault.Password{}, usage("invalid vault ID %q: it must not contain ;", id)
	}
	prompts := []string{fmt.Sprintf("New vault password (%s): ", id), fmt.Sprintf("Confirm new vault password (%s): ", id)}
	switch from {
	case fromAskPrompt:
		prompts = []string{"New Vault password: ", "Confirm New Vault password: "}
	case fromPrompt:
	default:
		return w.vaultPassword(ctx, id, from, nil)
	}
	first, err := w.askVault(ctx, prompts[0])
	if err != nil {
		return vault.Password{}, err
	}
	w.secret.Add(first)
	again, err := w.askVault(ctx, prompts[1])
	if err != nil {
		return vault.Password{}, err
	}
	if first != again {
		return vault.Password{}, errors.New("Passwords do not match") //nolint:staticcheck // users search for this text
	}
	return vault.NewPassword(id, first)
}

// input reads a file unchanged, or standard input for "-".
func (w *vaultWork) input(name string) (*source.File, error) {
	if name == "-" {
		text, err := w.tree.ReadStream(w.In, source.MaxData)
		return source.NewFile("standard input", text), err
	}
	text, err := w.tree.Raw().Read(name, source.MaxData)
	return source.NewFile(name, text), err
}

// decrypted reads an encrypted file. It returns the plain text and the password that decrypted it.
func (w *vaultWork) decrypted(k *vault.Keyring, name string) (plain []byte, opened vault.Opened, err error) {
	f, err := w.input(name)
	if err != nil {
		return nil, opened, err
	}
	at := source.Pos{File: f, Line: 1, Col: 1}
	if !source.IsVault(f.Text) {
		return nil, opened, source.Errorf(at, "input is not vault encrypted data")
	}
	plain, err = source.Decrypt(k, at, f.Text)
	if err == nil {
		opened, err = k.Opened(f.Text)
	}
	return plain, opened, err
}

func (a *app) vaultEncrypt() *cobra.Command {
	cmd, w := a.vaultSubcommand("encrypt [FILE...]", "Encrypt files in place, or standard input", cobra.ArbitraryArgs,
		func(ctx context.Context, w *vaultWork, args []string) error {
			p, err := w.newPassword(ctx, w.sources(w.settings))
			if err != nil {
				return err
			}
			return w.each(args, func(name string) error {
				f, err := w.input(name)
				if err != nil {
					return err
				}
				if source.IsVault(f.Text) {
					return source.Errorf(source.Pos{File: f, Line: 1, Col: 1}, "input is already encrypted")
				}
				text, err := vault.Encrypt(f.Text, p)
				if err != nil {
					return err
				}
				return w.write(name, text, true)
			})
		})
	w.outputFlag(cmd)
	w.encryptFlag(cmd)
	return cmd
}

func (a *app) vaultDecrypt() *cobra.Command {
	cmd, w := a.vaultSubcommand("decrypt [FILE...]", "Decrypt files in place, or standard input", cobra.ArbitraryArgs,
		func(ctx context.Context, w *vaultWork, args []string) error {
			k, err := w.keyring(ctx)
			if err != nil {
				return err
			}
			return w.each(args, func(name string) error {
				plain, _, err := w.decrypted(k, name)
				if err != nil {
					return err
				}
				return w.write(name, plain, false)
			})
		})
	w.outputFlag(cmd)
	return cmd
}

func (a *app) vaultView() *cobra.Command {
	cmd, _ := a.vaultSubcommand("view FILE...", "Print what encrypted files hold", needFiles,
		func(ctx context.Context, w *vaultWork, args []string) error {
			k, err := w.keyring(ctx)
			if err != nil {
				return err
			}
			return w.each(args, func(name string) error {
				plain, _, err := w.decrypted(k, name)
				if err != nil {
					return err
				}
				_, err = w.data().Write(plain)
				return err
			})
		})
	return cmd
}

func (a *app) vaultRekey() *cobra.Command {
	cmd, w := a.vaultSubcommand("rekey FILE...", "Re-encrypt files with another password", needFiles,
		func(ctx context.Context, w *vaultWork, args []string) error {
			if w.newFile != "" && w.newID != "" {
				return usage("set --new-vault-id or --new-vault-password-file, not both")
			}
			k, err := w.keyring(ctx)
			if err != nil {
				return err
			}
			var sources []string
			if w.encryptID != "" || w.settings.encryptID != "" {
				sources = append(sources, w.settings.identities...)
			}
			if w.newID != "" {
				sources = append(sources, w.newID)
			}
			if w.newFile != "" {
				sources = append(sources, vault.DefaultID+"@"+w.newFile)
			}
			p, err := w.newPassword(ctx, sources)
			if err != nil {
				return err
			}
			return w.each(args, func(name string) error {
				plain, _, err := w.decrypted(k, name)
				if err != nil {
					return err
				}
				text, err := vault.Encrypt(plain, p)
				if err != nil {
					return err
				}
				return w.write(name, text, false)
			})
		})
	w.encryptFlag(cmd)
	cmd.Flags().StringVar(&w.newFile, "new-vault-password-file", "",
		"file with the new password, or an executable that prints it")
	cmd.Flags().StringVar(&w.newID, "new-vault-id", "", "the new password, [ID@]FILE, [ID@]SCRIPT or [ID@]prompt")
	return cmd
}

func needFiles(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("specify a file")
	}
	return nil
}

// each calls do for all files, or for standard input. If one file fails, the others are still processed.
func (w *vaultWork) each(files []string, do func(name string) error) error {
	if len(files) == 0 {
		files = []string{"-"}
	}
	var ds source.Diagnostics
	for _, name := range files {
		if err := do(name); err != nil {
			ds.Add(diagnosticOf(name, err))
		}
	}
	return ds.Err()
}

func diagnosticOf(name string, err error) *source.Diagnostic {
	var d *source.Diagnostic
	if errors.As(err, &d) {
		return d
	}
	return source.Errorf(source.Pos{}, "%s: %s", name, pathCause(err))
}

func pathCause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// write writes a text to the file of --output, or else to the file that it was read from. With shred it overwrites
// the bytes of the old file, which were not encrypted.
func (w *vaultWork) write(name string, text []byte, shred bool) error {
	if w.output != "" && w.output != name {
		name, shred = w.output, false
	}
	if name == "-" {
		_, err := w.data().Write(text)
		return err
	}
	return replaceFile(name, text, shred)
}
