package inventory

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

const patternHosts = `[web]
w1
w2
w3
w10.example.org
[db]
d1
w2
[empty]
[site:children]
db
web
[v6]
2001:db8::1
`

func fromINI(t testing.TB, text string) *Inventory {
	l := newLoader(context.Background(), Options{Dir: "/"})
	l.ini(source.NewFile("hosts", []byte(text)), "/hosts")
	l.finish()
	if err := l.ds.Err(); err != nil {
		t.Fatal(err)
	}
	return l.inv
}

func TestMatch(t *testing.T) {
	inv := fromINI(t, patternHosts)
	cases := []struct{ pattern, want, unmatched string }{
		{"all", "2001:db8::1 d1 w2 w1 w3 w10.example.org", ""},
		{"*", "2001:db8::1 d1 w2 w1 w3 w10.example.org", ""},
		{"web", "w1 w2 w3 w10.example.org", ""},
		{"db:web", "d1 w2 w1 w3 w10.example.org", ""},
		{"web,db", "w1 w2 w3 w10.example.org d1", ""},
		{"d1 w3", "d1 w3", ""},
		{"web\n  !w2, d1", "w1 w3 w10.example.org d1", ""},
		{"!db:web", "w1 w3 w10.example.org", ""},
		{"&db:web", "w2", ""},
		{"web:&db:!w2", "", ""},
		{"!web", "2001:db8::1 d1", ""},
		{"&db", "d1 w2", ""},
		{"w?", "w2 w1 w3", ""},
		{"w[12]*", "w2 w1 w10.example.org", ""},
		{"w[!1]", "w2 w3", ""},
		{"*.example.org", "w10.example.org", ""},
		{"~w[13]$", "w1 w3", ""},
		{"~(?!w)d\\d", "d1", ""},
		{"~w{,1}[13]\\Z", "w1 w3", ""},
		{"~1", "", "~1"},
		{"~w\\d{1,2}$,d1", "w2 w1 w3 d1", ""},
		{"web[0]", "w1", ""},
		{"web[-1]", "w10.example.org", ""},
		{"web[-9]", "", ""},
		{"web[1:2]", "w2 w3", ""},
		{"web[1-2]", "w2 w3", ""},
		{"web[2:]", "w3 w10.example.org", ""},
		{"web[1:99]", "w2 w3 w10.example.org", ""},
		{"web[7]", "", ""},
		{"empty", "", ""},
		{"empty[0]", "", ""},
		{"2001:db8::1", "2001:db8::1", ""},
		{"d1:2001", "d1", "2001"},
		{"localhost", "localhost", ""},
		{"::1", "::1", ""},
		{"wbe:d1", "d1", "wbe"},
		{"nothing*", "", "nothing*"},
		{"", "", ""},
	}
	for _, c := range cases {
		m, err := inv.Match([]string{c.pattern}, MatchOptions{})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		var unmatched []string
		for _, u := range m.Unmatched {
			unmatched = append(unmatched, u.Pattern)
		}
		if got := strings.Join(m.Hosts, " "); got != c.want {
			t.Errorf("%q matches %q, want %q", c.pattern, got, c.want)
		}
		if got := strings.Join(unmatched, " "); got != c.unmatched {
			t.Errorf("%q leaves %q unmatched, want %q", c.pattern, got, c.unmatched)
		}
	}
}

func TestMatchHints(t *testing.T) {
	m, err := fromINI(t, patternHosts).Match([]string{"wbe"}, MatchOptions{})
	if err != nil || len(m.Unmatched) != 1 {
		t.Fatalf("%v %v", m, err)
	}
	if got := m.Unmatched[0].String(); got != `"wbe" matches no host and no group (did you mean "web"?)` {
		t.Error(got)
	}
}

