package peer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"kubekey/test/apiserver"
)

// withCluster is the cases without those that need a cluster, where there can
// be none: these are skipped with the reason.
func withCluster(t *testing.T, cases []*peerCase) []*peerCase {
	t.Helper()
	needed := func(c *peerCase) bool { return c.Cluster }
	if !slices.ContainsFunc(cases, needed) {
		return cases
	}
	whyNot := apiserver.Missing()
	if out, err := exec.Command("/usr/bin/python3", "-c",
		"import kubernetes, jsonpatch, yaml").CombinedOutput(); whyNot == nil && err != nil {
		whyNot = fmt.Errorf("install python3-kubernetes, python3-jsonpatch and python3-yaml: %s", out)
	}
	if whyNot == nil {
		return cases
	}
	return slices.DeleteFunc(slices.Clone(cases), func(c *peerCase) bool {
		if c.Cluster {
			t.Run(c.name, func(t *testing.T) { t.Skip("needs a cluster: ", whyNot) })
		}
		return c.Cluster
	})
}

// onCluster gives the program an API server of its own, with kubectl and helm in
// its PATH, if a case needs one: the cases know it as {{ kubeconfig }}.
func (p program) onCluster(t *testing.T, cases []*peerCase) (program, string) {
	t.Helper()
	if !slices.ContainsFunc(cases, func(c *peerCase) bool { return c.Cluster }) {
		return p, ""
	}
	s := apiserver.Start(t)
	path := filepath.Dir(s.Kubectl) + ":" + filepath.Dir(apiserver.Program(t, "helm")) + ":" + os.Getenv("PATH")
	p.env = append(slices.Clone(p.env), "PATH="+path)
	return p, s.Kubeconfig
}

// ofServer is what an API server makes up for each object.
var ofServer = regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|deletionTimestamp|lastTransitionTime)": "[-0-9a-f:TZ]*"`)

// anonymous makes what API servers make up the same: both programs must tell it.
func anonymous(text string) string { return ofServer.ReplaceAllString(text, `"$1": "SERVER"`) }
