package report

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// expect compares what an expression of the page is with what it should be.
func (t *tab) expect(expression, want string) {
	t.tb.Helper()
	if got := t.eval(expression); got != want {
		t.tb.Errorf("%s is %q, want %q", expression, got, want)
	}
}

func (t *tab) number(expression string) float64 {
	t.tb.Helper()
	n, err := strconv.ParseFloat(t.eval(expression), 64)
	if err != nil {
		t.tb.Fatal(err)
	}
	return n
}

// sound fails the test when the page complained, or asked for anything.
func (t *tab) sound() {
	t.tb.Helper()
	for _, fault := range t.broken() {
		t.tb.Error(fault)
	}
}

const (
	shown = `.textContent.replace(/\s+/g, ' ').trim()`
	ctrl  = 2
)

// TestPage opens a page in a browser without a network and works with it as
// people do: with keys, wheel and pointer.
func TestPage(t *testing.T) {
	b := newTab(t)
	b.open(story(t).page())

	t.Run("overview", func(t *testing.T) {
		b.tb = t
		b.expect(`document.getElementById('title').textContent`, "site.yml")
		b.expect(`document.getElementById('badge')`+shown, "failed")
		for _, part := range []string{"ann@desk", "kk run site.yml", "9.00 s", "3 hosts, 4 tasks, 11 results"} {
			if facts := b.eval(`document.getElementById('facts')` + shown); !strings.Contains(facts, part) {
				t.Errorf("%q is not in %q", part, facts)
			}
		}
		b.expect(`[...document.querySelectorAll('#states button')].map(b => b`+shown+`).join()`,
			"ok 3,changed 3,failed 1,skipped 1,unreachable 1,rescued 1,ignored 1")
		b.expect(`document.querySelectorAll('#hosts tbody tr').length`, "3")
		b.expect(`document.querySelector('#hosts tbody th')`+shown, "web2")
	})
	t.Run("failures and changes", func(t *testing.T) {
		b.tb = t
		b.await(`document.querySelectorAll('#failures pre').length > 3`)
		b.expect(`document.querySelectorAll('#failures .card').length`, "4")
		b.expect(`document.querySelector('#failures pre.stderr').textContent`, "no space left")
		b.await(`document.querySelector('#changes pre.diff')`)
		b.expect(`[...document.querySelectorAll('#changes .added')].map(l => l.textContent[0]).join('')`, "++")
		b.expect(`document.querySelector('#changes .removed').textContent.trim()`, "-old")
		b.expect(`document.querySelector('#changes .hosts').textContent`, "web1, web2")
		b.expect(`document.querySelector('#slowest tbody th').textContent`, "web : Install")
	})
	t.Run("nothing breaks out", func(t *testing.T) {
		b.tb = t
		b.expect(`window.pwned`, "undefined")
		b.expect(`document.images.length`, "0")
		b.expect(`document.querySelectorAll('script:not([type="application/json"])').length`, "1")
		b.expect(`[...document.querySelectorAll('#failures pre')].some(p => p.textContent.includes('<img src=x onerror='))`,
			"true")
		b.expect(`[...document.querySelectorAll('#failures pre')].some(p => p.textContent.includes(
			'\\u2028 ]]> @SCRIPT@ ${window.pwned=1} \\x1b[2J\\r\\u009b\\u202e\\u200b\\U000e0041\ufe0f'))`, "true")
		b.expect(`/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(document.body.innerText.replace(/[\n\t]/g, ''))`, "false")
	})
	t.Run("filter by keyboard", func(t *testing.T) {
		b.tb = t
		b.tabTo("filter-host")
		b.write("web*")
		b.await(`document.getElementById('count').textContent.startsWith('8 of 11')`)
		b.tabTo("filter-task")
		b.write("loop")
		b.await(`document.getElementById('count').textContent.startsWith('2 of 11')`)
		b.expect(`document.querySelectorAll('#results tbody tr').length`, "2")
		b.tabTo("filter-reset")
		b.press("Enter", 0)
		b.await(`document.getElementById('count').textContent.startsWith('11 of 11')`)
		b.eval(`document.querySelector('#states .ok').focus()`)
		b.press(" ", 0)
		b.await(`document.getElementById('count').textContent.startsWith('8 of 11')`)
		b.expect(`document.querySelector('#states .ok').getAttribute('aria-pressed')`, "false")
		b.press(" ", 0)
		b.eval(`(e => { e.value = '-'; e.dispatchEvent(new Event('input', {bubbles: true})) })(document.getElementById('filter-role'))`)
		b.await(`document.getElementById('count').textContent.startsWith('5 of 11')`)
		b.eval(`document.getElementById('filter').reset()`)
		b.await(`document.getElementById('count').textContent.startsWith('11 of 11')`)
	})
	t.Run("timeline by keyboard", func(t *testing.T) {
		b.tb = t
		b.tabTo("lanes")
		b.press("ArrowRight", 0)
		b.await(`document.querySelector('#detail h3')?.textContent === 'web : Install'`)
		b.press("ArrowRight", 0)
		b.press("ArrowDown", 0)
		b.await(`document.querySelector('#detail strong')?.textContent === 'web2' && document.querySelector('#detail pre.diff')`)
		b.press("f", 0)
		b.await(`document.querySelector('#detail pre.stderr')?.textContent === 'no space left'`)
		b.expect(`document.getElementById('detail').textContent.includes('non-zero return code')`, "true")
		b.press("Enter", 0)
		b.expect(`document.activeElement.id`, "detail")
		b.press("Escape", 0)
		b.await(`document.getElementById('detail').hidden`)
		b.expect(`document.activeElement.id`, "lanes")
	})
	t.Run("zoom and pan", func(t *testing.T) {
		b.tb = t
		width := `(e => e.to - e.from)(document.getElementById('lanes').dataset)`
		b.expect(width, "9000000")
		b.press("+", 0)
		b.await(width + " < 9000000")
		from := b.number(`document.getElementById('lanes').dataset.from`)
		b.press("ArrowRight", 8)
		b.await(`document.getElementById('lanes').dataset.from > ` + strconv.FormatFloat(from, 'f', -1, 64))
		b.press("0", 0)
		b.await(width + " == 9000000")
		b.wheel("lanes", -300, ctrl)
		b.await(width + " < 9000000")
		b.press("0", 0)
		b.await(width + " == 9000000")
		b.wheel("axis", -300, 0)
		b.await(width + " < 9000000")
		b.eval(`document.getElementById('zoom-all').click()`)
		b.await(width + " == 9000000")
		b.eval(`document.getElementById('axis-task').click()`)
		b.await(width + " == 4")
		b.eval(`document.getElementById('axis-time').click()`)
		b.await(width + " == 9000000")
	})
	t.Run("pointer", func(t *testing.T) {
		b.tb = t
		x, y := b.middle("lanes")
		b.mouse("mouseMoved", x, y, nil)
		b.await(`!document.getElementById('tip').hidden`)
		b.mouse("mousePressed", x, y, map[string]any{"button": "left", "clickCount": 1})
		b.mouse("mouseReleased", x, y, map[string]any{"button": "left", "clickCount": 1})
		b.await(`document.querySelector('#detail strong')?.textContent === 'web2'`)
		b.press("Escape", 0)
	})
	t.Run("dark and light", func(t *testing.T) {
		b.tb = t
		surface := `getComputedStyle(document.querySelector('header')).backgroundColor`
		b.expect(surface, "rgb(255, 255, 255)")
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme",
			"value": "dark"}}}, nil)
		b.await(surface + ` === 'rgb(27, 31, 38)'`)
		b.eval(`document.getElementById('theme').click()`)
		b.await(surface + ` === 'rgb(255, 255, 255)'`)
	})
	t.Run("labels", func(t *testing.T) {
		b.tb = t
		unnamed := `[...document.querySelectorAll('button, input, select, [tabindex]')].filter(e => !(e.textContent.trim() || e.labels?.length || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))).map(e => e.outerHTML).join()`
		b.expect(unnamed, "")
		b.expect(`[...document.querySelectorAll('th')].every(e => e.scope)`, "true")
	})
	t.Run("critical path", func(t *testing.T) {
		b.tb = t
		b.expect(`[...document.querySelectorAll('#critical tbody tr')].map(r =>
			[0, 1, 3].map(i => r.children[i].textContent.slice(0, 15)).join()).join('; ')`,
			"web : Install,db1,3.00 s; no task: kk wor,,1.00 s; web : Write </s,web1,300 ms; no task: kk wor,,700 ms; "+
				"Loop,web1,1.00 s; no task: kk wor,,2.00 s; Try,web1,1.00 s")
		const marked = `(() => {
			const from = document.getElementById('cells'), c = new OffscreenCanvas(from.width, from.height);
			const pen = c.getContext('2d', { willReadFrequently: true });
			pen.drawImage(from, 0, 0);
			const d = pen.getImageData(0, 0, c.width, c.height).data;
			let n = 0;
			for (let i = 0; i < d.length; i += 4) if (d[i] === 194 && d[i + 1] === 24 && d[i + 2] === 155) n++;
			return n;
		})()`
		b.await(marked + ` > 100`)
		b.eval(`document.getElementById('path').click()`)
		b.await(marked + ` === 0`)
		b.eval(`document.getElementById('path').click()`)
		b.await(marked + ` > 100`)
		b.eval(`document.querySelector('#critical button.link').click()`)
		b.await(`document.querySelector('#detail h3')?.textContent === 'web : Install'`)
		b.eval(`document.querySelector('#detail .close').click()`)
	})
	b.tb = t
	b.sound()
}

