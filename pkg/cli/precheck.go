package cli

import (
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/engine"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
)

const precheckPlaybook = source.Builtin + "/playbooks/precheck.yaml"

func (a *app) precheckCommand() *cobra.Command {
	r := &runFlags{}
	cmd := &cobra.Command{
		Use:   "precheck [CHECK...]",
		Short: "Check whether hosts are ready for a cluster",
		Long: "Check whether hosts are ready for a cluster. The checks change nothing; your own scripts in scripts/ of " +
			"the work folder run before and after them. All findings on all hosts are listed, with the requirement and how " +
			"to fix each. " +
			"Checks are selected by tag, for example: kk precheck os network. Without an inventory this machine is checked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := a.checkTags(cmd, r, args); err != nil {
					return err
				}
				r.tags = append(r.tags, args...)
			}
			return a.runPlaybooks(cmd.Context(), r, []string{precheckPlaybook})
		},
	}
	r.flags(cmd.Flags())
	r.artifactFlag(cmd.Flags())
	return cmd
}

// checkTags rejects unknown checks: their tags would select nothing.
func (a *app) checkTags(cmd *cobra.Command, r *runFlags, names []string) error {
	s, err := a.open(cmd.Context(), &r.inputs)
	if err != nil {
		return err
	}
	books, _, err := a.load(s, project.Selection{Tags: []string{"all", "never"}}, []string{precheckPlaybook})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, pb := range books {
		for _, p := range pb.Plays {
			for _, t := range engine.Tasks(p) {
				for _, tag := range t.Attrs.Tags {
					known[tag] = true
				}
			}
		}
	}
	delete(known, "always")
	delete(known, "never")
	var list []string
	for k := range known {
		list = append(list, k)
	}
	sort.Strings(list)
	for _, n := range names {
		if !known[n] {
			return usage("unknown check %q: choose from %s", n, strings.Join(list, ", "))
		}
	}
	return nil
}
