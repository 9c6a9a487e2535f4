package cli

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// exporting are the flags of `kk artifact export`.
type exporting struct {
	run                                   runFlags
	output                                string
	kubernetes, arches, systems, packages []string
	images, files, programs               []string
	only, except                          []string
	packagesOn, from, split, rate, sign   string
	noSBOM, plan                          bool
	jobs                                  int
}

// artifactExportCommand returns the command that makes an offline file.
func (a *app) artifactExportCommand() *cobra.Command {
	e := &exporting{}
	cmd := &cobra.Command{
		Use:   "export -o FILE",
		Short: "Make an offline file: everything that a cluster is built from",
		Long: "Make one file of everything that the config needs: binaries, charts and images, verified, for a site " +
			"without a network. There, `kk create cluster -a FILE` builds the cluster from it. Use the config and the " +
			"inventory of that cluster; its hosts are not contacted.\n\n" +
			"What was fetched is kept in the work folder: after a failure, run the same command again. The same inputs " +
			"make the same bytes.\n\nRuns playbooks/artifact_export.yaml.",
		Example: `  kk artifact export -c config.yaml -i inventory.yaml -o kubernetes.tar
  kk artifact export --kubernetes v1.34.4 --arch amd64,arm64 -o kubernetes.tar`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.output == "" {
				return usage("%s needs the file to write: -o FILE", cmd.CommandPath())
			}
			sets, err := e.sets()
			if err != nil {
				return err
			}
			vars, err := e.vars()
			if err != nil {
				return err
			}
			e.run.sets = append(e.run.sets, sets...)
			e.run.extraVars(value.NewDict("artifact_export", vars))
			return a.export(cmd.Context(), e)
		},
	}
	e.flags(cmd.Flags())
	return cmd
}

func (a *app) export(ctx context.Context, e *exporting) error {
	playbooks := []string{source.Builtin + "/playbooks/artifact_export.yaml"}
	if e.sign == "" {
		return a.runPlaybooks(ctx, &e.run, playbooks)
	}
	// A key that cannot be used is an error before everything is fetched.
	signer, err := a.signingKeys().Open(ctx, e.sign)
	if err != nil {
		return err
	}
	defer func() { _ = signer.Close() }() // nothing is written to it
	if err := a.runPlaybooks(ctx, &e.run, playbooks); err != nil || e.plan || e.run.check {
		return err
	}
	changed, err := signer.SignFile(e.output, false)
	if err != nil || e.run.output.format != "text" {
		return badFile(err)
	}
	return a.reportSigned("text", "", e.output, changed, signer.Key())
}

func (e *exporting) flags(f *pflag.FlagSet) {
	f.StringVarP(&e.output, "output", "o", "", "path of the offline file (required)")
	f.StringSliceVar(&e.kubernetes, "kubernetes", nil,
		"version of Kubernetes, instead of the config's: v1.34.4; several for an upgrade, in its order")
	f.StringSliceVar(&e.arches, "arch", nil,
		"architectures of the hosts: amd64, arm64 (default: that of this machine)")
	f.StringSliceVar(&e.systems, "os", nil,
		"distributions whose packages to export, instead of artifact.distributions: debian-12, rocky-9.4")
	f.StringArrayVar(&e.packages, "package", nil,
		"package besides those that the config needs, instead of artifact.packages; may be repeated")
	f.StringVar(&e.packagesOn, "packages-on", "",
		"host of the inventory that runs the distribution and has a network: packages are resolved there")
	f.StringArrayVar(&e.images, "image", nil,
		"image besides those that the config needs, with registry and tag, instead of artifact.images; may be repeated")
	f.StringSliceVar(&e.only, "only", nil, "export these kinds only: "+strings.Join(allParts, ", "))
	f.StringSliceVar(&e.except, "except", nil, "do not export these kinds")
	f.StringArrayVar(&e.files, "file", nil, "further file: URL=SHA256; may be repeated")
	f.StringSliceVar(&e.programs, "kk", nil,
		"programs of kk to put in, for Linux; none for no program (default: this one)")
	f.StringVar(&e.from, "from", "",
		"older offline file, or its manifest (then without SBOMs): fetch and write only what it lacks, as a delta")
	f.BoolVar(&e.plan, "plan", false, "show what would be fetched and written, and check free space; fetch nothing")
	f.StringVar(&e.split, "split", "", "write parts of this size: 4G makes FILE.001 and so on")
	f.StringVar(&e.sign, "sign", "", "sign the file with this SSH key, as `kk artifact sign --key` does")
	f.BoolVar(&e.noSBOM, "no-sbom", false, "do not add SBOMs; `kk artifact sbom` makes them later")
	f.StringVar(&e.rate, "rate", "", "bytes per second to fetch with, instead of download.rate: 10M")
	f.IntVar(&e.jobs, "jobs", 0, "number of files to fetch in parallel, instead of download.parallel")
	exportFlags(&e.run, f)
}

