package general

import (
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
)

// node is a host whose npm prints the given list of packages, and the given outdated ones.
func node(t *testing.T, list, outdated string) *moduletest.StandIns {
	return moduletest.NewStandIns(t, map[string]string{"npm": `case $1 in
list) printf '%s' '` + list + `'; echo "npm ERR! missing: x" >&2; exit 1 ;;
outdated) printf '%s' '` + outdated + `'; exit 1 ;;
*) case "$*" in *nosuch*) echo "npm ERR! 404" >&2; exit 1 ;; esac ;;
esac`})
}

func TestNPM(t *testing.T) {
	const listed = `{"dependencies": {"here": {"version": "1.2.0", "extraneous": false}}}`
	const lacking = `{"dependencies": {"here": {"version": "1.2.0"}, "x": {"missing": true, "required": "1"}}, "error": {"code": "ELSPROBLEMS"}}`
	const invalid = `{"dependencies": {"here": {"version": "1.2.0", "invalid": "\"2\" from the root project"}}}`
	const newer = `{"here": {"current": "1.2.0", "wanted": "1.3.0", "latest": "2.0.0"}}`
	const held = `{"here": {"current": "1.2.0", "wanted": "1.2.0", "latest": "2.0.0"}}`
	for _, c := range []struct {
		list, outdated string
		args           []any
		ran            string // the last call, "" if nothing changes
	}{
		{listed, "", []any{"name", "here"}, ""},
		{listed, "", []any{"name", "here", "version", "1.2.0"}, ""},
		{listed, "", []any{"name", "here", "version", "1.3.0"}, "npm install here@1.3.0"},
		{listed, "", []any{"name", "new", "global", true, "registry", "http://r", "ignore_scripts", true},
			"npm install new --global --ignore-scripts --registry=http://r"},
		{listed, "", nil, ""},
		{"{}", "", nil, ""},
		{lacking, "", []any{"production", true, "no_optional", true}, "npm install --production --no-optional"},
		{invalid, "", nil, "npm install"},
		{listed, newer, []any{"name", "here", "state", "latest"}, "npm update here"},
		{listed, held, []any{"name", "here", "state", "latest"}, ""},
		{listed, "{}", []any{"state", "latest"}, ""},
		{listed, "", []any{"name", "new", "state", "latest"}, "npm install new"},
		{listed, "", []any{"name", "here", "version", "1.2.0", "state", "absent"}, "npm uninstall here"},
		{listed, "", []any{"name", "gone", "state", "absent"}, ""},
		{"", "", []any{"ci", true, "name", "here"}, "npm ci"},
	} {
		for _, check := range []bool{true, false} {
			h := node(t, c.list, c.outdated)
			r := run(t, "npm", moduletest.Options{Conn: h, Check: check}, append([]any{"path", h.Dir}, c.args...)...)
			last := ""
			for _, call := range strings.Split(strings.TrimSpace(h.Calls()), "\n") {
				if !strings.HasPrefix(call, "npm list") && !strings.HasPrefix(call, "npm outdated") {
					last = call
				}
			}
			want := c.ran
			if check {
				want = ""
			}
			if r.Changed != (c.ran != "") || last != want {
				t.Errorf("%v (check: %v): changed %v, ran %q, want %q", c.args, check, r.Changed, last, want)
			}
		}
	}
}

func TestNPMThatFails(t *testing.T) {
	for text, args := range map[string][]any{
		"path must be specified":                  {"name", "x"},
		"only available for named packages":       {"path", "/", "state", "absent"},
		"npm ERR! 404":                            {"name", "nosuch", "global", true},
		"request to http://r failed":              {"name", "here", "global", true, "state", "latest"},
		`must be the name of a package, got "-x"`: {"name", "-x", "global", true},
	} {
		h := node(t, `{"dependencies": {"here": {"version": "1"}}}`,
			`{"error": {"code": "ECONNREFUSED", "summary": "request to http://r failed"}}`)
		fails(t, text, "npm", moduletest.Options{Conn: h}, args...)
	}
	fails(t, "read the output of npm list", "npm", moduletest.Options{Conn: node(t, "oops", "")}, "global", true)
}

// A missing folder is created. On a host without npm, check mode assumes that an earlier task would install it.
func TestNPMNotThereYet(t *testing.T) {
	h := node(t, "{}", "")
	folder := filepath.Join(h.Dir, "new")
	for _, check := range []bool{true, false} {
		if r := run(t, "npm", moduletest.Options{Conn: h, Check: check}, "path", folder); !r.Changed {
			t.Errorf("check %v: %+v", check, r)
		}
		made := !check
		if found, err := filepath.Glob(folder); err != nil || len(found) == 1 != made {
			t.Errorf("check %v: the folder is there: %v", check, found)
		}
	}
	bare := moduletest.NewStandIns(t, nil)
	fails(t, "Failed to find required executable", "npm", moduletest.Options{Conn: bare}, "name", "x", "global", true)
	if r := run(t, "npm", moduletest.Options{Conn: bare, Check: true}, "name", "x", "global", true); !r.Changed ||
		len(r.Warnings) == 0 {
		t.Errorf("got %+v", r)
	}
}
