package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// tab is a page in a real browser, which is driven over a pipe by the
// browser's own protocol (Chrome DevTools Protocol), and has no network.
type tab struct {
	tb       testing.TB
	commands *os.File
	session  string
	last     int

	mu      sync.Mutex
	answers map[int]chan answer
	loaded  chan struct{}
	faults  []string // console errors, exceptions, breaches of the page's policy, requests
}

type answer struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
	SessionID string          `json:"sessionId"`
}

// patience is how long the browser may take for anything.
const patience = 2 * time.Minute

// newTab starts a browser for the test, or skips it.
func newTab(tb testing.TB) *tab {
	tb.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		tb.Skip("chromium is not installed: `make unit` installs it")
	}
	fromUs, commands, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	answers, toUs, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking",
		"--no-first-run", "--disable-extensions", "--hide-scrollbars", "--proxy-server=127.0.0.1:9",
		"--user-data-dir="+tb.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{fromUs, toUs} // 3 and 4, as the browser wants them
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	_ = fromUs.Close()
	_ = toUs.Close()
	t := &tab{tb: tb, commands: commands, answers: map[int]chan answer{}, loaded: make(chan struct{}, 8)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.listen(answers)
	}()
	tb.Cleanup(func() {
		t.session = ""
		t.call("Browser.close", nil, nil) // which leaves no process behind
		_ = cmd.Wait()
		_ = commands.Close()
		<-done
		_ = answers.Close()
	})
	t.attach()
	return t
}

func (t *tab) attach() {
	var target struct{ TargetID string }
	t.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	t.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	t.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		t.call(domain+".enable", nil, nil)
	}
	t.size(1400, 1000)
}

// listen reads what the browser says until it ends: texts that end with a zero byte.
func (t *tab) listen(from *os.File) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(text[:len(text)-1], &a) != nil {
			continue
		}
		t.mu.Lock()
		if wait := t.answers[a.ID]; a.ID != 0 && wait != nil {
			wait <- a
		}
		t.note(a)
		t.mu.Unlock()
	}
}

// note keeps what must not happen on the page.
func (t *tab) note(a answer) {
	switch a.Method {
	case "Page.loadEventFired":
		t.loaded <- struct{}{}
	case "Runtime.exceptionThrown", "Log.entryAdded":
		t.faults = append(t.faults, a.Method+" "+string(a.Params))
	case "Runtime.consoleAPICalled":
		t.faults = append(t.faults, "console "+string(a.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if json.Unmarshal(a.Params, &p) != nil || !strings.HasPrefix(p.Request.URL, "file://") {
			t.faults = append(t.faults, "request "+p.Request.URL)
		}
	}
}

// call sends a command and decodes its result.
func (t *tab) call(method string, params map[string]any, into any) {
	t.tb.Helper()
	t.last++
	wait := make(chan answer, 1)
	t.mu.Lock()
	t.answers[t.last] = wait
	t.mu.Unlock()
	message := map[string]any{"id": t.last, "method": method, "params": params}
	if params == nil {
		delete(message, "params")
	}
	if t.session != "" {
		message["sessionId"] = t.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		t.tb.Fatal(err)
	}
	if _, err := t.commands.Write(append(text, 0)); err != nil {
		t.tb.Fatalf("%s: %v", method, err)
	}
	select {
	case a := <-wait:
		if a.Error != nil {
			t.tb.Fatalf("%s: %s", method, a.Error)
		}
		if into != nil {
			if err := json.Unmarshal(a.Result, into); err != nil {
				t.tb.Fatal(err)
			}
		}
	case <-time.After(patience):
		t.tb.Fatalf("%s: the browser does not answer", method)
	}
}

func (t *tab) size(width, height int) {
	t.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": false}, nil)
}

// open shows a file, and waits until its script says that it is ready.
func (t *tab) open(path string) {
	t.tb.Helper()
	t.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	select {
	case <-t.loaded:
	case <-time.After(patience):
		t.tb.Fatal("the page does not load")
	}
	t.await(`document.body.dataset.ready`)
}

// eval returns the value of an expression of JavaScript, as text.
func (t *tab) eval(expression string) string {
	t.tb.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	t.call("Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")", "returnByValue": true,
		"awaitPromise": true}, &got)
	if got.ExceptionDetails != nil {
		t.tb.Fatalf("%s: %s", expression, got.ExceptionDetails)
	}
	return fmt.Sprint(got.Result.Value)
}

// await waits until an expression holds.
func (t *tab) await(expression string) {
	t.tb.Helper()
	for end := time.Now().Add(patience); t.eval("!!("+expression+")") != "true"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.tb.Fatalf("it never holds: %s; %q", expression, t.broken())
		}
	}
}

// press presses a key and lets it go. One that writes has its text as its name.
func (t *tab) press(key string, modifiers int) {
	t.tb.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38,
		"ArrowRight": 39, "ArrowDown": 40}
	params := map[string]any{"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": codes[key]}
	down := "rawKeyDown"
	if len(key) == 1 {
		down, params["text"] = "keyDown", key
	}
	if key == "Enter" {
		down, params["text"] = "keyDown", "\r"
	}
	for _, kind := range []string{down, "keyUp"} {
		params["type"] = kind
		t.call("Input.dispatchKeyEvent", params, nil)
	}
}

func (t *tab) write(text string) {
	for _, r := range text {
		t.press(string(r), 0)
	}
}

// tabTo moves the focus with the Tab key until it is on the element.
func (t *tab) tabTo(id string) {
	t.tb.Helper()
	for range 60 {
		if t.eval(`document.activeElement.id`) == id {
			return
		}
		t.press("Tab", 0)
	}
	t.tb.Fatalf("Tab does not lead to #%s", id)
}

// picture writes what is seen into a file.
func (t *tab) picture(path string) {
	t.tb.Helper()
	var shot struct{ Data []byte }
	t.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	if err := os.WriteFile(path, shot.Data, 0o600); err != nil {
		t.tb.Fatal(err)
	}
}

// broken is what happened that must not.
func (t *tab) broken() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.faults...)
}
