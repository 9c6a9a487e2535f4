package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/source"
	"kubekey/pkg/vault"
)

// stringFlags are the flags of encrypt-string.
type stringFlags struct {
	names     []string
	stdinName string
	prompt    bool
	showInput bool
}

// plainString is a text to encrypt, with the name of its variable.
type plainString struct{ name, text, from string }

func (a *app) vaultEncryptString() *cobra.Command {
	var f stringFlags
	cmd, w := a.vaultSubcommand("encrypt-string [TEXT...]", "Encrypt texts, as values to put into YAML",
		cobra.ArbitraryArgs,
		func(ctx context.Context, w *vaultWork, args []string) error {
			fromStdin := f.stdinName != "" || slices.Contains(args, "-") || len(args) == 0 && !f.prompt
			if f.prompt && fromStdin {
				return usage("--prompt cannot be combined with standard input")
			}
			p, err := w.newPassword(ctx, w.sources(w.settings))
			if err != nil {
				return err
			}
			texts, err := w.texts(ctx, &f, args, fromStdin)
			if err != nil {
				return err
			}
			return w.encryptTexts(texts, p)
		})
	cmd.Aliases = []string{"encrypt_string"}
	cmd.Long = "Encrypt texts, as values to put into YAML. A text among the arguments is seen in the list of processes " +
		"and " +
		"stays in the shell's history: standard input and --prompt do not have that."
	cmd.Example = `  kk vault encrypt-string --vault-password-file pw --name db_password <password.txt
  kk vault encrypt-string -p --vault-id prod@prompt`
	w.outputFlag(cmd)
	w.encryptFlag(cmd)
	cmd.Flags().StringArrayVarP(&f.names, "name", "n", nil,
		"name of the variable; may be repeated: the first is for the first text, and so on")
	cmd.Flags().StringVar(&f.stdinName, "stdin-name", "", "name of the variable for standard input")
	cmd.Flags().BoolVarP(&f.prompt, "prompt", "p", false, "ask for the text")
	cmd.Flags().BoolVar(&f.showInput, "show-input", false, "show what is typed")
	return cmd
}

// texts returns the texts to encrypt: typed ones first, then standard input, then the arguments.
func (w *vaultWork) texts(ctx context.Context, f *stringFlags, args []string, fromStdin bool) ([]plainString, error) {
	var out []plainString
	if f.prompt {
		p, err := w.promptText(ctx, f.showInput)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if fromStdin {
		text, err := w.tree.ReadStream(w.In, source.MaxData)
		if err != nil {
			return nil, err
		}
		out = append(out, plainString{f.stdinName, string(text), "stdin"})
	}
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "-" })
	names := f.names
	if fromStdin && f.stdinName == "" && len(args) == 0 && len(names) > 0 {
		out[len(out)-1].name = names[0]
	}
	for i, text := range args {
		p := plainString{"", text, "the command line args"}
		if i < len(names) {
			p.name = names[i]
		}
		out = append(out, p)
	}
	for _, p := range out {
		if p.text == "" {
			return nil, usage("the text from %s is empty", p.from)
		}
	}
	return out, nil
}

func (w *vaultWork) promptText(ctx context.Context, show bool) (plainString, error) {
	p := plainString{from: "the interactive prompt"}
	var ok bool
	var err error
	if p.name, ok, err = w.ask(ctx, "Variable name (enter for no name): ", true); err != nil {
		return p, err
	}
	if !ok {
		return p, usage("--prompt needs a terminal")
	}
	prompt := "String to encrypt (hidden): "
	if show {
		prompt = "String to encrypt: "
	}
	p.text, _, err = w.ask(ctx, prompt, show)
	return p, err
}

// encryptTexts writes the encrypted texts as YAML. If there are several, a line on standard error before each
// identifies it.
func (w *vaultWork) encryptTexts(texts []plainString, p vault.Password) error {
	var out bytes.Buffer
	for i, t := range texts {
		sealed, err := vault.Encrypt([]byte(t.text), p)
		if err != nil {
			return err
		}
		if len(texts) > 1 && t.name != "" {
			fmt.Fprintf(w.Err, "# The encrypted version of variable (%q, the string #%d from %s).\n", t.name, i+1, t.from)
		} else if len(texts) > 1 {
			fmt.Fprintf(w.Err, "# The encrypted version of the string #%d from %s.\n", i+1, t.from)
		}
		if t.name != "" {
			out.WriteString(t.name + ": ")
		}
		out.WriteString("!vault |\n")
		for line := range strings.Lines(string(sealed)) {
			out.WriteString("          " + line)
		}
	}
	return w.write("-", out.Bytes(), false)
}
