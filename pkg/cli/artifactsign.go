package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact/signature"
)

// artifactSignCommand returns the command that signs an offline file.
func (a *app) artifactSignCommand() *cobra.Command {
	var key, principal, output string
	var detached bool
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign an offline file with an SSH key",
		Long: "Sign an offline file with an SSH key: of a file, of the agent ($SSH_AUTH_SOCK), or a security key in the " +
			"agent. The signature is added to the file, and nothing else in it changes; several keys can sign. " +
			"With --detached it is written to FILE.sig.\n\n" +
			"`ssh-keygen -Y verify -n kk-artifact -f allowed_signers -I PRINCIPAL -s FILE.sig` verifies a detached " +
			"signature of what `kk artifact ls FILE --manifest` prints.",
		Example: `  kk artifact sign kubernetes.tar --key ~/.ssh/id_ed25519
  kk artifact sign kubernetes.tar --key ~/.ssh/id_ed25519_sk.pub --principal ada@example.com`,
		Args: exactFiles(1, "sign FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := textOrJSON("--output", output); err != nil {
				return err
			}
			s, err := a.signingKeys().Open(cmd.Context(), key)
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }() // nothing is written to it
			changed, err := s.SignFile(args[0], detached)
			if err != nil {
				return badFile(err)
			}
			return a.reportSigned(output, principal, args[0], changed, s.Key())
		},
	}
	f := cmd.Flags()
	f.StringVar(&key, "key", "", "file with the private key; or with the public key or certificate of a key in the "+
		"agent (default: the only key of the agent)")
	f.BoolVar(&detached, "detached", false, "write the signature to FILE.sig instead of into the file")
	f.StringVar(&principal, "principal", "",
		"also print the line for allowed_signers that lets this key sign as this principal")
	outputFlag(f, &output)
	return cmd
}

// signingKeys says where keys to sign with are found.
func (a *app) signingKeys() signature.Keys {
	return signature.Keys{Agent: os.Getenv("SSH_AUTH_SOCK"), Read: a.readSmall,
		Passphrase: func(ctx context.Context, path string) (string, error) {
			text, ok, err := a.ask(ctx, fmt.Sprintf("Passphrase of %s: ", path), false)
			if err == nil && !ok {
				err = fmt.Errorf("%s is encrypted: enter its passphrase, or load it into an agent with `ssh-add`", path)
			}
			a.secret.Add(text)
			return text, err
		}}
}

// signedReport is the JSON of `kk artifact sign`.
type signedReport struct {
	File           string `json:"file"`
	Changed        bool   `json:"changed"` // false if this key had signed it
	Key            string `json:"key"`     // fingerprint
	AllowedSigners string `json:"allowed_signers,omitempty"`
}

func (a *app) reportSigned(output, principal, path string, changed bool, key signature.Key) error {
	report := signedReport{File: path, Changed: changed, Key: key.Fingerprint()}
	if principal != "" {
		report.AllowedSigners = key.Line(principal)
	}
	if output == "json" {
		return writeJSON(a, report)
	}
	if changed {
		a.row("signed %s with the key %s", path, report.Key)
	} else {
		a.row("%s is already signed with the key %s", path, report.Key)
	}
	fmt.Fprint(a.Out, report.AllowedSigners)
	return nil
}
