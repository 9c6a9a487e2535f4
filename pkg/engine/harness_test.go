package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/event"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/inventory"
	"kubekey/pkg/module"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/module/file"
	"kubekey/pkg/module/flow"
	"kubekey/pkg/module/image"
	"kubekey/pkg/module/net"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

// bench is the environment of an engine: a project on disk, and fake hosts.
type bench struct {
	t       *testing.T
	dir     string
	o       Options
	books   []*project.Playbook
	events  *event.Recorder
	answer  func(ctx context.Context, c connectortest.Call) connectortest.Answer
	mu      sync.Mutex
	targets []Target
	fakes   []*connectortest.Fake
}

// newBench writes the files of a txtar archive and links its site.yml. The hosts are those in the file "hosts", else
// h1, h2 and h3.
func newBench(t *testing.T, archive string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), events: &event.Recorder{}}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(b.dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hosts := "h1,h2,h3,"
	if _, err := os.Stat(filepath.Join(b.dir, "hosts")); err == nil {
		hosts = filepath.Join(b.dir, "hosts")
	}
	secrets := &redact.Set{}
	inv, ds := inventory.Load(context.Background(), []string{hosts}, inventory.Options{Secrets: secrets})
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	var e *template.Engine
	e = template.New(expr.New(expr.Options{Seed: "test",
		Template: func(ctx context.Context, f expr.TemplateFile, s expr.Scope) (string, error) {
			return e.RenderFile(ctx, f, s)
		}}, library.Standard()), source.Tree{})
	reg, err := module.NewRegistry(exec.Modules(), file.Modules(), flow.Modules(), image.Modules(), net.Modules(),
		pki.Modules(),
		panicking())
	if err != nil {
		t.Fatal(err)
	}
	linker := project.New(project.Options{Engine: e, Modules: reg})
	pb, ds := linker.Playbook(filepath.Join(b.dir, "site.yml"))
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	b.books = []*project.Playbook{pb}
	b.o = Options{
		Project: Project{Inventory: inv, Linker: linker, Templates: e},
		Reach:   Reach{Connect: b.connect},
		Record:  Record{Sink: b.events, RunID: "test", Redact: secrets, WorkDir: b.dir},
	}
	return b
}

func (b *bench) connect(_ context.Context, t Target) (connector.Connector, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(b.targets, t)
	if t.Address == "refused" {
		return nil, errors.New("this address is refused")
	}
	f := &connectortest.Fake{Host: t.Host, Answer: b.answer}
	b.fakes = append(b.fakes, f)
	return f, nil
}

func (b *bench) run(ctx context.Context) int {
	b.t.Helper()
	return New(b.o).Run(ctx, b.books)
}

// expect runs the playbook and compares the exit code.
func (b *bench) expect(code int) *bench {
	b.t.Helper()
	if got := b.run(context.Background()); got != code {
		b.t.Errorf("exit %d, want %d: %s", got, code, b.story())
	}
	return b
}

// results returns the results of a task on the hosts, as "h1 ok".
func (b *bench) results(task string) []string {
	var out []string
	for _, e := range b.events.Events {
		if r, ok := e.(event.HostResult); ok && r.Task.Name == task && !r.Loop {
			out = append(out, r.Host+" "+r.Status.String())
		}
	}
	return out
}

// messages returns the messages of failures and of debug.
func (b *bench) messages() string {
	var out []string
	for _, e := range b.events.Events {
		switch e := e.(type) {
		case event.HostResult:
			out = append(out, e.Host+": "+e.Message)
		case event.Warning:
			out = append(out, "warning: "+e.Diagnostic.Error())
		case event.RunEnded:
			out = append(out, "end: "+e.Err)
		}
	}
	return strings.Join(out, "\n")
}

// story returns the events as JSON lines.
func (b *bench) story() string {
	var out bytes.Buffer
	for _, e := range b.events.Events {
		out.Write(event.Encode(e, time.Time{}, nil))
		out.WriteByte('\n')
	}
	return out.String()
}

// wants checks that the messages contain the texts.
func (b *bench) wants(texts ...string) *bench {
	b.t.Helper()
	got := b.messages()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			b.t.Errorf("no message has %q:\n%s", text, got)
		}
	}
	return b
}