// sets returns the config keys that flags stand for, as --set reads them.
func (e *exporting) sets() ([]string, error) {
	for i := range e.kubernetes {
		e.kubernetes[i] = withV(e.kubernetes[i])
	}
	var sets []string
	set := func(key string, v any) { sets = append(sets, fmt.Sprintf("%s=%v", key, v)) }
	if n := len(e.kubernetes); n > 0 {
		set("kubernetes.kube_version", e.kubernetes[n-1])
	}
	for _, l := range []struct {
		key  string
		list []string
	}{{"kubernetes", e.kubernetes}, {"images", e.images}, {"distributions", e.systems}, {"packages", e.packages}} {
		if len(l.list) == 0 {
			continue
		}
		text, err := value.JSON(value.Of(l.list), value.JSONOptions{})
		if err != nil {
			return nil, err
		}
		set("artifact."+l.key, text)
	}
	if e.packagesOn != "" {
		set("artifact.packages_on", e.packagesOn)
	}
	if e.jobs > 0 {
		set("download.parallel", e.jobs)
	}
	rate, err := parseSize("--rate", e.rate)
	if rate > 0 {
		set("download.rate", rate)
	}
	return sets, err
}

// vars returns the variable artifact_export of the playbook.
func (e *exporting) vars() (*value.Dict, error) {
	var problems []error
	problem := func(err error) { problems = append(problems, err) }
	var err error
	for _, path := range []*string{&e.output, &e.from} {
		if *path != "" {
			*path, err = filepath.Abs(*path)
			problem(err)
		}
	}
	size, err := parseSize("--split", e.split)
	problem(err)
	parts, err := exportParts(e.only, e.except)
	problem(err)
	files, err := extraFiles(e.files)
	problem(err)
	programs, err := builds(e.programs)
	problem(err)
	return value.NewDict("output", e.output, "architectures", value.Of(e.arches), "parts", value.Of(parts), "files", files,
		"programs", programs, "base", e.from, "split", int(size), "sbom", !e.noSBOM, "plan", e.plan), errors.Join(problems...)
}

// allParts are the kinds of what is exported.
var allParts = []string{"files", "charts", "images", "packages"}

// exportParts returns the kinds that --only and --except select.
func exportParts(only, except []string) ([]string, error) {
	for flag, list := range map[string][]string{"--only": only, "--except": except} {
		for _, part := range list {
			if !slices.Contains(allParts, part) {
				return nil, usage("%s %s: unknown kind; write %s", flag, part, strings.Join(allParts, ", "))
			}
		}
	}
	parts := only
	if len(parts) == 0 {
		parts = allParts
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return slices.Contains(except, p) })
	if len(parts) == 0 {
		return nil, usage("--only and --except leave nothing to export")
	}
	return parts, nil
}

var sha256Pattern = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// extraFiles reads URL=SHA256. User and password in a URL are for fetching; they are not in the offline file.
func extraFiles(texts []string) ([]any, error) {
	out := []any{}
	for _, text := range texts {
		i := strings.LastIndex(text, "=")
		if i < 0 || !sha256Pattern.MatchString(text[i+1:]) {
			return nil, usage("--file %s: write URL=SHA256, with the 64 hexadecimal digits of the file's sha256", text)
		}
		address, err := url.Parse(text[:i])
		if err != nil || address.Host == "" || path.Base(address.Path) == "/" || path.Base(address.Path) == "." {
			return nil, usage("--file %s: %q is not the URL of a file", text, text[:i])
		}
		file, upstream := path.Join("extra", address.Host, path.Clean("/"+address.Path)), text[:i]
		if address.User != nil {
			address.User = nil
			upstream = address.String()
		}
		out = append(out, value.NewDict("name", path.Base(file), "version", "", "file", file, "url", text[:i],
			"upstream", upstream, "sha256", strings.ToLower(text[i+1:]), "path", ""))
	}
	return out, nil
}

// builds lists programs of kk with their architectures: this one if none is named.
func builds(programs []string) ([]any, error) {
	out := []any{}
	switch {
	case slices.Equal(programs, []string{"none"}), len(programs) == 0 && runtime.GOOS != "linux":
		return out, nil
	case len(programs) == 0:
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w; name it with --kk, or write --kk none", err)
		}
		programs = []string{self}
	}
	for _, p := range programs {
		f, err := elf.Open(p)
		if err != nil {
			return nil, usage("--kk %s: not a program for Linux: %s", p, err)
		}
		arch, known := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
		_ = f.Close() // only read
		if !known {
			return nil, usage("--kk %s: it is for %s; hosts are amd64 or arm64", p, f.Machine)
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		out = append(out, value.NewDict("path", abs, "arch", arch))
	}
	return out, nil
}

// exportFlags adds those flags of a run that matter without hosts. -o is the file here.
func exportFlags(r *runFlags, f *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	r.flags(all)
	hosts := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(connectFlags).flags(hosts)
	others := []string{"limit", "tags", "skip-tags", "forks", "force-handlers", "start-at-task", "resume", "step",
		"flush-cache", "list-hosts", "list-tasks", "list-tags", "syntax-check", "diff"}
	all.VisitAll(func(flag *pflag.Flag) {
		switch {
		case hosts.Lookup(flag.Name) != nil || slices.Contains(others, flag.Name):
			return
		case flag.Name == "output":
			flag.Name, flag.Shorthand = "format", ""
		}
		f.AddFlag(flag)
	})
}
