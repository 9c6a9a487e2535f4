package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/cli"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

func TestEveryModuleHasAPage(t *testing.T) {
	p, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := cli.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range modules.Specs() {
		page := p["modules/"+s.Name+".md"]
		for _, part := range []string{"# " + s.Name + "\n", "## Arguments", "## Behaviour", "## Examples"} {
			if !strings.Contains(page, part) {
				t.Errorf("the page of %s lacks %q", s.Name, part)
			}
		}
	}
}

func TestPagesAreTheSameEachTime(t *testing.T) {
	first, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	second, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(first, second) {
		t.Error("two runs made different pages")
	}
}

func TestArgumentTable(t *testing.T) {
	type nested struct {
		Port int `kk:"port,required" doc:"number of the port"`
	}
	type runner struct {
		module.Runner
		State string   `kk:"state" default:"on" choices:"on,off" doc:"a|b"`
		Dest  string   `kk:"dest,required,alias=path" doc:"where to"`
		Ports []nested `kk:"ports" doc:"what to open"`
	}
	args, err := schema.Describe(&runner{})
	if err != nil {
		t.Fatal(err)
	}
	d := &document{}
	d.table([]string{"argument"}, argumentRows(args, ""))
	want := "\n| argument |\n| --- |\n" +
		"| `dest` | str | **required** | where to. Also `path`. |\n" +
		"| `state` | str | `on` | a\\|b. One of `on`, `off`. |\n" +
		"| `ports` | list of dict |  | what to open. |\n" +
		"| `ports.port` | int | **required** | number of the port. |\n"
	if d.String() != want {
		t.Errorf("got\n%s\nwant\n%s", d.String(), want)
	}
}

func TestWriteRemovesPagesOfWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "modules", "gone.md")
	if err := (pages{"modules/gone.md": "x", "modules/kept.md": "y"}).write(dir); err != nil {
		t.Fatal(err)
	}
	if err := (pages{"modules/kept.md": "z"}).write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", stale, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "modules", "kept.md")); err != nil || string(text) != "z" {
		t.Errorf("kept page holds %q, %v", text, err)
	}
}

func TestBadCallIsAnError(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "b"}, {"--help"}} {
		if err := run(args); err == nil {
			t.Errorf("gen %v: no error came", args)
		}
	}
}
