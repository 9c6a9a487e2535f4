package offline

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// upstream is a signed repository of small packages, and what is made from it.
type upstream struct {
	t    *testing.T
	dir  string // of the repository
	work string
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	for _, program := range []string{"apt-get", "dpkg-deb", "gpg"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	u := &upstream{t, t.TempDir(), t.TempDir()}
	u.run(`mkdir -m 700 gpg
export GNUPGHOME=$PWD/gpg
gpg --batch --quiet --passphrase '' --quick-generate-key upstream@example.org rsa2048 sign never
gpg --batch --quiet --export >"$1/key.gpg"`, u.dir)
	t.Cleanup(func() { u.run("GNUPGHOME=$PWD/gpg gpgconf --kill all") })
	for _, deb := range []struct{ name, version, arch, more string }{
		{"base", "1.0-1", "amd64", ""},
		{"base", "1.0-1", "arm64", ""},
		{"lib", "1:2.0+dfsg~1-1", "all", "Depends: base"},
		{"tool", "3.0", "amd64", "Depends: lib (>= 1:2), virtual\nRecommends: other"},
		{"tool", "2.0", "amd64", ""},
		{"tool", "3.0", "arm64", "Depends: lib (>= 1:2), virtual"},
		{"real", "1.0", "all", "Provides: virtual"},
		{"other", "1.0", "all", ""},
	} {
		u.add(deb.name, deb.version, deb.arch, deb.more)
	}
	u.sign()
	return u
}

// run runs a script in the work directory.
func (u *upstream) run(script string, args ...string) string {
	u.t.Helper()
	cmd := exec.Command("sh", append([]string{"-euc", script, "sh"}, args...)...)
	cmd.Dir = u.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (u *upstream) add(name, version, arch, more string) {
	u.t.Helper()
	if more != "" {
		more += "\n"
	}
	u.run(`rm -rf deb && mkdir -p deb/DEBIAN "deb/opt/$1" && printf '%s' "$2" >deb/DEBIAN/control
printf '%s\n' "$3" >"deb/opt/$1/version" && mkdir -p "$4/pool" && dpkg-deb -b --root-owner-group deb "$4/pool"`, name,
		fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: Nobody <nobody@example.org>\n%s"+
			"Description: a package\n SHA256: of nothing\n", name, version, arch, more), version, u.dir)
}

// sign writes the repository's package lists.
func (u *upstream) sign() {
	u.t.Helper()
	u.run(`cd "$1"
: >Packages
for f in pool/*.deb; do
	dpkg-deb -f "$f" >>Packages
	printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$f" "$(stat -c %s "$f")" "$(sha256sum <"$f" | cut -d' ' -f1)" >>Packages
done
printf 'Date: %s\nSuite: stable\nSHA256:\n %s %s Packages\n' "$(LC_ALL=C date -uR)" \
	"$(sha256sum <Packages | cut -d' ' -f1)" "$(stat -c %s Packages)" >Release
GNUPGHOME=$2/gpg gpg --batch --quiet --yes --clearsign -o InRelease Release
rm Release`, u.dir, u.work)
}

// args are arguments that resolve tool for amd64.
func (u *upstream) args(cache string) *value.Dict {
	return value.NewDict("cache", cache, "distribution", "testos-1", "arch", "amd64", "manager", "apt", "names",
		[]any{"tool"}, "sources", value.NewDict("sources", []any{"deb file:" + u.dir + " ./"}, "keyring", u.dir+"/key.gpg"))
}

func fetch(t *testing.T, args *value.Dict) module.Result {
	t.Helper()
	return moduletest.Run(t, packagesSpec(), args, moduletest.Options{})
}

// tree lists the files below a directory, with their digests.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		fmt.Fprintf(&b, "%s %x\n", rel, sha256.Sum256(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func names(list string) string {
	var out []string
	for line := range strings.Lines(list) {
		out = append(out, strings.Fields(line)[0])
	}
	return strings.Join(out, " ")
}

