package kube

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/value"
)

// requirement is one of a label selector's: that a label is there, or is not,
// and is one of some values, or none of them.
type requirement struct {
	key    string
	absent bool     // the label is not there; with values: or is none of them
	values []string // nil: any
}

var (
	selectorEqual = regexp.MustCompile(`^([^!=\s]+)\s*(=|==|!=)\s*([^!=\s()]*)$`)
	selectorSet   = regexp.MustCompile(`^([^!=\s]+)\s+(in|notin)\s*\(([^()]*)\)$`)
	selectorKey   = regexp.MustCompile(`^(!?)\s*([^!=\s()]+)$`)
	// selectorPart ends at a comma where no parenthesis is open.
	selectorPart = regexp.MustCompile(`(?:\([^)]*\)?|[^,(])+`)
)

// requirements reads label selectors, as kubectl takes them with --selector.
func requirements(selectors []string) ([]requirement, error) {
	var all []requirement
	for _, selector := range selectors {
		for _, part := range selectorPart.FindAllString(selector, -1) {
			part = strings.TrimSpace(part)
			if m := selectorEqual.FindStringSubmatch(part); m != nil {
				all = append(all, requirement{m[1], m[2] == "!=", []string{m[3]}})
			} else if m := selectorSet.FindStringSubmatch(part); m != nil {
				values := strings.Split(m[3], ",")
				for i := range values {
					values[i] = strings.TrimSpace(values[i])
				}
				all = append(all, requirement{m[1], m[2] == "notin", values})
			} else if m := selectorKey.FindStringSubmatch(part); m != nil {
				all = append(all, requirement{m[2], m[1] == "!", nil})
			} else {
				return nil, fmt.Errorf("label_selectors: %q is not one: give app=web, app!=web, app in (a, b), app notin (a, "+
					"b), app or !app", part)
			}
		}
	}
	return all, nil
}

// met reports whether the object has such labels.
func (r requirement) met(o object) bool {
	labels, _ := o.at("metadata", "labels").(*value.Dict)
	v, there := labels.Get(r.key)
	fits := there && (r.values == nil || slices.Contains(r.values, value.Str(v)))
	return fits != r.absent
}

// meant reports whether the object meets all requirements.
func meant(o object, all []requirement) bool {
	return !slices.ContainsFunc(all, func(r requirement) bool { return !r.met(o) })
}