func TestMatchRefusesBrokenPatterns(t *testing.T) {
	inv := fromINI(t, patternHosts)
	for _, p := range []string{"~(", "~w(?i)", "!", "web:&", "|random", "w[z-a]*", "web[99999999999999999999]"} {
		if _, err := inv.Match([]string{p}, MatchOptions{}); err == nil || !strings.Contains(err.Error(), "pattern") {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestMatchThatTakesTooLongIsAnError(t *testing.T) {
	inv := fromINI(t, "[g]\n"+strings.Repeat("a", 60)+"\n")
	for _, p := range []string{`~(?=a)(a+)+b`, `g:&~(?=a)(a+)+b`, `g:!~(?=a)(a+)+b`} {
		m, err := inv.Match([]string{p}, MatchOptions{})
		if err == nil || !strings.Contains(err.Error(), `match host pattern "~(?=a)(a+)+b" against "aaa`) {
			t.Errorf("%s: %v, %v", p, m.Hosts, err)
		}
	}
}

func TestMatchRandom(t *testing.T) {
	inv := fromINI(t, patternHosts)
	picked := map[string]bool{}
	for run := range 40 {
		o := MatchOptions{RunID: strings.Repeat("x", run)}
		first, err := inv.Match([]string{"web|random"}, o)
		again, _ := inv.Match([]string{"web|random"}, o)
		if err != nil || len(first.Hosts) != 1 || !cmp.Equal(first, again) {
			t.Fatalf("%v %v %v", first, again, err)
		}
		if first.Random[0] != "web|random = "+first.Hosts[0] {
			t.Error(first.Random)
		}
		picked[first.Hosts[0]] = true
	}
	if len(picked) != 4 {
		t.Errorf("40 runs picked only %v", picked)
	}
}

func TestLimit(t *testing.T) {
	inv := fromINI(t, patternHosts)
	o := LimitOptions{
		ReadFile: func(path string) ([]byte, error) {
			if path != "retry" {
				return nil, errors.New("no such file")
			}
			return []byte("# last time\nw3\n\nd1\n"), nil
		},
		Failed: func() ([]string, error) { return []string{"w2"}, nil },
	}
	hosts := inv.HostsIn("site")
	cases := []struct{ limit, want, err string }{
		{"", "d1 w2 w1 w3 w10.example.org", ""},
		{"web", "w2 w1 w3 w10.example.org", ""},
		{"!web", "d1", ""},
		{"@retry", "d1 w3", ""},
		{"@retry,w1", "d1 w1 w3", ""},
		{"@retry:!w3", "d1", ""},
		{"@retry:&web", "w3", ""},
		{"@failed", "w2", ""},
		{"@failed:!web", "", ""},
		{"@failed:d1", "d1 w2", ""},
		{"@gone", "", "limit @gone: no such file"},
		{"localhost", "", ""},
	}
	for _, c := range cases {
		m, err := inv.Limit(hosts, strings.Fields(c.limit), o)
		if got := strings.Join(m.Hosts, " "); got != c.want {
			t.Errorf("limit %q leaves %q, want %q", c.limit, got, c.want)
		}
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("limit %q: %v", c.limit, err)
		}
	}
	for _, l := range []string{"@failed", "@retry"} {
		if _, err := inv.Limit(hosts, []string{l}, LimitOptions{}); err == nil {
			t.Errorf("limit %s should be refused without a way to read it", l)
		}
	}
}

func TestAddHost(t *testing.T) {
	inv := fromINI(t, patternHosts)
	vars := value.NewDict("role", "new")
	if changed, err := inv.AddHost("n1:2222", []string{"fresh", "web"}, vars); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if changed, err := inv.AddHost("n1:2222", []string{"fresh"}, vars); changed || err != nil {
		t.Error("adding the same again should change nothing", err)
	}
	if diff := cmp.Diff([]string{"fresh", "site", "web"}, inv.GroupsOf("n1")); diff != "" {
		t.Error(diff)
	}
	if got := merged(inv, "n1", ""); got.String("ansible_port") != "2222 (add_host)" ||
		got.String("role") != `"new" (add_host)` {
		t.Error(value.Repr(got))
	}
	if vars.Has("ansible_port") {
		t.Error("the caller's variables were changed")
	}
	if _, err := inv.AddHost("", nil, nil); err == nil {
		t.Error("an empty name should be refused")
	}
}

func TestAddToGroup(t *testing.T) {
	inv := fromINI(t, patternHosts)
	if changed, err := inv.AddToGroup("w1", "os_debian", []string{"linux"}); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if changed, _ := inv.AddToGroup("w1", "os_debian", []string{"linux"}); changed {
		t.Error("the second time should change nothing")
	}
	if diff := cmp.Diff([]string{"w1"}, inv.HostsIn("linux")); diff != "" {
		t.Error(diff)
	}
	if _, err := inv.AddToGroup("gone", "g", nil); err == nil {
		t.Error("an unknown host should be refused")
	}
	if _, err := inv.AddToGroup("w1", "linux", []string{"os_debian"}); err == nil {
		t.Error("a cycle should be refused")
	}
}

func TestUseWhileChanging(t *testing.T) {
	inv := fromINI(t, patternHosts)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			if _, err := inv.AddHost(strings.Repeat("n", i+1), []string{"web"}, nil); err != nil {
				t.Error(err)
			}
		}()
		go func() {
			defer wg.Done()
			if m, err := inv.Match([]string{"web"}, MatchOptions{}); err != nil || len(m.Hosts) < 4 {
				t.Error(m, err)
			}
			inv.VarLayers("w1", "")
		}()
	}
	wg.Wait()
	if n := len(inv.HostsIn("web")); n != 8 {
		t.Errorf("web has %d hosts, want 8", n)
	}
}

func TestHostAndGroup(t *testing.T) {
	inv := fromINI(t, patternHosts)
	h, ok := inv.Host("w2")
	if !ok || h.File != "/hosts" || h.Dir != "/" || !cmp.Equal(h.Groups, []string{"db", "site", "web"}) {
		t.Errorf("%+v", h)
	}
	if _, ok := inv.Host("gone"); ok {
		t.Error("gone should not be there")
	}
	g, ok := inv.Group("site")
	if !ok || g.Depth != 1 || g.Priority != 1 || !cmp.Equal(g.Children, []string{"db", "web"}) ||
		!cmp.Equal(g.Parents, []string{"all"}) {
		t.Errorf("%+v", g)
	}
	if _, ok := inv.Group("gone"); ok {
		t.Error("gone should not be there")
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"web:&db:!w2", "web[1:2]", "~w(?!1)", "w[!1]*", "g|random", "2001:db8::1", "w[", "[[]"} {
		f.Add(s)
	}
	inv := fromINI(f, patternHosts)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := inv.Match([]string{text}, MatchOptions{})
		if err != nil && len(m.Hosts) > 0 {
			t.Error("hosts beside an error")
		}
	})
}
