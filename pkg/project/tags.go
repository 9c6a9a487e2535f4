package project

import "slices"

// Selection is the set of tasks to run, as selected by --tags and --skip-tags. The zero value runs all tasks except
// those tagged never.
type Selection struct{ Tags, Skip []string }

// Runs reports whether a task with these tags runs.
func (s Selection) Runs(tags []string) bool {
	only := s.Tags
	if len(only) == 0 {
		only = []string{"all"}
	}
	return selected(tags, only) && !s.skipped(tags)
}

func selected(tags, only []string) bool {
	never := slices.Contains(tags, "never")
	switch {
	case slices.Contains(tags, "always") && !never:
		return true
	case intersects(tags, only):
		return true
	case slices.Contains(only, "all") && !never:
		return true
	case slices.Contains(only, "tagged") && len(tags) > 0 && !never:
		return true
	case slices.Contains(only, "untagged") && len(tags) == 0:
		return true
	}
	return slices.Contains(tags, "always") && slices.Contains(only, "always")
}

func (s Selection) skipped(tags []string) bool {
	always := slices.Contains(tags, "always")
	switch {
	case slices.Contains(s.Skip, "all"):
		return !always || slices.Contains(s.Skip, "always")
	case intersects(tags, s.Skip):
		return true
	case slices.Contains(s.Skip, "tagged") && len(tags) > 0:
		return true
	}
	return slices.Contains(s.Skip, "untagged") && len(tags) == 0
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(t string) bool { return slices.Contains(b, t) })
}