func TestPackagesAreResolved(t *testing.T) {
	u := newUpstream(t)
	cache := t.TempDir()
	r := fetch(t, u.args(cache))
	dir := filepath.Join(cache, "packages/testos-1/amd64")
	first := tree(t, dir)
	if got, want := names(first), "Packages Release pool/base_1.0-1_amd64.deb pool/lib_2.0+dfsg~1-1_all.deb "+
		"pool/real_1.0_all.deb pool/tool_3.0_amd64.deb"; got != want {
		t.Errorf("the repository has %s, not %s", got, want)
	}
	moduletest.Want(t, r, "fetched", 4, "dir", dir)
	files, _ := moduletest.Field(r, "files").([]any)
	if len(files) != 6 {
		t.Fatalf("files are %s", value.Repr(moduletest.Field(r, "files")))
	}
	lib, _ := files[1].(*value.Dict)
	if got := value.Repr(lib); !strings.Contains(got, "'name': 'lib', 'version': '1:2.0+dfsg~1-1', 'arch': 'all', "+
		"'distribution': 'testos-1', 'file': 'packages/testos-1/amd64/pool/lib_2.0+dfsg~1-1_all.deb'") {
		t.Errorf("lib is %s", got)
	}

	t.Run("again", func(t *testing.T) {
		r := fetch(t, u.args(cache))
		if r.Changed {
			t.Error("the same packages are a change")
		}
		moduletest.Want(t, r, "fetched", 0)
	})
	t.Run("elsewhere", func(t *testing.T) {
		other := t.TempDir()
		fetch(t, u.args(other))
		if got := tree(t, filepath.Join(other, "packages/testos-1/amd64")); got != first {
			t.Errorf("other bytes:\n%s\n%s", got, first)
		}
	})
	t.Run("another architecture", func(t *testing.T) {
		args := u.args(cache)
		args.Set("arch", "arm64")
		moduletest.Want(t, fetch(t, args), "fetched", 2) // those for all architectures are there
	})
	t.Run("installs", func(t *testing.T) { installs(t, dir) })
}

// installs installs tool from a repository into an empty root.
func installs(t *testing.T, repository string) {
	if os.Getuid() != 0 {
		t.Skip("dpkg needs root")
	}
	root := t.TempDir()
	script := `cd "$1"
mkdir -p var/lib/dpkg/info var/lib/dpkg/updates lists/partial archives/partial etc log
: >var/lib/dpkg/status
echo "deb [trusted=yes] file:$2 ./" >sources.list
set -- -q -o Dir::Etc::sourcelist="$1/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$1/lists" \
	-o Dir::Etc::parts=/dev/null -o Dir::Cache="$1" -o Dir::Cache::archives="$1/archives" -o Dir::Log="$1/log" \
	-o Dir::State::status="$1/var/lib/dpkg/status" -o Dir::State::extended_states="$1/extended" \
	-o APT::Architecture=amd64 -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o DPkg::Options::="--root=$1" \
	-o DPkg::Options::=--log=/dev/null -o APT::Update::Error-Mode=any
apt-get update "$@"
DEBIAN_FRONTEND=noninteractive apt-get install -y "$@" tool
cat opt/tool/version opt/lib/version`
	out, err := exec.Command("sh", "-euc", script, "sh", root, repository).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "3.0\n1:2.0+dfsg~1-1\n") || strings.Contains(string(out), "\nW:") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPackagesThatAreRefused(t *testing.T) {
	try := func(t *testing.T, u *upstream, want string, change func(args *value.Dict)) {
		t.Helper()
		args := u.args(t.TempDir())
		change(args)
		_, err := moduletest.Try(t, packagesSpec(), args, moduletest.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	u := newUpstream(t)
	source := func(line, keyring string) func(*value.Dict) {
		return func(args *value.Dict) {
			args.Set("sources", value.NewDict("sources", []any{line}, "keyring", keyring))
		}
	}
	line := "deb file:" + u.dir + " ./"
	try(t, u, "Unable to locate package nosuch", func(args *value.Dict) { args.Set("names", []any{"nosuch"}) })
	try(t, u, "packages that nobody signed are not exported", source("deb [trusted=yes] file:"+u.dir+" ./", u.dir+"/key.gpg"))
	try(t, u, "nothing names the keys that sign it", source(line, ""))
	try(t, u, "is not a source of apt", source("deb-src file:/x ./", u.dir+"/key.gpg"))
	try(t, u, "the keyring /nosuch.gpg cannot be read", source(line, "/nosuch.gpg"))
	try(t, u, "no sources of packages are known: set artifact.repositories.testos-1.sources", func(args *value.Dict) {
		args.Delete("sources")
	})
	other := newUpstream(t)
	try(t, u, "NO_PUBKEY", source(line, other.dir+"/key.gpg"))
	u.run(`printf x >>"$1/pool/tool_3.0_amd64.deb"`, u.dir)
	try(t, u, "tool_3.0_amd64.deb", func(*value.Dict) {})
	u.sign()
	u.run(`echo >>"$1/Packages"`, u.dir)
	try(t, u, "apt-get update", func(*value.Dict) {})
}
