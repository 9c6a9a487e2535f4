package rendered

import (
	"slices"
	"strings"
	"testing"
)

// The hosts that run etcd are tuned, wherever it runs, and only as the config says.
func TestEtcdTuning(t *testing.T) {
	for _, c := range []struct {
		etcd, further, address string
		hosts                  []string
		has, not               string
	}{
		{"internal", "etcd: {performance: true}", "", []string{"n1", "n2", "n3"}, "\tfull_speed\n", "tc qdisc add"},
		{"external", "etcd: {traffic_priority: true}", "address=10.0.0.", nil, "tc qdisc add", "full_speed"},
		{"internal", "etcd: {performance: false}", "", nil, "", ""},
	} {
		t.Run(c.etcd+" "+c.further, func(t *testing.T) {
			t.Parallel()
			kind := plain("1.34")
			kind["etcd"] = c.etcd
			var hosts []string
			for _, f := range created(t, kind, withConfig(t, c.further)...).Files() {
				if f.Path != "/usr/local/bin/kk-etcd-tuning" {
					continue
				}
				hosts = append(hosts, f.Host)
				if !strings.Contains(f.Content, c.has) || strings.Contains(f.Content, c.not) ||
					!strings.Contains(f.Content, c.address) {
					t.Errorf("%s:\n%s", f.Host, f.Content)
				}
			}
			slices.Sort(hosts)
			if c.has == "" && len(hosts) > 0 || c.hosts != nil && !slices.Equal(hosts, c.hosts) ||
				c.has != "" && len(hosts) != 3 {
				t.Errorf("%v are tuned, want %v", hosts, c.hosts)
			}
		})
	}
}
