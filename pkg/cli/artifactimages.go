package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/artifact"
	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// artifactImagesCommand returns the commands that copy images between offline files and registries.
func (a *app) artifactImagesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "images", Short: "Copy images between offline files and registries"}
	cmd.AddCommand(a.imagesPushCommand(), a.imagesPullCommand())
	return cmd
}

// registryFlags are those of both commands.
type registryFlags struct {
	runFlags
	arches []string
	auth   string
	ca     string
	skip   bool
}

func (r *registryFlags) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&r.arches, "arch", nil, "architectures to copy: amd64, arm64 (default: all that there are)")
	f.StringVar(&r.auth, "auth", "", "file with credentials, as `docker login` writes it (default ~/.docker/config.json)")
	f.StringVar(&r.ca, "ca", "", "CA of the registry: a PEM file")
	f.BoolVar(&r.skip, "skip-verify", false, "do not verify the certificate of the registry")
	exportFlags(&r.runFlags, f)
}

// platforms returns the --arch flag as platforms.
func (r *registryFlags) platforms() []any {
	out := []any{}
	for _, arch := range r.arches {
		out = append(out, "linux/"+arch)
	}
	return out
}

// credentials reads a file of docker's.
func (r *registryFlags) credentials(a *app) (*value.Dict, error) {
	out := value.NewDict()
	if r.auth == "" {
		return out, nil
	}
	text, err := a.readSmall(r.auth)
	if err != nil {
		return nil, usage("--auth: %s", err)
	}
	var config struct {
		Auths map[string]struct {
			Auth, Username, Password string
		} `json:"auths"`
	}
	if err := json.Unmarshal(text, &config); err != nil || len(config.Auths) == 0 {
		return nil, usage("--auth %s: it has no \"auths\": write it with `docker login` or `skopeo login --authfile`", r.auth)
	}
	for _, host := range slices.Sorted(maps.Keys(config.Auths)) {
		c := config.Auths[host]
		if c.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(c.Auth)
			user, password, ok := strings.Cut(string(plain), ":")
			if err != nil || !ok {
				return nil, usage("--auth %s: auth of %s is not the base64 of USER:PASSWORD", r.auth, host)
			}
			c.Username, c.Password = user, password
		}
		out.Set(host, value.NewDict("username", c.Username, "password", c.Password))
	}
	return out, nil
}

// options returns the variables that both playbooks have.
func (r *registryFlags) options(a *app, hosts map[string]bool) (*value.Dict, error) {
	auth, err := r.credentials(a)
	if err != nil {
		return nil, err
	}
	if r.ca != "" && r.skip {
		return nil, usage("--ca and --skip-verify exclude each other")
	}
	ca := ""
	if r.ca != "" {
		if ca, err = filepath.Abs(r.ca); err != nil {
			return nil, err
		}
	}
	tls := value.NewDict()
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		d := value.NewDict()
		if ca != "" {
			d.Set("ca", ca)
		}
		if r.skip {
			d.Set("skip_verify", true)
		}
		if hosts[host] {
			d.Set("plain_http", true)
		}
		tls.Set(host, d)
	}
	return value.NewDict("auth", auth, "tls", tls, "ca", ca, "skip_verify", r.skip, "platforms", r.platforms()), nil
}

// run runs the playbook of a command.
func (r *registryFlags) run(ctx context.Context, a *app, command string, vars *value.Dict) error {
	r.extraVars(value.NewDict("artifact_images", vars))
	return a.runPlaybooks(ctx, &r.runFlags, []string{source.Builtin + "/playbooks/artifact_images_" + command + ".yaml"})
}

func (a *app) imagesPushCommand() *cobra.Command {
	r := &registryFlags{}
	files := &offlineFiles{}
	var to string
	var projects bool
	cmd := &cobra.Command{
		Use:   "push FILE... --to REGISTRY[/PREFIX]",
		Short: "Copy the images of offline files to a registry",
		Long: "Copy the images of offline files to a registry that exists. They keep their repositories and tags, below " +
			"the prefix: registry.k8s.io/pause:3.10.1 goes to REGISTRY/PREFIX/pause:3.10.1. All architectures of the file are " +
			"kept. What the registry has is not sent again.\n\nRuns playbooks/artifact_images_push.yaml.",
		Example: `  kk artifact images push kubernetes.tar --to harbor.example.com/kubernetes --create-projects
  kk artifact images push kubernetes.tar --to http://10.0.0.9:5000 --arch amd64`,
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := files.paths(cmd, args)
			if err != nil {
				return err
			}
			if to == "" {
				return usage("%s needs a registry: --to REGISTRY[/PREFIX]", cmd.CommandPath())
			}
			vars, err := r.push(a, paths, to, projects)
			if err != nil {
				return err
			}
			return r.run(cmd.Context(), a, "push", vars)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "",
		"registry, with a prefix of its repositories; http:// before it if it has no TLS (required)")
	f.BoolVar(&projects, "create-projects", false, "create missing projects first, as Harbor needs them; they are public")
	files.flag(f)
	r.flags(f)
	return cmd
}

