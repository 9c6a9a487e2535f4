package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/journal"
	"kubekey/pkg/value"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documentOf reads back what a page holds.
func documentOf(t *testing.T, page string) (doc document, details []detail) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?s)<script type="application/json" class="(run|details)">(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		var err error
		if m[1] == "run" {
			err = json.Unmarshal([]byte(m[2]), &doc)
		} else {
			var part []detail
			err = json.Unmarshal([]byte(m[2]), &part)
			details = append(details, part...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return doc, details
}

func TestPageHasTheRun(t *testing.T) {
	doc, details := documentOf(t, read(t, story(t).page()))
	if doc.Run.User != "ann@desk" || doc.Run.Command != "kk run site.yml" || doc.Run.Exit != 2 ||
		doc.Run.Took != (9*time.Second).Microseconds() {
		t.Errorf("run: %+v", doc.Run)
	}
	counts := map[string]int{}
	for _, s := range doc.Cells.State {
		counts[stateNames[s]]++
	}
	want := map[string]int{"ok": 3, "changed": 3, "skipped": 1, "failed": 1, "unreachable": 1, "ignored": 1, "rescued": 1}
	for name, n := range want {
		if counts[name] != n {
			t.Errorf("%s: %d cells, want %d", name, counts[name], n)
		}
	}
	var loop, failed detail
	for _, d := range details {
		if len(d.Items) > 0 {
			loop = d
		}
		if d.Stderr != "" {
			failed = d
		}
	}
	if len(loop.Items) != 2 || loop.Items[1].Label != "two" || loop.Items[1].Stdout != "said two" {
		t.Errorf("the loop: %+v", loop)
	}
	if failed.Stdout != hostile || failed.RC == nil || *failed.RC != 3 || failed.Msg != "non-zero return code" {
		t.Errorf("the failure: %+v", failed)
	}
}

func TestHostsThatAnswerAlikeShareADetail(t *testing.T) {
	doc, details := documentOf(t, read(t, story(t).page()))
	diffs := 0
	for _, d := range details {
		diffs += len(d.Diff)
	}
	if diffs != 1 || doc.Cells.Detail[3] != doc.Cells.Detail[4] {
		t.Errorf("%d diffs, details %v", diffs, doc.Cells.Detail)
	}
}

// TestNothingBreaksOut looks at the bytes of the page; TestPage does so in a browser.
func TestNothingBreaksOut(t *testing.T) {
	page := read(t, story(t).page())
	if strings.Contains(page, "<img") || strings.Contains(page, "\u2028") {
		t.Error("a name or an output is markup")
	}
	parts := regexp.MustCompile(`(?s)script-src 'sha256-(.*?)'; style-src 'sha256-(.*?)';.*<style>(.*)</style>.*<script type="module">(.*)</script>`).FindStringSubmatch(page)
	if parts == nil {
		t.Fatal("no policy")
	}
	for sum, text := range map[string]string{parts[1]: parts[4], parts[2]: parts[3]} {
		if is := sha256.Sum256([]byte(text)); base64.StdEncoding.EncodeToString(is[:]) != sum {
			t.Error("the policy is of another script or style")
		}
	}
	for _, outside := range []string{"http:", "https:", "//cdn", "@import", "url(", "innerHTML", "eval("} {
		if strings.Contains(parts[3]+parts[4], outside) {
			t.Errorf("the page has %q", outside)
		}
	}
}

func TestFileIsItsOwnersAloneAndWhole(t *testing.T) {
	r := story(t)
	path := filepath.Join(r.dir, "run.html")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.page()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, ".kk-*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
	if _, err := Write(filepath.Join(r.dir, "no", "run.html"), r.dir, journal.Last); err == nil {
		t.Error("no error for a folder that is not there")
	}
	if _, err := Write(path, r.dir, "nosuch"); !errors.Is(err, journal.ErrNoRun) {
		t.Error(err)
	}
}

func TestRunThatWasKilled(t *testing.T) {
	r := newRecorder(t, "r1")
	r.play("Web", "a", "b")
	task := r.task("Slow", "", "command")
	r.w.Emit(event.HostStarted{Task: task, Host: "a", Time: began})
	r.w.Emit(event.Output{Task: task, Host: "a", Line: "half way"})
	r.result(task, "b", event.Failed, time.Second, value.NewDict("msg", "no"))
	r.close()
	doc, details := documentOf(t, read(t, r.page()))
	if doc.Run.Finished || len(doc.Cells.State) != 2 || doc.Cells.State[1] != stateUnfinished {
		t.Errorf("%+v", doc)
	}
	if d := details[doc.Cells.Detail[1]]; d.Stdout != "half way" {
		t.Errorf("%+v", d)
	}
}

func TestLargeRunIsPacked(t *testing.T) {
	r := crowd(t, 60, 100)
	page := read(t, r.page())
	if !strings.Contains(page, `class="run" data-encoding="gzip"`) || !strings.Contains(page,
		`class="details" data-encoding="gzip"`) {
		t.Error("it is not packed")
	}
	events := read(t, filepath.Join(r.dir, "runs/r1/events.jsonl"))
	if len(page) > len(events)/8 {
		t.Errorf("a page of %d bytes for a journal of %d", len(page), len(events))
	}
}