// TestPageOfManyHosts opens one whose data is packed.
func TestPageOfManyHosts(t *testing.T) {
	b := newTab(t)
	b.open(crowd(t, 60, 100).page())
	b.expect(`document.getElementById('count').textContent`, "6,000 of 6,000 results, 60 hosts")
	b.tabTo("lanes")
	b.press("f", 0)
	b.await(`document.querySelector('#detail pre.stderr')?.textContent.includes('no space left')`)
	b.sound()
}

// BenchmarkPage opens pages and reports when they were painted and ready, and
// how large they are. KK_PICTURES=FOLDER keeps pictures of the last one.
func BenchmarkPage(b *testing.B) {
	for _, size := range [][2]int{{50, 100}, {500, 300}} {
		b.Run(strconv.Itoa(size[0])+"x"+strconv.Itoa(size[1]), func(b *testing.B) {
			path := crowd(b, size[0], size[1]).page()
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			page := newTab(b)
			b.ResetTimer()
			painted, ready := 0.0, 0.0
			for range b.N {
				page.open(path)
				painted += page.number(`performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0`)
				ready += page.number(`document.body.dataset.ready`)
			}
			b.ReportMetric(painted/float64(b.N), "ms-to-paint")
			b.ReportMetric(ready/float64(b.N), "ms-to-ready")
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(0, "ns/op")
			if dir := os.Getenv("KK_PICTURES"); dir != "" {
				page.picture(dir + "/crowd.png")
			}
			page.sound()
		})
	}
}

// middle is the middle of an element on the screen.
func (t *tab) middle(id string) (x, y float64) {
	t.tb.Helper()
	t.eval(`document.getElementById('` + id + `').scrollIntoView({block: 'center', behavior: 'instant'})`)
	box := `document.getElementById('` + id + `').getBoundingClientRect()`
	return t.number(`(r => r.left + r.width / 2)(` + box + `)`), t.number(`(r => r.top + r.height / 2)(` + box + `)`)
}

func (t *tab) mouse(kind string, x, y float64, more map[string]any) {
	t.tb.Helper()
	params := map[string]any{"type": kind, "x": x, "y": y}
	for k, v := range more {
		params[k] = v
	}
	t.call("Input.dispatchMouseEvent", params, nil)
}

func (t *tab) wheel(id string, by float64, modifiers int) {
	t.tb.Helper()
	x, y := t.middle(id)
	t.mouse("mouseWheel", x, y, map[string]any{"deltaX": 0, "deltaY": by, "modifiers": modifiers})
}
