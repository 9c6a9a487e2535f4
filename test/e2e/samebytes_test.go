package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
)

// TestSameBytesOnASecondMachine makes the same offline file on this machine and on a host, where everything differs
// that must not matter: name of the machine, user, umask, time zone, language, number of CPUs, directories, the
// mirror's address, the name of kk, and the order in which files arrive. A delta and what it merges to are the same,
// too.
func TestSameBytesOnASecondMachine(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the mirror has files for amd64")
	}
	const kubernetes = "v1.34.4"
	g, c := newTarget(t), newController(t)
	shown := c.kk(t, "catalog", "show", kubernetes, "-o", "json")
	shown.exits(t, 0)
	u := artifacttest.NewUpstream(t, []byte(shown.stdout))
	debs := nodePackages(t)
	u.Handle("/debian/", http.StripPrefix("/debian/", http.FileServer(http.Dir(debs))))
	site := func(address, keyring string) (config, overlay string) {
		host, _ := u.Listen(t, address)
		return artifacttest.Config(host) + fmt.Sprintf("artifact: {repositories: {debian-12: {keyring: %s, "+
			"sources: [\"deb http://%s/debian ./\"]}}}\n", keyring, host), artifacttest.Mirrors(host)
	}

	program, err := binary()
	check(t, err)
	config, overlay := site("127.0.0.1:0", filepath.Join(debs, "key.gpg"))
	c.write(t, "config.yaml", config)
	c.write(t, "overlay.yaml", overlay)
	c.write(t, "checksums.yaml", u.Checksums)
	export := "artifact export -c config.yaml --kubernetes " + kubernetes + " --arch amd64"
	c.kk(t, strings.Fields(export+" --only files -o old.tar --kk none")...).exits(t, 0)
	cmd := c.command(t, strings.Fields(export+" --os debian-12 --jobs 8 -o whole.tar --workdir w --kk "+program)...)
	cmd.Env = append(cmd.Env, turkish(t)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := artifact.Open(filepath.Join(c.work, "whole.tar"))
	check(t, err)
	defer func() { _ = f.Close() }() // only read
	kinds := map[artifact.Kind]int{}
	for _, i := range f.Manifest.Items {
		kinds[i.Kind]++
	}
	if kinds[artifact.KindFile] < 5 || kinds[artifact.KindImage] < 10 || kinds[artifact.KindPackage] < 12 ||
		kinds[artifact.KindExtra] != 1 {
		t.Errorf("the file has %v", kinds)
	}
	c.kk(t, "artifact", "delta", "old.tar", "whole.tar", "-o", "delta.tar").exits(t, 0)

	config, overlay = site(c.lab.Gateway()+":0", "/home/ops/elsewhere/key.gpg")
	t.Cleanup(func() { g.sh("rm -rf /home/ops/elsewhere") })
	for name, text := range map[string]string{"config.yaml": config, "overlay.yaml": overlay,
		"checksums.yaml": u.Checksums, "key.gpg": read(t, filepath.Join(debs, "key.gpg")), "other-kk": read(t, program),
		"old.tar": read(t, filepath.Join(c.work, "old.tar"))} {
		want(t, c.lab.Hosts[g.number], "ops", text, "mkdir -p elsewhere && cat >elsewhere/"+name, "")
	}
	out, err := ssh(t, c.lab.Hosts[g.number], "ops", "", `exec 2>&1; cd ~/elsewhere; chmod 0700 other-kk; umask 0077
export TZ=Asia/Kathmandu
kk() { taskset -c 0 ./other-kk "$@" >log || { cat log; exit 1; }; }
kk `+export+` --os debian-12 --jobs 1 -o there.tar --workdir ~/elsewhere/of/its/own/
kk artifact delta old.tar there.tar -o delta.tar
kk artifact merge old.tar delta.tar -o merged.tar
sha256sum there.tar merged.tar delta.tar`)
	sum := func(name string) string {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, filepath.Join(c.work, name)))))
	}
	expected := fmt.Sprintf("%s  there.tar\n%[1]s  merged.tar\n%s  delta.tar", sum("whole.tar"), sum("delta.tar"))
	if err != nil || out != expected {
		t.Errorf("%v: on the other machine\n%s\nhere\n%s", err, out, expected)
	}
}

// nodePackages makes a signed repository of packages that have the names of those that nodes need, and its key.
func nodePackages(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../builtin/roles/packages/vars/main.yaml")
	check(t, err)
	var vars struct {
		Tables map[string]struct {
			Packages []string
			Chrony   struct{ Package string }
		} `yaml:"packages_tables"`
	}
	check(t, yaml.Unmarshal(text, &vars))
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-euc", `cd "$1"; shift
for name; do
	mkdir -p "$name/DEBIAN" "$name/opt/$name"
	echo "$name" >"$name/opt/$name/text"
	printf '%s\n' "Package: $name" 'Version: 1:1.0~1' 'Architecture: all' 'Maintainer: Nobody <nobody@example.org>' \
		'Description: for a test' >"$name/DEBIAN/control"
	dpkg-deb -b --root-owner-group "$name" "$name.deb" >/dev/null
	cat "$name/DEBIAN/control" >>Packages
	printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$name.deb" "$(stat -c %s "$name.deb")" \
		"$(sha256sum <"$name.deb" | cut -d' ' -f1)" >>Packages
done
printf 'Date: %s\nSuite: stable\nSHA256:\n %s %s Packages\n' "$(LC_ALL=C date -uR)" \
	"$(sha256sum <Packages | cut -d' ' -f1)" "$(stat -c %s Packages)" >Release
mkdir -m 0700 gpg
export GNUPGHOME=$PWD/gpg
gpg --batch --quiet --passphrase '' --quick-generate-key nobody@example.org ed25519 sign never
gpg --batch --quiet --export >key.gpg
gpg --batch --quiet --clearsign -o InRelease Release
gpgconf --kill all
rm Release`, "sh", dir}, append(vars.Tables["debian"].Packages, vars.Tables["debian"].Chrony.Package)...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// turkish is an environment in which programs sort and fold letters otherwise, if this machine can make that locale.
func turkish(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "localedef", "--no-archive", "-i", "tr_TR", "-f", "UTF-8",
		filepath.Join(dir, "tr_TR.UTF-8")).CombinedOutput()
	if err != nil {
		t.Logf("the same locale on both machines: install the package locales: %v: %s", err, out)
		return nil
	}
	return []string{"LOCPATH=" + dir, "LC_ALL=tr_TR.UTF-8"}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	return string(text)
}
