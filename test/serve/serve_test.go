package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/builtin"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/cli"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func digestOf(t *testing.T, v interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := v.Digest()
	check(t, err)
	return d.String()
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// kk runs a command of kk to its end, and returns what it printed.
func kk(t *testing.T, args ...string) string {
	t.Helper()
	code, out := run(t, args...)
	if code != 0 {
		t.Fatalf("kk %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// run runs kk, and returns its exit code and what it printed, errors last.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, problems bytes.Buffer
	code := cli.Main(t.Context(), args, cli.Streams{Out: &out, Err: &problems}, builtin.FS())
	return code, out.String() + problems.String()
}

// serve runs `kk artifact serve` until the test ends, and returns its URL. Everything that it reports fails the test.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	from, to := io.Pipe()
	var problems bytes.Buffer
	done := make(chan int, 1)
	go func() {
		code := cli.Main(ctx, append([]string{"artifact", "serve", "--listen", "127.0.0.1:0", "-o", "json"}, args...),
			cli.Streams{Out: to, Err: &problems}, builtin.FS())
		_ = to.Close()
		done <- code
	}()
	var at struct{ URL string }
	err := json.NewDecoder(from).Decode(&at)
	t.Cleanup(func() {
		stop()
		_, _ = io.Copy(io.Discard, from)
		if code := <-done; code != 0 || problems.Len() > 0 {
			t.Errorf("kk artifact serve: exit code %d\n%s", code, problems.String())
		}
	})
	check(t, err)
	return at.URL
}

// program skips the test if this machine has no such program.
func program(t *testing.T, name, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("no %s: install the package %s", name, debianPackage)
	}
}

// output runs a program.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %s\n%s%s", cmd, err, out, problems.String())
	}
	return string(out)
}

var passed = regexp.MustCompile(`\n  Pass\.+: +([1-9][0-9]*)\n`)

// TestConformance runs the specification's own tests: all that apply to a registry that nobody pushes to.
func TestConformance(t *testing.T) {
	dir := t.TempDir()
	tests := filepath.Join(dir, "conformance")
	output(t, "go", "build", "-C", "conformance", "-o", tests, "github.com/opencontainers/distribution-spec/conformance")
	o := artifacttest.Sample(t, nil)
	url := serve(t, o.Path)
	m, err := o.Image.Manifest()
	check(t, err)
	blobs := []string{m.Config.Digest.String()}
	for _, l := range m.Layers {
		blobs = append(blobs, l.Digest.String())
	}
	for repo, data := range map[string][]string{
		artifacttest.Image: {"OCI_RO_DATA_TAGS=1.36 1.37 latest",
			"OCI_RO_DATA_MANIFESTS=" + digestOf(t, o.Image) + " " + digestOf(t, o.Attached),
			"OCI_RO_DATA_BLOBS=" + strings.Join(blobs, " "), "OCI_RO_DATA_REFERRERS=" + digestOf(t, o.Image)},
		artifacttest.Index: {"OCI_RO_DATA_TAGS=3.10.1", "OCI_RO_DATA_MANIFESTS=" + digestOf(t, o.Index)},
	} {
		cmd := exec.CommandContext(t.Context(), tests)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), append(data,
			"OCI_REGISTRY="+strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"),
			"OCI_TLS=disabled", "OCI_REPO1="+repo, "OCI_REPO2="+repo, "OCI_API_PUSH=false", "OCI_API_BLOBS_DELETE=false",
			"OCI_API_MANIFESTS_DELETE=false", "OCI_API_TAGS_DELETE=false", "OCI_API_BLOBS_DIGEST_HEADER=true")...)
		out, err := cmd.CombinedOutput() // it panics behind its results, where data is not its own
		if passes := passed.FindSubmatch(out); passes == nil || !bytes.Contains(out, []byte("Conformance Result: Pass")) {
			t.Errorf("%s: not a pass: %v\n%s", repo, err, out)
		} else {
			t.Logf("%s: %s passes", repo, passes[1])
		}
	}
}

func TestSkopeo(t *testing.T) {
	program(t, "skopeo", "skopeo")
	o := artifacttest.Sample(t, nil)
	host := strings.TrimPrefix(serve(t, o.Path), "http://")
	// skopeo writes indexes in its own form, so the index itself is compared as it comes.
	raw := output(t, "skopeo", "inspect", "--raw", "--tls-verify=false", "docker://"+host+artifacttest.Index+":3.10.1")
	if "sha256:"+sha([]byte(raw)) != digestOf(t, o.Index) {
		t.Errorf("an index sha256:%s instead of %s", sha([]byte(raw)), digestOf(t, o.Index))
	}
	arm, err := o.Index.IndexManifest()
	check(t, err)
	for ref, want := range map[string]string{
		artifacttest.Index + ":3.10.1":                     arm.Manifests[1].Digest.String(),
		artifacttest.Image + ":1.37":                       digestOf(t, o.Image),
		artifacttest.Image + "@" + digestOf(t, o.Image):    digestOf(t, o.Image),
		"docker.io/busybox:latest":                         digestOf(t, o.Image),
		artifacttest.Image + "@" + digestOf(t, o.Attached): digestOf(t, o.Attached),
	} {
		dir := t.TempDir()
		output(t, "skopeo", "copy", "-q", "--override-arch=arm64", "--src-tls-verify=false", "docker://"+host+ref,
			"oci:"+dir+":copy")
		index, err := os.ReadFile(filepath.Join(dir, "index.json"))
		check(t, err)
		if !strings.Contains(string(index), want) {
			t.Errorf("%s: skopeo has not %s, but %s", ref, want, index)
		}
	}
	var list struct{ Tags []string }
	tags := output(t, "skopeo", "list-tags", "--tls-verify=false", "docker://"+host+artifacttest.Image)
	check(t, json.Unmarshal([]byte(tags), &list))
	if strings.Join(list.Tags, " ") != "1.36 1.37 latest" {
		t.Errorf("tags %q", list.Tags)
	}
}

func TestCurl(t *testing.T) {
	program(t, "curl", "curl")
	o := artifacttest.Sample(t, nil)
	url := strings.TrimSuffix(serve(t, o.Path), "/") + artifacttest.Program
	if got := output(t, "curl", "-sSf", url); got != string(o.Program) {
		t.Errorf("%d bytes of %d", len(got), len(o.Program))
	}
	if got := output(t, "curl", "-sSf", "-r", "777777-888888", url); got != string(o.Program[777777:888889]) {
		t.Errorf("a range has %d bytes", len(got))
	}
	part := filepath.Join(t.TempDir(), "part")
	check(t, os.WriteFile(part, o.Program[:654321], 0o600))
	output(t, "curl", "-sSf", "-C", "-", "-o", part, url)
	if got, err := os.ReadFile(part); err != nil || !bytes.Equal(got, o.Program) {
		t.Errorf("resumed: %d bytes, %v", len(got), err)
	}
	if !strings.Contains(output(t, "curl", "-V"), "zstd") {
		t.Log("curl cannot decode zstd: not tried")
		return
	}
	size := output(t, "curl", "-sSf", "--compressed", "-o", part, "-w", "%{size_download}", url)
	if got, err := os.ReadFile(part); err != nil || !bytes.Equal(got, o.Program) {
		t.Errorf("compressed: %s bytes became %d, %v", size, len(got), err)
	}
}
