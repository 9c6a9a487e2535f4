package apps_test

import (
	"fmt"
	"strings"
	"testing"

	"kubekey/test/apiserver"
)

// cluster is an API server that takes what the roles make.
type cluster struct{ *apiserver.Server }

func startCluster(t *testing.T) cluster {
	t.Helper()
	return cluster{apiserver.Start(t)}
}

// apply hands a manifest to the API server, which must take all of it without a warning.
func (c cluster) apply(t *testing.T, name, manifest string) {
	t.Helper()
	out, err := c.Run(t, manifest, "apply", "--server-side", "--field-manager", "kk", "--validate=strict", "-f", "-")
	if err != nil || strings.Contains(out, "Warning") {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

func (c cluster) versions(t *testing.T, manifest string) string {
	t.Helper()
	out, err := c.Run(t, manifest, "get", "-f", "-", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func TestServerTakesManifests(t *testing.T) {
	c := startCluster(t)
	for family, ranges := range families {
		t.Run(family, func(t *testing.T) {
			r := render(t, fmt.Sprintf("kubernetes: {networking: %s}", ranges))
			for _, name := range manifests {
				text := r.text(t, name+".yaml")
				c.apply(t, name, text)
				before := c.versions(t, text)
				c.apply(t, name, text)
				if after := c.versions(t, text); after != before {
					t.Errorf("%s: applied again it changes\n%s\nto\n%s", name, before, after)
				}
			}
			// The service's address is what differs, and cannot change.
			if out, err := c.Run(t, "", "delete", "service", "-n", "kube-system", "kube-dns"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
