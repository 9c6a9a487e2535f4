package cli

import (
	"bytes"
	"encoding/base64"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubekey/builtin"
	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/engine"
	"kubekey/test/harbor"
)

// both pushes an image for two architectures to a registry of plain HTTP.
func both(t *testing.T, ref string) v1.Hash {
	t.Helper()
	index := artifacttest.PlatformIndex(t, "amd64", "arm64")
	at, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(at, index); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestArtifactImages(t *testing.T) {
	upstream := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer upstream.Close()
	from := strings.TrimPrefix(upstream.URL, "http://")
	digest := both(t, from+"/apps/web:1")
	key := artifacttest.Key(t)
	signed, err := name.ParseReference(artifact.AttachedName(from+"/apps/web:1", digest, ".sig"), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(signed, artifacttest.Signature(t, "apps/web", digest, key)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	command := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Main(t.Context(), args, Streams{Out: &out, Err: &errs}, builtin.FS()); code != want {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, out.String(), errs.String())
		}
		return out.String() + errs.String()
	}
	run := func(want int, args ...string) string {
		t.Helper()
		args = append([]string{"artifact", "images"}, append(args, "--workdir", filepath.Join(dir, "work"))...)
		return command(want, args...)
	}
	file := filepath.Join(dir, "apps.tar")
	run(0, "pull", from+"/apps/web:1", "-o", file, "--arch", "amd64,arm64", "--plain-http", from)
	run(engine.ExitUsage, "pull", from+"/apps/web:1")
	list := command(0, "artifact", "ls", file)
	if want := "attached    sha256-" + digest.Hex[:12] + ".sig"; !strings.Contains(strings.Join(strings.Fields(list), " "),
		strings.Join(strings.Fields(want), " ")) {
		t.Errorf("the list lacks the signature:\n%s", list)
	}
	if got := command(0, "artifact", "ls", file, "--images"); got != from+"/apps/web:1\n" {
		t.Errorf("the images are %q", got)
	}
	list = command(0, "artifact", "ls", file, "-o", "json")
	if strings.Count(list, `"attached_to": "`+digest.String()) != 1 {
		t.Errorf("the list in JSON lacks what the signature is attached to:\n%s", list)
	}
	if got := command(0, "artifact", "sbom", file); strings.Contains(got, ".sig") {
		t.Error("the SBOM has the signature as a component")
	}
	if got := command(0, "artifact", "prune", "--keep", file, "--workdir", filepath.Join(dir, "work"),
		"--check"); strings.Contains(got, "sha256-") {
		t.Errorf("prune would remove what is attached to an image that is kept:\n%s", got)
	}
	want := "1 images with 1 signatures and attestations, 0 charts, 0 files, 2 of them unverified"
	if got := command(0, "artifact", "import", filepath.Join(dir, "work", "cache", "images"), "-o",
		filepath.Join(dir, "in.tar"), "--allow-unverified", "--workdir", filepath.Join(dir, "work")); !strings.Contains(
		got, want) {
		t.Errorf("the cache is imported as\n%s", got)
	}

	own, port := harbor.NewCA(t), harbor.Port(t)
	h := own.Serve(t, "harbor.invalid", "127.0.0.1", port, "admin", "harbor-password-1")
	ca, host := put("ca.crt", own.PEM), "127.0.0.1:"+port
	auth := put("auth.json", `{"auths": {"`+host+`": {"auth": "`+
		base64.StdEncoding.EncodeToString([]byte("admin:harbor-password-1"))+`"}}}`)
	push := []string{"push", file, "--to", host, "--ca", ca, "--auth", auth}
	if out := run(engine.ExitFailed, push...); strings.Contains(out, "harbor-password-1") {
		t.Errorf("the password is shown:\n%s", out)
	}
	for _, again := range []bool{false, true} {
		before := h.Uploads()
		out := run(0, append(push, "--create-projects")...)
		if again && (h.Uploads() != before || !strings.Contains(out, "changed=0")) {
			t.Errorf("a second push sent something:\n%s", out)
		}
	}
	unverified := []string{"push", file, "--to", host, "--skip-verify", "--auth", auth, "--create-projects"}
	if out := run(0, unverified...); !strings.Contains(out, "changed=0") {
		t.Errorf("a push without verification sent something:\n%s", out)
	}
	verified := slices.Concat(unverified[:4], unverified[5:])
	if out := run(engine.ExitFailed, verified...); !strings.Contains(out, "certificate") {
		t.Errorf("a certificate of an unknown CA is accepted:\n%s", out)
	}
	if out := run(engine.ExitUsage, append(unverified, "--ca", ca)...); !strings.Contains(out, "--ca and --skip-verify") {
		t.Errorf("both are accepted:\n%s", out)
	}
	if out := run(0, append(push, "--arch", "amd64,arm64")...); !strings.Contains(out, "changed=0") {
		t.Errorf("a push for both architectures sent something:\n%s", out)
	}
	ref, err := name.ParseReference(host + "/apps/web:1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Head(ref, remote.WithTransport(h.Transport()))
	if err != nil || got.Digest != digest {
		t.Errorf("the registry has %v, want %s: %v", got, digest, err)
	}
	image, err := remote.Image(ref.Context().Tag("sha256-"+digest.Hex+".sig"), remote.WithTransport(h.Transport()))
	if err != nil {
		t.Error(err)
	} else if err := artifacttest.CheckSignature(image, digest, &key.PublicKey); err != nil {
		t.Error(err)
	}
	err = filepath.WalkDir(filepath.Join(dir, "work"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if secret := base64.StdEncoding.EncodeToString([]byte("admin:harbor-password-1")); bytes.Contains(text,
			[]byte("harbor-password-1")) || bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if out := run(engine.ExitInput, "push", put("none.tar", "x"), "--to", host); !strings.Contains(out, "none.tar") {
		t.Errorf("a file that is none: %s", out)
	}
}
