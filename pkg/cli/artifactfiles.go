package cli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/artifact"
	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

// offlineFiles are the offline files that a command reads: its arguments, and those of -a.
type offlineFiles struct{ more []string }

func (o *offlineFiles) flag(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.more, "artifact", "a", nil,
		"further offline file, such as the base of a delta; may be repeated")
}

// paths returns the arguments and the values of -a.
func (o *offlineFiles) paths(cmd *cobra.Command, args []string) ([]string, error) {
	all := append(args[:len(args):len(args)], o.more...)
	if len(all) == 0 {
		return nil, usage("specify an offline file: %s kubernetes.tar", cmd.CommandPath())
	}
	return all, nil
}

// badFile returns the error of a file that is not accepted: exit code 4.
func badFile(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{engine.ExitInput, err}
}

// outputFlag adds -o of commands that print text or JSON.
func outputFlag(f *pflag.FlagSet, format *string) {
	f.StringVarP(format, "output", "o", "text", "text or json")
}

func textOrJSON(flag, format string) error { return oneOf(flag, format, "text", "json") }

// writeJSON prints a value as indented JSON.
func writeJSON[T any](a *app, v T) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.data().Write(append(text, '\n'))
	return err
}

// flatten lists joined errors one by one.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

var sizePattern = regexp.MustCompile(`(?i)^(\d+)([kmgt]?)(i?b)?$`)

// parseSize reads a size such as 4000M or 4G, with units of 1024.
func parseSize(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, usage("%s %q is not a size: write 4000M or 4G", flag, text)
	}
	n, err := strconv.ParseInt(m[1], 10, 40)
	shift := 10 * (strings.Index("kmgt", strings.ToLower(m[2])) + 1)
	if m[2] == "" {
		shift = 0
	}
	if err != nil || n == 0 || n<<shift>>shift != n {
		return 0, usage("%s %q is out of range: write 4000M or 4G", flag, text)
	}
	return n << shift, nil
}

// writeFlags are those of commands that write an offline file.
type writeFlags struct{ output, split, format string }

func (w *writeFlags) flags(f *pflag.FlagSet) {
	f.StringVarP(&w.output, "output", "o", "", "path of the offline file to write (required)")
	f.StringVar(&w.split, "split", "", "write FILE.001, FILE.002 and so on, of at most this size: 4000M, 4G")
	f.StringVar(&w.format, "format", "text", "text or json")
}

// parse returns the path to write and how.
func (w *writeFlags) parse(cmd *cobra.Command) (string, artifact.Options, error) {
	if w.output == "" {
		return "", artifact.Options{}, usage("%s needs the file to write: -o FILE", cmd.CommandPath())
	}
	if err := textOrJSON("--format", w.format); err != nil {
		return "", artifact.Options{}, err
	}
	split, err := parseSize("--split", w.split)
	if err != nil {
		return "", artifact.Options{}, err
	}
	path, err := filepath.Abs(w.output)
	return path, artifact.Options{Split: split}, err
}

// written is what a command reports that wrote an offline file.
type written struct {
	File     string `json:"file"`
	Changed  bool   `json:"changed"` // false if the file was there already with these contents
	Manifest string `json:"manifest"`
	Items    int    `json:"items"`
	Bytes    int64  `json:"bytes"` // size of the file, all parts together
}

// reportWritten prints what was written.
func (a *app) reportWritten(w *writeFlags, path string, changed bool) error {
	f, err := artifact.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	report := written{w.output, changed, f.Digest(), len(f.Manifest.Items), f.Size()}
	if w.format == "json" {
		return writeJSON(a, report)
	}
	verb := "wrote"
	if !changed {
		verb = "unchanged:"
	}
	a.row("%s %s: %d items, %s", verb, w.output, report.Items, ui.Size(report.Bytes))
	return nil
}

// readSmall reads a small file, such as a key.
func (a *app) readSmall(path string) ([]byte, error) {
	return a.tree.Raw().Read(path, source.MaxSecret)
}
