package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/serve"
	"kubekey/pkg/engine"
	"kubekey/pkg/value"
)

// artifactServeCommand returns the command that serves offline files over HTTP.
func (a *app) artifactServeCommand() *cobra.Command {
	files := &offlineFiles{}
	var server serve.Server
	var output string
	cmd := &cobra.Command{
		Use:   "serve FILE...",
		Short: "Serve offline files over HTTP: files, packages and a registry of images, read only",
		Long: "Serve what is in offline files, read only, until it is interrupted: files under the paths that they have " +
			"upstream (/dl.k8s.io/release/...), repositories of packages below /packages/, and a registry " +
			"(HOST/registry.k8s.io/pause). / lists everything. /overlay.yaml is a catalog overlay for the address that it is " +
			"fetched from: with catalog.overlays in the config, kk gets everything from here.\n\n" +
			"It listens on the loopback interface. Any other address needs TLS and a password.\n\n" +
			"Ranges, conditional requests and HEAD are supported. Content is verified while it is sent: if it is damaged, the " +
			"connection is cut before the last byte.",
		Example: `  kk artifact serve kubernetes.tar
  kk artifact serve kubernetes.tar --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key --auth users`,
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := files.paths(cmd, args)
			if err != nil {
				return err
			}
			if err := textOrJSON("--output", output); err != nil {
				return err
			}
			return a.serveArtifacts(cmd.Context(), paths, server, output == "json")
		},
	}
	f := cmd.Flags()
	files.flag(f)
	f.StringVar(&server.Listen, "listen", "127.0.0.1:8080",
		"address and port; other than loopback only with TLS and --auth")
	f.StringVar(&server.TLSCert, "tls-cert", "", "certificate, and its chain: a PEM file")
	f.StringVar(&server.TLSKey, "tls-key", "", "key of the certificate: a PEM file")
	f.StringVar(&server.Auth, "auth", "",
		"file of users, mode 0600: lines USER:PASSWORD, the password as it is or hashed by htpasswd -B")
	f.StringVarP(&output, "output", "o", "text", "how to print the address: text or json")
	return cmd
}

func (a *app) serveArtifacts(ctx context.Context, paths []string, server serve.Server, asJSON bool) error {
	if err := server.Check(); err != nil {
		return &exitError{engine.ExitUsage, err}
	}
	set, err := artifact.OpenSet(paths)
	if err != nil {
		return &exitError{engine.ExitInput, err}
	}
	defer func() { _ = set.Close() }() // only read
	report := func(err error) { a.Err.Message("ERROR! " + err.Error()) }
	h, err := serve.New(set, report)
	if err != nil {
		return &exitError{engine.ExitInput, err}
	}
	err = server.Run(ctx, h, func(url string) { a.serving(url, asJSON) }, report)
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	return nil
}

// serving prints the address.
func (a *app) serving(url string, asJSON bool) {
	if asJSON {
		text, err := value.JSON(value.NewDict("url", url, "overlay", url+"overlay.yaml"), value.JSONOptions{})
		if err == nil { // texts always have a JSON form
			fmt.Fprintln(a.Out.JSON(), text)
		}
		return
	}
	fmt.Fprintf(a.Out, "serving at %s\ncatalog overlay: %soverlay.yaml\n", url, url)
}
