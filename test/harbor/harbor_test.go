package harbor

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubekey/builtin"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/cli"
)

// kk runs kk in a folder of a test and returns what it prints.
func kk(t *testing.T, tree fs.FS, code int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if tree == nil {
		tree = builtin.FS()
	}
	if got := cli.Main(t.Context(), args, cli.Streams{Out: &out, Err: &out}, tree); got != code {
		t.Fatalf("kk %s: exit code %d\n%s", strings.Join(args, " "), got, out.String())
	}
	return out.String()
}

// site is a folder with a config, an inventory and the mirror that images come from.
type site struct {
	dir, config string
	upstream    string
	tree        fs.FS // nil for the builtin project
}

const version = "v1.34.4"

// few is a config that needs few images.
const few = "cni: {type: none}\ndns: {nodelocaldns: {enabled: false}}\nmetrics_server: {enabled: false}\n"

func newSite(t *testing.T) *site {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl: " + err.Error())
	}
	s := &site{dir: t.TempDir()}
	u := artifacttest.NewUpstream(t, []byte(kk(t, nil, 0, "catalog", "show", version, "-o", "json")))
	s.upstream, _ = u.Listen(t, "127.0.0.1:0")
	s.write(t, "checksums.yaml", u.Checksums)
	s.write(t, "overlay.yaml", artifacttest.Mirrors(s.upstream))
	s.config = artifacttest.Config(s.upstream)
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.path(name)
}

// run runs kk with the site's config and more of it, and returns what changed on the control node.
func (s *site) run(t *testing.T, code int, more, inventory string, args ...string) string {
	t.Helper()
	s.write(t, "config.yaml", s.config+more)
	s.write(t, "inventory.yaml", inventory)
	return kk(t, s.tree, code, append(args, "-c", s.path("config.yaml"), "-i", s.path("inventory.yaml"), "--workdir",
		s.path("work"))...)
}

