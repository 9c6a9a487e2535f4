package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/builtin"
	"kubekey/pkg/artifact"
	"kubekey/pkg/value"
)

// site is a folder with offline files.
type site struct {
	*testing.T
	dir string
}

func newSite(t *testing.T) *site {
	t.Helper()
	t.Setenv("SSH_AUTH_SOCK", "")
	s := &site{t, t.TempDir()}
	t.Chdir(s.dir)
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// write writes an offline file with a program of a version and a chart.
func (s *site) write(name, version string) {
	s.Helper()
	b := artifact.NewBuilder(s.dir, artifact.Covers{Kubernetes: []string{version}}, nil)
	add := func(kind artifact.Kind, name, version, text string) {
		path := filepath.Join(s.dir, name+version)
		s.must(os.WriteFile(path, []byte(text), 0o600))
		s.must(b.AddFile(s.Context(), artifact.Item{Kind: kind, Name: name, Version: version, Licence: "Apache-2.0",
			Architecture: map[artifact.Kind]string{artifact.KindFile: "amd64"}[kind], File: name + "/" + version}, path))
	}
	add(artifact.KindFile, "kubelet", version, "the program "+version)
	add(artifact.KindFile, "crictl", "v1.34.0", "another program")
	add(artifact.KindChart, "flannel", "v0.28.4", "\x1f\x8bchart")
	_, err := b.Write(s.Context(), filepath.Join(s.dir, name), artifact.Options{})
	s.must(err)
}

// kk runs a command and returns its exit code and what it prints.
func (s *site) kk(args ...string) (code int, out, errs string) {
	s.Helper()
	var o, e bytes.Buffer
	code = Main(s.Context(), append([]string{"artifact"}, args...), Streams{strings.NewReader(""), &o, &e}, builtin.FS())
	return code, o.String(), e.String()
}

// ok runs a command that succeeds, and returns what it prints.
func (s *site) ok(args ...string) string {
	s.Helper()
	code, out, errs := s.kk(args...)
	if code != 0 {
		s.Fatalf("kk artifact %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// rejected runs a command that fails with an exit code and a message.
func (s *site) rejected(code int, message string, args ...string) {
	s.Helper()
	got, _, errs := s.kk(args...)
	if got != code || !strings.Contains(errs, message) {
		s.Errorf("kk artifact %s: exit %d instead of %d\n%s\nwant %s", strings.Join(args, " "), got, code, errs, message)
	}
}

func TestArtifactList(t *testing.T) {
	s := newSite(t)
	s.write("a.tar", "v1.34.4")
	want := `KIND   NAME     VERSION  PLATFORM  SIZE  SHARED
file   crictl   v1.34.0  amd64     15 B  -
file   kubelet  v1.34.4  amd64     19 B  -
chart  flannel  v0.28.4  -         7 B   -
`
	if got := s.ok("ls", "a.tar"); got != want {
		t.Errorf("%s", got)
	}
	if got := s.ok("ls", "--kind", "chart", "-l", "-a", "a.tar"); strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, "Apache-2.0") {
		t.Errorf("%s", got)
	}
	var files []struct {
		File, Manifest string
		Items          []artifact.Item
	}
	s.must(json.Unmarshal([]byte(s.ok("ls", "a.tar", "-o", "json")), &files))
	if len(files) != 1 || len(files[0].Items) != 3 || files[0].Items[1].Version != "v1.34.4" {
		t.Errorf("%+v", files)
	}
	m, err := artifact.ParseManifest([]byte(s.ok("ls", "a.tar", "--manifest")))
	s.must(err)
	if digest, err := m.Digest(); err != nil || digest != files[0].Manifest {
		t.Error(digest, err)
	}
	s.rejected(5, "specify an offline file", "ls")
	s.rejected(5, "unknown value \"x\": use one of file, chart", "ls", "a.tar", "--kind", "x")
	s.rejected(4, "no such file", "ls", "b.tar")
}

func TestArtifactVerify(t *testing.T) {
	s := newSite(t)
	s.write("a.tar", "v1.34.4")
	if got := s.ok("verify", "a.tar"); !strings.Contains(got, "a.tar: 3 items, 8.0 KiB, not signed") {
		t.Errorf("%s", got)
	}
	text, err := os.ReadFile("a.tar")
	s.must(err)
	for _, part := range []string{"chart", "another program"} {
		i := bytes.LastIndex(text, []byte(part))
		copy(text[i:], strings.ToUpper(part))
	}
	s.must(os.WriteFile("b.tar", text, 0o600))
	s.ok("verify", "--quick", "b.tar")
	s.rejected(4, "chart flannel v0.28.4: sha256:", "verify", "b.tar")
	s.rejected(4, "file crictl v1.34.0 amd64: it is damaged", "verify", "b.tar")
	code, out, _ := s.kk("verify", "b.tar", "-o", "json")
	var report struct {
		OK       bool
		Problems []string
	}
	s.must(json.Unmarshal([]byte(out), &report))
	if code != 4 || report.OK || len(report.Problems) != 2 {
		t.Errorf("exit %d, %+v", code, report)
	}
}

func TestArtifactDelta(t *testing.T) {
	s := newSite(t)
	s.write("old.tar", "v1.34.3")
	s.write("new.tar", "v1.34.4")
	s.must(os.WriteFile("old.json", []byte(s.ok("ls", "old.tar", "--manifest")), 0o600))
	want := "~ file kubelet v1.34.4 amd64: was v1.34.3\na delta has 32 B\n"
	for _, old := range []string{"old.tar", "old.json"} {
		if got := s.ok("diff", old, "new.tar"); got != want {
			t.Errorf("%s", got)
		}
		s.ok("delta", old, "new.tar", "-o", old+".delta")
	}
	same := func(a, b string) {
		t.Helper()
		one, err := os.ReadFile(a)
		s.must(err)
		two, err := os.ReadFile(b)
		s.must(err)
		if !bytes.Equal(one, two) {
			t.Errorf("%s and %s differ", a, b)
		}
	}
	same("old.tar.delta", "old.json.delta")
	s.ok("merge", "old.tar", "old.tar.delta", "-o", "merged.tar")
	same("merged.tar", "new.tar")
	if got := s.ok("merge", "old.tar", "-a", "old.tar.delta", "-o", "merged.tar", "--format",
		"json"); !strings.Contains(got,
		`"changed": false`) {
		t.Errorf("%s", got)
	}
	s.ok("merge", "old.tar", "old.tar.delta", "-o", "split.tar", "--split", "4K")
	s.ok("verify", "split.tar")
	s.ok("verify", "split.tar.001")
	s.ok("verify", "old.tar", "old.tar.delta")
	s.rejected(4, "is a delta for the file with the manifest sha256:", "verify", "old.tar.delta")
	s.rejected(4, "nothing is new", "delta", "old.tar", "old.tar", "-o", "x.tar")
	s.rejected(5, "needs the file to write", "delta", "old.tar", "new.tar")
	s.rejected(5, "needs 2 arguments, not 1", "diff", "old.tar")
	s.rejected(5, `--split "4X" is not a size`, "merge", "old.tar", "-o", "x.tar", "--split", "4X")
	if got := s.ok("ls", "old.tar.delta"); !strings.Contains(got, "is a delta for the file with the manifest sha256:") {
		t.Errorf("%s", got)
	}
}

func TestArtifactSign(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	s := newSite(t)
	s.write("a.tar", "v1.34.4")
	for _, key := range []string{"ada", "bob"} {
		s.must(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	}
	out := s.ok("sign", "a.tar", "--key", "ada", "--principal", "ada@example.com")
	first, line, _ := strings.Cut(out, "\n")
	if !strings.HasPrefix(first, "signed a.tar with the key SHA256:") ||
		!strings.HasPrefix(line, `ada@example.com namespaces="kk-artifact" ssh-ed25519 `) {
		t.Errorf("%s", out)
	}
	s.must(os.WriteFile("allowed_signers", []byte(line), 0o600))
	if got := s.ok("verify", "a.tar", "--allowed-signers", "allowed_signers"); !strings.Contains(got,
		"signed by ada@example.com") {
		t.Errorf("%s", got)
	}
	if got := s.ok("sign", "a.tar", "--key", "ada.pub"); !strings.Contains(got, "is already signed with the key") {
		t.Errorf("%s", got)
	}
	s.write("b.tar", "v1.34.5")
	s.rejected(4, "b.tar: it is not signed", "verify", "b.tar", "--allowed-signers", "allowed_signers")
	s.ok("sign", "b.tar", "--key", "bob", "--detached")
	s.rejected(4, "which allowed_signers does not list", "verify", "b.tar", "--allowed-signers", "allowed_signers")
	s.ok("sign", "b.tar", "--key", "ada", "--detached")
	s.ok("verify", "b.tar", "--allowed-signers", "allowed_signers")
	s.rejected(1, "no key to sign with", "sign", "b.tar")
	s.must(os.WriteFile("wrong_signers", []byte("# who may sign\nada\n"), 0o600))
	before, err := os.ReadFile("b.tar")
	s.must(err)
	export := []string{"export", "-o", "b.tar", "--check", "--only", "files", "--kk", "none", "--workdir", s.dir}
	s.ok(append(export, "--sign", "ada")...) // check mode signs nothing
	after, err := os.ReadFile("b.tar")
	if err != nil || !bytes.Equal(before, after) {
		t.Error("an export in check mode changes the file", err)
	}
	s.rejected(1, "read the key: ", append(export, "--sign", "none")...)
	s.rejected(4, "wrong_signers:2: ", "verify", "b.tar", "--allowed-signers", "wrong_signers")
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "512": 512, "4K": 4096, "4000M": 4000 << 20, "4GiB": 4 << 30,
		"1t": 1 << 40,
		"0":  -1, "-1": -1, "4X": -1, "99999999999T": -1, "1.5G": -1} {
		got, err := parseSize("--split", text)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// The SBOM is that of the first file, whichever its place among a base and its deltas is.
func TestSBOMOfBase(t *testing.T) {
	s := newSite(t)
	s.write("old.tar", "v1.34.3")
	s.write("new.tar", "v1.34.4")
	s.ok("delta", "old.tar", "new.tar", "-o", "delta.tar", "--split", "8K")
	for _, c := range []struct{ want, other, file, more string }{
		{"v1.34.3", "v1.34.4", "old.tar", "delta.tar"}, {"v1.34.4", "v1.34.3", "delta.tar.001", "old.tar"},
	} {
		got := s.ok("sbom", "--workdir", s.dir, c.file, "-a", c.more)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.other) {
			t.Errorf("%s: %s", c.file, got)
		}
	}
}

func TestExtraFiles(t *testing.T) {
	digest := strings.Repeat("ABCDEF01", 8)
	got, err := extraFiles([]string{"https://ada:secret@example.com:8443/a/../../b%20c.tgz?x=1=" + digest})
	if err != nil {
		t.Fatal(err)
	}
	text, err := value.JSON(got, value.JSONOptions{})
	want := `[{"name": "b c.tgz", "version": "", "file": "extra/example.com:8443/b c.tgz", ` +
		`"url": "https://ada:secret@example.com:8443/a/../../b%20c.tgz?x=1", ` +
		`"upstream": "https://example.com:8443/a/../../b%20c.tgz?x=1", "sha256": "` + strings.ToLower(digest) +
		`", "path": ""}]`
	if err != nil || text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	for _, wrong := range []string{"https://example.com/a=" + digest[1:], "https://example.com/a=" + digest[1:] + "g",
		"a=" + digest, "https://example.com/=" + digest} {
		if _, err := extraFiles([]string{wrong}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}
