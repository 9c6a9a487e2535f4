package offline

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// newRPMs is a repository of small packages that are signed, and one that is not.
func newRPMs(t *testing.T) *upstream {
	t.Helper()
	for _, program := range []string{"dnf", "createrepo_c", "rpmbuild", "rpmsign", "gpg"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	u := &upstream{t, t.TempDir(), t.TempDir()}
	u.run(`mkdir -m 700 gpg
export GNUPGHOME=$PWD/gpg
gpg --batch --quiet --passphrase '' --quick-generate-key upstream@example.org rsa2048 sign never
gpg --batch --quiet --armor --export >"$1/key.asc"`, u.dir)
	t.Cleanup(func() { u.run("GNUPGHOME=$PWD/gpg gpgconf --kill all") })
	for _, rpm := range []struct{ name, version, arch, more string }{
		{"base", "1.0", "x86_64", ""},
		{"base", "1.0", "aarch64", ""},
		{"lib", "2.0", "noarch", "BuildArch: noarch\nEpoch: 1\nRequires: base"},
		{"tool", "3.0", "x86_64", "Requires: lib >= 1:2, virtual"},
		{"tool", "2.0", "x86_64", ""},
		{"tool", "3.0", "aarch64", "Requires: lib >= 1:2, virtual"},
		{"real", "1.0", "noarch", "BuildArch: noarch\nProvides: virtual"},
		{"unsigned", "1.0", "noarch", "BuildArch: noarch"},
	} {
		u.run(`printf '%s\n' "Name: $1" "Version: $2" 'Release: 1' 'Summary: for tests' 'License: MIT' "$4" '%description' \
	'for tests' '%install' "mkdir -p %{buildroot}/opt/$1" "echo $2 >%{buildroot}/opt/$1/version" '%files' "/opt/$1" >s.spec
rpmbuild -bb --quiet --target "$3" --define "_topdir $PWD/build" --define "_rpmdir $5" s.spec
[ "$1" = unsigned ] || GNUPGHOME=$PWD/gpg rpmsign --define '_gpg_name upstream@example.org' --define "_gpg_path $PWD/gpg" \
	--define "__gpg $(command -v gpg)" --addsign "$5/$3/$1-$2-1.$3.rpm"`, rpm.name, rpm.version, rpm.arch, rpm.more, u.dir)
	}
	u.run(`createrepo_c -q "$1"`, u.dir)
	return u
}

func (u *upstream) rpmArgs(cache string, names ...any) *value.Dict {
	return value.NewDict("cache", cache, "distribution", "testos-9", "arch", "amd64", "manager", "dnf", "names", names,
		"sources", value.NewDict("sources", []any{"file://" + u.dir}, "keyring", u.dir+"/key.asc"))
}

var hashed = regexp.MustCompile(`repodata/[0-9a-f]{64}-`)

func TestRPMsAreResolved(t *testing.T) {
	u := newRPMs(t)
	cache := t.TempDir()
	r := fetch(t, u.rpmArgs(cache, "tool"))
	dir := filepath.Join(cache, "packages/testos-9/amd64")
	first := tree(t, dir)
	listed := strings.Fields(hashed.ReplaceAllString(names(first), "repodata/"))
	slices.Sort(listed)
	if got, want := strings.Join(listed, " "), "Packages/base-1.0-1.x86_64.rpm "+
		"Packages/lib-2.0-1.noarch.rpm Packages/real-1.0-1.noarch.rpm Packages/tool-3.0-1.x86_64.rpm "+
		"repodata/filelists.xml.gz repodata/other.xml.gz repodata/primary.xml.gz repodata/repomd.xml"; got != want {
		t.Errorf("the repository has %s, not %s", got, want)
	}
	files, _ := moduletest.Field(r, "files").([]any)
	if len(files) != 8 || !strings.Contains(value.Repr(files[1]), "'name': 'lib', 'version': '1:2.0-1', 'arch': 'noarch', "+
		"'distribution': 'testos-9', 'file': 'packages/testos-9/amd64/Packages/lib-2.0-1.noarch.rpm'") {
		t.Errorf("files are %s", value.Repr(files))
	}

	t.Run("check", func(t *testing.T) {
		need := value.NewDict("host", "h1", "distributions", []any{"testos-9"}, "arch", "amd64", "names",
			[]any{"tool", "virtual", "vim"})
		msg := moduletest.Run(t, checkSpec(), value.NewDict("artifact", []any{exportedFrom(t, cache, r)}, "packages",
			[]any{need}), moduletest.Options{}).Msg
		if strings.Count(msg, "\n- ") != 1 || !strings.Contains(msg, "\n- package vim for testos-9 amd64, needed by h1: ") {
			t.Error(msg)
		}
	})
	t.Run("again", func(t *testing.T) {
		if r := fetch(t, u.rpmArgs(cache, "tool")); r.Changed {
			t.Errorf("the same packages are a change: %s\n%s", first, tree(t, dir))
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		other := t.TempDir()
		fetch(t, u.rpmArgs(other, "real"))
		fetch(t, u.rpmArgs(other, "tool"))
		if got := tree(t, filepath.Join(other, "packages/testos-9/amd64")); got != first {
			t.Errorf("other bytes:\n%s\n%s", got, first)
		}
	})
	t.Run("another architecture", func(t *testing.T) {
		args := u.rpmArgs(cache, "tool")
		args.Set("arch", "arm64")
		moduletest.Want(t, fetch(t, args), "fetched", 2)
	})
	t.Run("unsigned", func(t *testing.T) {
		_, err := moduletest.Try(t, packagesSpec(), u.rpmArgs(cache, "unsigned"), moduletest.Options{})
		if err == nil || !strings.Contains(err.Error(), "packages without a signature of the keys: ./unsigned-1.0-1.noarch.rpm") {
			t.Errorf("%v", err)
		}
	})
	t.Run("installs", func(t *testing.T) {
		var tasks []struct {
			Copy struct{ Content string }
		}
		text, err := os.ReadFile("../../../builtin/roles/packages/tasks/dnf.yaml")
		if err == nil {
			err = yaml.Unmarshal(text, &tasks)
		}
		if err != nil {
			t.Fatal(err)
		}
		// On a host that is left with the repository, nothing else uses it.
		out, err := exec.Command("sh", "-euc", `
mkdir "$1/repos"
printf '%s\n' "$2" >"$1/repos/kk.repo"
printf '%s\n' '[main]' "reposdir=$1/repos" "cachedir=$1/cache" "logdir=$1/log" "persistdir=$1/persist" gpgcheck=0 >"$1/dnf.conf"
root=$1
install() {
	dnf -q -y -c "$root/dnf.conf" --installroot="$root/root" --releasever=9 --forcearch=x86_64 --disableplugin=local "$@" install tool
}
if install 2>/dev/null; then exit 1; fi
install '--disablerepo=*' --enablerepo=kk-repository
cat "$root/root/opt/tool/version" "$root/root/opt/lib/version"`, "sh", t.TempDir(), strings.ReplaceAll(tasks[0].Copy.Content, "{{ packages_dir }}", dir)).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "3.0\n2.0\n") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
