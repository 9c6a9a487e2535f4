package catalog

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"kubekey/pkg/source"
)

var minorPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// isMinor reports whether text is a minor release: "1.34".
func isMinor(text string) bool { return minorPattern.MatchString(text) }

// isSeries reports whether text requests the newest version of a series: "2.2.x".
func isSeries(text string) bool { return strings.HasSuffix(text, ".x") }

// minorOf is "1.34" for "v1.34.4", and "" for text that is not a version.
func minorOf(version string) string {
	v, err := semver.NewVersion(version)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", v.Major(), v.Minor())
}

// Sort sorts versions oldest first, in place; invalid versions come before all others.
func Sort(versions []string) []string {
	parsed := make(map[string]*semver.Version, len(versions))
	for _, v := range versions {
		parsed[v], _ = semver.NewVersion(v)
	}
	slices.SortFunc(versions, func(a, b string) int {
		x, y := parsed[a], parsed[b]
		switch {
		case x == nil && y == nil:
			return strings.Compare(a, b)
		case x == nil:
			return -1
		case y == nil:
			return 1
		}
		return cmp.Or(x.Compare(y), strings.Compare(a, b))
	})
	return versions
}

// newest is the version that text selects: the newest of a series, else text itself. It is an
// error if the catalog should have a digest of it and does not.
func (c *Catalog) newest(name, text string) (string, error) {
	if !isSeries(text) {
		if c.sums[name] != nil && c.sums[name][text] == nil {
			return "", fmt.Errorf("%s %s is not in the catalog", name, text)
		}
		return text, nil
	}
	series, err := semver.NewConstraint(strings.TrimPrefix(text, "v"))
	if err != nil {
		return "", fmt.Errorf("%q is not a series of versions: %w", text, err)
	}
	var best *semver.Version
	found := ""
	for known := range c.sums[name] {
		v, err := semver.NewVersion(known)
		if err == nil && series.Check(v) && (best == nil || v.GreaterThan(best)) {
			best, found = v, known
		}
	}
	if found != "" {
		return found, nil
	}
	return "", fmt.Errorf("the catalog has no %s of the series %s", name, text)
}

// nearestHelp suggests versions close to one that is not in the catalog.
func (c *Catalog) nearestHelp(name, version string) string {
	return nearestHelp(version, c.known(name))
}

// nearestHelp names the known versions, oldest first, that are closest to version.
func nearestHelp(version string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	newest := known[len(known)-1]
	if slices.Contains(known, "v"+version) {
		return fmt.Sprintf("did you mean %q?", "v"+version)
	}
	requested, err := semver.NewVersion(strings.TrimSuffix(version, ".x"))
	if err != nil {
		return cmp.Or(source.DidYouMean(version, known), "the newest is "+newest)
	}
	near := neighbours(requested, known)
	if !slices.Contains(near, newest) {
		return fmt.Sprintf("the nearest are %s; the newest is %s", strings.Join(near, " and "), newest)
	}
	if len(near) == 1 {
		return fmt.Sprintf("the nearest is %s", newest)
	}
	return fmt.Sprintf("the nearest are %s", strings.Join(near, " and "))
}

// neighbours are the known versions just below and just above one.
func neighbours(requested *semver.Version, known []string) (near []string) {
	i := slices.IndexFunc(known, func(k string) bool {
		v, err := semver.NewVersion(k)
		return err == nil && v.GreaterThan(requested)
	})
	if i < 0 {
		i = len(known)
	}
	if i > 0 {
		near = append(near, known[i-1])
	}
	if i < len(known) {
		near = append(near, known[i])
	}
	return near
}
