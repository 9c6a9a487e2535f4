package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/signature"
	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
	"kubekey/pkg/value"
)

// verifying are the flags of `kk artifact verify`.
type verifying struct {
	files          offlineFiles
	quick          bool
	allowedSigners string
	output         string
	run            runFlags // of the check whether a config is covered
	arches         []string
}

// artifactVerifyCommand returns the command that verifies offline files.
func (a *app) artifactVerifyCommand() *cobra.Command {
	v := &verifying{}
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Verify offline files: every byte, and who signed them",
		Long: "Verify offline files: the digest of every item, that the file has what its manifest lists and nothing " +
			"else, and that images have what their indexes list. All problems are reported. With --allowed-signers every " +
			"file must have a valid signature by a key in that file. The exit code is 4 if a file is not accepted.\n\n" +
			"With a config, -c or --set, everything that it needs must be in the files too, for the architectures that they " +
			"were made for, or those of --arch. That part runs playbooks/artifact_covers.yaml. Packages depend on the hosts: " +
			"`kk precheck -a FILE` checks them.",
		Example: `  kk artifact verify kubernetes.tar --allowed-signers allowed_signers
  kk artifact verify base.tar delta.tar --quick
  kk artifact verify kubernetes.tar -c config.yaml -i inventory.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := v.files.paths(cmd, args)
			if err != nil {
				return err
			}
			err = a.verifyArtifacts(cmd.Context(), v, paths)
			if err != nil || len(v.run.configs) == 0 && len(v.run.sets) == 0 {
				return err
			}
			return a.verifyCovers(cmd.Context(), v, paths)
		},
	}
	f := cmd.Flags()
	v.files.flag(f)
	f.BoolVar(&v.quick, "quick", false,
		"only check the manifest and that its items are in their places; read none of them")
	f.StringVar(&v.allowedSigners, "allowed-signers", "",
		"file with the keys that may sign, in the format of ssh-keygen (ALLOWED SIGNERS)")
	f.StringSliceVar(&v.arches, "arch", nil, "architectures of the hosts of the config (default: those of the files)")
	exportFlags(&v.run, f)
	f.Lookup("format").Usage = "how to print the check of a config: " + f.Lookup("format").Usage
	outputFlag(f, &v.output)
	return cmd
}

// verifyCovers checks that files have everything that a config needs.
func (a *app) verifyCovers(ctx context.Context, v *verifying, paths []string) error {
	set, err := artifact.OpenSet(paths)
	if err != nil {
		return badFile(err)
	}
	for _, f := range set {
		if len(v.arches) == 0 {
			v.arches = append(v.arches, f.Manifest.Covers.Architectures...)
		}
	}
	if err := set.Close(); err != nil {
		return err
	}
	v.run.artifacts = paths
	v.run.extraVars(value.NewDict("artifact_covers", value.NewDict("architectures", value.Of(v.arches))))
	return a.runPlaybooks(ctx, &v.run, []string{source.Builtin + "/playbooks/artifact_covers.yaml"})
}

// verified is the JSON of `kk artifact verify`.
type verified struct {
	OK       bool           `json:"ok"`
	Files    []verifiedFile `json:"files"`
	Problems []string       `json:"problems"`
}

type verifiedFile struct {
	File       string `json:"file"`
	Manifest   string `json:"manifest"` // digest
	Items      int    `json:"items"`
	Bytes      int64  `json:"bytes"`
	Signatures int    `json:"signatures"`
	SignedBy   string `json:"signed_by,omitempty"` // principal, with --allowed-signers
}

func (a *app) verifyArtifacts(ctx context.Context, v *verifying, paths []string) error {
	if err := textOrJSON("--output", v.output); err != nil {
		return err
	}
	allowed, err := a.allowedSigners(v.allowedSigners)
	if err != nil {
		return badFile(err)
	}
	report, err := verifyFiles(ctx, v.quick, allowed, paths)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, problem := range flatten(err) {
		report.Problems = append(report.Problems, problem.Error())
	}
	report.OK = err == nil
	if v.output == "json" {
		if err := writeJSON(a, report); err != nil || report.OK {
			return err
		}
		return exit(engine.ExitInput)
	}
	for _, f := range report.Files {
		if report.OK {
			a.row("%s: %d items, %s%s", f.File, f.Items, ui.Size(f.Bytes), signed(f))
		}
	}
	return badFile(err)
}

// signed describes the signatures of a file.
func signed(f verifiedFile) string {
	switch {
	case f.SignedBy != "":
		return ", signed by " + f.SignedBy
	case f.Signatures > 0:
		return fmt.Sprintf(", %d signatures that were not verified (--allowed-signers)", f.Signatures)
	}
	return ", not signed"
}

// allowedSigners reads who may sign; nil without a file.
func (a *app) allowedSigners(path string) (*signature.Allowed, error) {
	if path == "" {
		return nil, nil
	}
	text, err := a.readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("read who may sign: %w", err)
	}
	return signature.ParseAllowed(path, text)
}

func verifyFiles(ctx context.Context, quick bool, allowed *signature.Allowed, paths []string) (verified, error) {
	report := verified{Files: []verifiedFile{}, Problems: []string{}}
	set, err := artifact.OpenSet(paths)
	if err != nil {
		return report, err
	}
	defer func() { _ = set.Close() }() // only read
	var problems []error
	for _, f := range set {
		one := verifiedFile{File: f.Path, Manifest: f.Digest(), Items: len(f.Manifest.Items), Bytes: f.Size()}
		signatures, err := f.Signatures()
		if err == nil && allowed != nil {
			one.SignedBy, err = signature.Verify(f.ManifestBytes(), signatures, allowed, time.Now())
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", f.Path, err))
		}
		one.Signatures = len(signatures)
		report.Files = append(report.Files, one)
	}
	if !quick {
		return report, errors.Join(append(problems, set.Verify(ctx, nil))...)
	}
	for _, f := range set {
		problems = append(problems, f.Check())
	}
	return report, errors.Join(problems...)
}