// changed returns the lines of a recap with changes.
func changed(out string) (lines []string) {
	_, recap, _ := strings.Cut(out, "PLAY RECAP")
	for line := range strings.Lines(recap) {
		if strings.Contains(line, "changed=") && !strings.Contains(line, "changed=0") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Images are pushed to a Harbor that exists, in projects that are created, under the names that nodes pull.
func TestExistingHarborGetsTheImages(t *testing.T) {
	s := newSite(t)
	ca, port := NewCA(t), Port(t)
	h := ca.Serve(t, "harbor.invalid", "127.0.0.1", port, "kk", "right-password")
	file := s.write(t, "ca.crt", ca.PEM)
	more := fmt.Sprintf("image_registry: {type: harbor, name: harbor.invalid, port: %s, address: 127.0.0.1, "+
		"auth: {username: kk, password: right-password, ca: %s}}\n", port, file)
	inventory := "all: {hosts: {}}\n"

	out := s.run(t, 0, more, inventory, "init", "registry", "--check")
	if h.Uploads() != 0 || slices.ContainsFunc(h.Requests(), func(r string) bool { return strings.HasPrefix(r, "POST") }) {
		t.Errorf("check mode has changed it: %q\n%s", h.Requests(), out)
	}
	s.run(t, 0, more, inventory, "init", "registry")
	want := slices.Sorted(maps.Keys(projectsOf(t, s, more, inventory, h)))
	for _, p := range append(want, "library") {
		if !slices.Contains(h.Projects(), p) {
			t.Errorf("the projects are %q, %s is missing", h.Projects(), p)
		}
	}
	before := h.Uploads()
	out = s.run(t, 0, more, inventory, "init", "registry")
	if h.Uploads() != before || len(changed(out)) > 0 {
		t.Errorf("%d uploads in the second run\n%s", h.Uploads()-before, out)
	}
	if strings.Contains(out, "right-password") {
		t.Error("the output has the password")
	}
	out = s.run(t, 2, strings.Replace(more, "right-", "wrong-", 1), inventory, "init", "registry")
	if !strings.Contains(out, "401") || strings.Contains(out, "wrong-password") {
		t.Errorf("the wrong password:\n%s", out)
	}
}

// play runs a playbook next to the builtin ones.
func (s *site) play(t *testing.T, more, inventory, playbook string, args ...string) string {
	t.Helper()
	s.tree = withPlay{builtin.FS(), playbook}
	defer func() { s.tree = nil }()
	return s.run(t, 0, more, inventory, append([]string{"run", "playbooks/play.yaml"}, args...)...)
}

// withPlay is the builtin project with playbooks/play.yaml.
type withPlay struct {
	fs.FS
	play string
}

func (w withPlay) Open(name string) (fs.File, error) {
	if name == "playbooks/play.yaml" {
		return fstest.MapFS{name: {Data: []byte(w.play), Mode: 0o444}}.Open(name)
	}
	return w.FS.Open(name)
}

// projectsOf checks that the registry has all images that nodes pull, and returns their projects.
func projectsOf(t *testing.T, s *site, more, inventory string, h *Harbor) map[string]bool {
	t.Helper()
	s.play(t, more, inventory, `
- name: Record names of images
  hosts: localhost
  gather_facts: false
  roles: [cluster]
  tasks:
    - name: Write names
      copy: {content: "{{ cluster_images | map(attribute='ref') | join(' ') }}", dest: "`+s.path("names")+`", mode: "0600"}
`)
	names, err := os.ReadFile(s.path("names"))
	check(t, err)
	projects := map[string]bool{}
	for _, ref := range strings.Fields(string(names)) {
		registry, path, _ := strings.Cut(ref, "/")
		repository, tag, _ := strings.Cut(path, ":")
		project, _, inProject := strings.Cut(repository, "/")
		if registry != h.Name || !inProject || h.Digest(repository, tag) == "" {
			t.Errorf("nodes pull %s, which %s does not have", ref, h.Name)
		}
		projects[project] = true
	}
	return projects
}

// Two hosts of the cluster have Harbor: all images are on both, and each copies to the other what is pushed to it.
func TestHarborsReplicateToEachOther(t *testing.T) {
	s := newSite(t)
	ca, port := NewCA(t), Port(t)
	first := ca.Serve(t, "registry.kk.local", "127.0.0.1", port, "admin", "right-password")
	second := ca.Serve(t, "registry.kk.local", "127.0.0.2", port, "admin", "right-password")
	pki := s.path("work/clusters/kk/pki/registry")
	check(t, os.MkdirAll(pki, 0o700))
	check(t, os.WriteFile(filepath.Join(pki, "ca.crt"), []byte(ca.PEM), 0o600))
	more := few + fmt.Sprintf("image_registry: {type: harbor, port: %s, password: right-password}\n", port)
	inventory := `
all:
  children:
    image_registry:
      vars: {ansible_connection: local}
      hosts:
        Host_1: {internal_ipv4: 127.0.0.1}
        host2: {internal_ipv4: 127.0.0.2}
`
	play := `
- name: Set up registries
  hosts: image_registry
  gather_facts: false
  tasks:
    - name: Use API
      include_role: {name: image_registry, tasks_from: harbor_api}
- name: Push images
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Push
      include_role: {name: image_registry, tasks_from: images}
`
	first.push(t, "library/before", "1")
	run := func(args ...string) string {
		t.Helper()
		return s.play(t, more, inventory, play, append(args, "-e", "registry_certs="+pki)...)
	}
	run("--check")
	if all := strings.Join(append(first.Requests(), second.Requests()...), "\n"); strings.Contains(all, "POST") {
		t.Errorf("check mode has changed something:\n%s", all)
	}
	run()
	for _, h := range []*Harbor{first, second} {
		projectsOf(t, s, more, inventory, h)
	}
	first.Wait()
	if second.Digest("library/before", "1") == "" {
		t.Error("what one had before is not on the other")
	}
	first.push(t, "library/one", "1")
	second.push(t, "library/two", "1")
	first.Wait()
	second.Wait()
	first.Wait()
	if second.Digest("library/one", "1") == "" || first.Digest("library/two", "1") == "" {
		t.Error("what is pushed to one is not on the other")
	}
	before := first.Uploads() + second.Uploads()
	if out := run(); len(changed(out)) > 0 || first.Uploads()+second.Uploads() != before ||
		strings.Contains(out, "right-password") {
		t.Errorf("the second run:\n%s", out)
	}
}

// push pushes an image as a client does that knows the address of the instance.
func (h *Harbor) push(t *testing.T, repository, tag string) {
	t.Helper()
	ref, err := name.ParseReference(h.address + "/" + repository + ":" + tag)
	check(t, err)
	check(t, remote.Write(ref, artifacttest.PlatformImage(t, "amd64"), remote.WithTransport(h.Transport())))
}

// A registry without projects: with a password and a certificate that nobody verifies, or open and without TLS.
func TestExistingRegistryGetsTheImages(t *testing.T) {
	s := newSite(t)
	for name, c := range map[string]struct{ auth, password string }{
		"password, not verified": {"{username: kk, password: right-password, skip_verify: true}", "right-password"},
		"open, without TLS":      {"{plain_http: true}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var uploads atomic.Int32
			images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, password, _ := r.BasicAuth(); password != c.password {
					w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				if r.Method == http.MethodPost {
					uploads.Add(1)
				}
				images.ServeHTTP(w, r)
			}))
			if server.Config.ErrorLog = log.New(io.Discard, "", 0); c.password == "" {
				server.Start()
			} else {
				server.StartTLS()
			}
			defer server.Close()
			_, port, err := net.SplitHostPort(server.Listener.Addr().String())
			check(t, err)
			more := few + fmt.Sprintf("image_registry: {name: registry.invalid, address: 127.0.0.1, port: %s, project: mirror/k8s, "+
				"auth: %s}\n", port, c.auth)
			inventory := "all: {hosts: {}}\n"
			s.run(t, 0, more, inventory, "init", "registry")
			w := httptest.NewRecorder()
			images.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/v2/mirror/k8s/pause/manifests/3.10.1", nil))
			if w.Code != http.StatusOK {
				t.Errorf("the image is not below the project: status %d", w.Code)
			}
			before := uploads.Load()
			if out := s.run(t, 0, more, inventory, "init", "registry"); uploads.Load() != before || len(changed(out)) > 0 {
				t.Errorf("the second run has changed something:\n%s", out)
			}
		})
	}
}
