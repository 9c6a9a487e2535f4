package settings

import (
	"maps"
	"slices"
	"strings"

	"kubekey/pkg/source"
)

// environ reads KK_* and, with lower precedence, ANSIBLE_*.
func (r *reader) environ() {
	known := map[string]bool{"KK_CONFIG": true}
	for _, s := range r.table {
		for i, name := range append([]string{s.OwnEnv()}, s.Env...) {
			known[name] = true
			if text, ok := r.env[name]; ok {
				r.add(s, candidate{raw: text, origin: "environment variable " + name, theirs: i > 0})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		if !known[name] {
			r.strange(name, known)
		}
	}
}

// strange warns about unknown variables. KK_ variables may belong to tests or to others, so only
// likely typing errors are reported.
func (r *reader) strange(name string, known map[string]bool) {
	if short, ok := strings.CutPrefix(name, "KK_"); ok {
		var own []string
		for k := range known {
			if k, ok := strings.CutPrefix(k, "KK_"); ok {
				own = append(own, k)
			}
		}
		if near := source.Nearest(short, own); near != "" {
			r.ds.Add(source.Warningf(source.Pos{}, "kk does not know the environment variable %s", name).
				WithHelp("did you mean KK_%s?", near))
		}
		return
	}
	if !strings.HasPrefix(name, "ANSIBLE_") || quiet(name) || fixedBy(r.env[name],
		func(f fixed) bool { return f.env == name }) {
		return
	}
	r.ds.Add(source.Warningf(source.Pos{}, "environment variable %s is ignored: kk has no such setting", name).
		WithHelp("%s", instead(name)))
}