// push returns the variables of the playbook: where each image goes.
func (r *registryFlags) push(a *app, files []string, to string, projects bool) (*value.Dict, error) {
	scheme, target, ok := strings.Cut(to, "://")
	if !ok {
		scheme, target = "https", to
	}
	target = strings.TrimSuffix(target, "/")
	host, _, _ := strings.Cut(target, "/")
	if _, err := name.NewRegistry(host); err != nil || scheme != "https" && scheme != "http" {
		return nil, usage("--to %s: write HOST[:PORT][/PREFIX]", to)
	}
	set, err := artifact.OpenSet(files)
	if err != nil {
		return nil, &exitError{engine.ExitInput, err}
	}
	defer func() { _ = set.Close() }() // only read
	images, all := []any{}, []any{}
	var wrong []error
	seen := map[string]string{}
	for _, f := range set {
		for _, i := range f.Manifest.Items {
			if i.Kind != artifact.KindImage || i.IsAttached() { // that goes with its image
				continue
			}
			_, path, ok := strings.Cut(i.Name, "/")
			if !ok {
				wrong = append(wrong, usage("%s: the image %s has no registry in its name", f.Path, i.Name))
				continue
			}
			dest := target + "/" + path
			if other, twice := seen[dest]; twice {
				if other != i.Name {
					wrong = append(wrong, usage("%s and %s both go to %s: push one of them with another --to", other, i.Name, dest))
				}
				continue
			}
			seen[dest] = i.Name
			images = append(images, value.NewDict("src", i.Name, "dest", dest))
			project, _, nested := strings.Cut(strings.TrimPrefix(dest, host+"/"), "/")
			if projects && !nested {
				wrong = append(wrong, usage("%s would be in no project: write --to %s/PROJECT", i.Name, host))
			}
			if projects && nested && !slices.Contains(all, any(project)) {
				all = append(all, project)
			}
		}
	}
	if len(images) == 0 && len(wrong) == 0 {
		wrong = append(wrong, usage("%s: there are no images in there", strings.Join(files, ", ")))
	}
	if len(wrong) > 0 {
		return nil, &exitError{engine.ExitInput, errors.Join(wrong...)}
	}
	vars, err := r.options(a, map[string]bool{host: scheme == "http"})
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		if files[i], err = filepath.Abs(f); err != nil {
			return nil, err
		}
	}
	vars.Set("files", value.Of(files))
	vars.Set("images", images)
	vars.Set("projects", all)
	vars.Set("registry", host)
	vars.Set("url", scheme+"://"+host)
	return vars, nil
}

func (a *app) imagesPullCommand() *cobra.Command {
	r := &registryFlags{}
	var output string
	var plain []string
	cmd := &cobra.Command{
		Use:   "pull IMAGE... -o FILE",
		Short: "Write an offline file of images alone",
		Long: "Write an offline file of images from registries, to use it together with others: -a FILE may be " +
			"repeated.\n\nRuns playbooks/artifact_images_pull.yaml.",
		Example: "  kk artifact images pull docker.io/library/nginx:1.29 quay.io/prometheus/prometheus:v3.5.0 -o apps.tar",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || output == "" {
				return usage("%s needs images and the file to write: IMAGE... -o FILE", cmd.CommandPath())
			}
			path, err := filepath.Abs(output)
			if err != nil {
				return err
			}
			hosts := map[string]bool{}
			for i, text := range args {
				ref, err := name.ParseReference(text)
				if err != nil {
					return usage("%q is not the name of an image: %s", text, err)
				}
				hosts[ref.Context().RegistryStr()] = slices.Contains(plain, ref.Context().RegistryStr())
				args[i] = artifact.FullName(ref)
			}
			vars, err := r.options(a, hosts)
			if err != nil {
				return err
			}
			if len(r.arches) == 0 {
				vars.Set("platforms", []any{"linux/amd64"})
			}
			vars.Set("images", value.Of(args))
			vars.Set("output", path)
			return r.run(cmd.Context(), a, "pull", vars)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "path of the offline file (required)")
	f.StringSliceVar(&plain, "plain-http", nil, "registries without TLS: HOST[:PORT]")
	r.flags(f)
	f.Lookup("arch").Usage = "architectures to fetch: amd64, arm64 (default: amd64)"
	return cmd
}
