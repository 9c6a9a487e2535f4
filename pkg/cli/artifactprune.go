package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/cache"
	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// pruneFlags are those of kk artifact prune.
type pruneFlags struct {
	inputs
	keep   []string
	older  string
	check  bool
	yes    bool
	output string
}

// artifactPruneCommand returns the command that makes the cache smaller.
func (a *app) artifactPruneCommand() *cobra.Command {
	in := &pruneFlags{}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove from the cache what no offline file and no config needs",
		Long: "Remove from the cache in the work folder what no offline file (--keep) and not the config (-c, --set, -i) " +
			"needs: binaries, charts, images, packages. For the config everything is kept that the catalog has for its " +
			"versions, on all architectures, and the packages of artifact.distributions. What is removed is fetched again " +
			"when it is needed.\n\n" +
			"Files that another run is writing are left alone. Do not run it during an export: that may be reading what is " +
			"removed.",
		Example: `  kk artifact prune -c config.yaml --keep kubernetes.tar --check
  kk artifact prune --older 30d --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := textOrJSON("--output", in.output); err != nil {
				return err
			}
			return a.prune(cmd.Context(), in)
		},
	}
	f := cmd.Flags()
	in.flags(f)
	f.StringArrayVar(&in.keep, "keep", nil, "offline file whose contents are kept; may be repeated")
	f.StringVar(&in.older, "older", "", "remove only what was not used for this long: 12h, 30d")
	f.BoolVarP(&in.check, "check", "C", false, "only show what would be removed")
	f.BoolVarP(&in.yes, flagYes, "y", false, "do not ask")
	outputFlag(f, &in.output)
	return cmd
}

// namesConfig reports whether the flags name a config.
func (in *pruneFlags) namesConfig() bool {
	return len(in.configs)+len(in.sets)+len(in.inventories)+len(in.extra) > 0
}

func (a *app) prune(ctx context.Context, in *pruneFlags) error {
	if !in.namesConfig() && len(in.keep) == 0 && in.older == "" {
		return usage("specify what to keep: -c CONFIG, --keep FILE, or --older 30d; --older 0 removes everything")
	}
	before, err := in.before(time.Now())
	if err != nil {
		return err
	}
	dir, err := workDir(in.workdir)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, cacheFolder)
	need := cache.Needed{Files: map[string]bool{}, Digests: map[string]bool{}, Images: map[string]bool{},
		Distributions: map[string]bool{}}
	if err := keepFiles(need, in.keep); err != nil {
		return &exitError{engine.ExitInput, err}
	}
	if in.namesConfig() {
		if err := a.keepConfig(ctx, need, &in.inputs, dir); err != nil {
			return err
		}
	}
	plan, err := cache.Find(ctx, dir, need, before)
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	return a.pruneAs(ctx, in, plan)
}

// before returns the time after which something must have been used to be kept.
func (in *pruneFlags) before(now time.Time) (time.Time, error) {
	if in.older == "" {
		return now.AddDate(100, 0, 0), nil // also what has a time in the future
	}
	age, err := parseAge(in.older)
	if err != nil {
		return now, usage("--older %q is not a length of time: write 12h or 30d", in.older)
	}
	return now.Add(-age), nil
}

// parseAge reads a duration, or a number of days up to a century: 30d.
func parseAge(text string) (time.Duration, error) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 64)
		if err == nil && days > 36500 {
			err = strconv.ErrRange
		}
		return time.Duration(days) * 24 * time.Hour, err
	}
	age, err := time.ParseDuration(text)
	if err == nil && age < 0 {
		err = strconv.ErrRange
	}
	return age, err
}

// keepFiles adds the contents of offline files.
func keepFiles(need cache.Needed, paths []string) error {
	set, err := artifact.OpenSet(paths)
	if err != nil {
		return err
	}
	for _, f := range set {
		for _, i := range f.Manifest.Items {
			if i.Kind == artifact.KindImage {
				need.Images[i.Name] = true
				continue
			}
			need.Files[i.File] = true
			need.Digests[i.SHA256] = true
		}
	}
	return set.Close()
}

// keepConfig adds what the catalog has for each version of Kubernetes of a config: files for all architectures, charts,
// images; and the images and distributions that the config adds.
func (a *app) keepConfig(ctx context.Context, need cache.Needed, in *inputs, dir string) error {
	s, v, err := a.catalogView(ctx, in)
	if err != nil {
		return err
	}
	const everything = `{
		"files": (artifact.catalogs | map(attribute="components") | map("dict2items") | flatten(1)
			| map(attribute="value.arch") | map("dict2items") | flatten(1) | map(attribute="value") | list)
			+ (artifact.catalogs | map(attribute="charts") | map("dict2items") | flatten(1) | map(attribute="value") | list),
		"images": (artifact.catalogs | map(attribute="images") | map("dict2items") | flatten(1)
			| map(attribute="value.upstream") | list) + artifact.images,
		"distributions": artifact.distributions}`
	at := source.Pos{File: source.NewFile("expression", []byte(everything)), Line: 1, Col: 1}
	got, err := evaluate(ctx, s.templates, v, everything, at)
	if err != nil {
		return evalError(err)
	}
	return keepValue(ctx, need, got, dir)
}

// keepValue adds files and images of the catalog. The digest of a file that the catalog has none of is computed.
func keepValue(ctx context.Context, need cache.Needed, got any, dir string) error {
	text, err := value.JSON(got, value.JSONOptions{})
	if err != nil {
		return err
	}
	var known struct {
		Files []struct {
			File   string `json:"file"`
			SHA256 string `json:"sha256"`
		} `json:"files"`
		Images        []string `json:"images"`
		Distributions []string `json:"distributions"`
	}
	if err := json.Unmarshal([]byte(text), &known); err != nil {
		return err
	}
	for _, f := range known.Files {
		if f.File == "" {
			continue
		}
		need.Files[f.File] = true
		if f.SHA256 == "" {
			_, f.SHA256, err = artifact.Sum(ctx, filepath.Join(dir, filepath.FromSlash(f.File)))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return &exitError{engine.ExitError, err}
			}
		}
		need.Digests[f.SHA256] = true
	}
	for _, ref := range known.Images {
		need.Images[ref] = true
	}
	for _, name := range known.Distributions {
		need.Distributions[name] = true
	}
	return nil
}

// pruneAs shows the plan, and carries it out if that is confirmed.
func (a *app) pruneAs(ctx context.Context, in *pruneFlags, plan *cache.Plan) error {
	if in.output == "text" {
		a.showPrune(plan)
	}
	removes := !in.check && len(plan.Entries) > 0
	if removes && !in.yes {
		answer, ok, err := a.askPerson(ctx, "Remove them? (yes/no) ", true)
		switch {
		case err != nil:
			return err
		case !ok:
			return usage("there is no terminal to ask at: set --yes to remove them, or --check to see only")
		case strings.ToLower(strings.TrimSpace(answer)) != "yes":
			return &exitError{engine.ExitError, errors.New("nothing was removed: the answer was not yes")}
		}
	}
	if removes {
		if err := plan.Remove(ctx); err != nil {
			return &exitError{engine.ExitError, err}
		}
	}
	if in.output == "json" {
		return a.pruneJSON(plan, removes)
	}
	if removes {
		a.row("removed %d bytes", plan.Bytes())
	}
	return nil
}

func (a *app) showPrune(plan *cache.Plan) {
	for _, e := range plan.Entries {
		a.row("%s %s, %d bytes", e.Kind, e.Name, e.Size)
	}
	a.row("%d things that nothing needs, %d bytes", len(plan.Entries), plan.Bytes())
}

func (a *app) pruneJSON(plan *cache.Plan, removed bool) error {
	entries := plan.Entries
	if entries == nil {
		entries = []cache.Entry{}
	}
	text, err := json.Marshal(map[string]any{"removed": removed, "bytes": plan.Bytes(), "entries": entries})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.data(), string(text))
	return err
}
