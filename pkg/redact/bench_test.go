package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// texts are examples of what a run shows and stores, without any secret.
func texts() map[string]string {
	random := rand.New(rand.NewPCG(1, 2))
	blob := make([]byte, 96<<10)
	for i := range blob {
		blob[i] = byte(random.Uint32())
	}
	log, object := "", map[string]string{}
	for i := range 1000 {
		line := fmt.Sprintf("2026-03-01T10:%02d:%02d node%d kubelet[%d]: Started /usr/local/bin/kubelet-helper.service"+
			" of user-%d, 12%% of 10.0.0.%d:6443\n", i/60, i%60, i%7, i*31, i, i%256)
		log += line
		object[fmt.Sprintf("file-%d", i)] = "line \"" + line + "\"\n\tand its folder C:\\tmp\\x"
	}
	escaped, _ := json.Marshal(object)
	return map[string]string{
		"log": log,
		"json": `{"changed":true,"cmd":["kubectl","get","nodes","-o","json"],"stdout":"` +
			strings.ReplaceAll(log, "\n", `\n`) + `","rc":0}`,
		"escapes":         string(escaped),
		"base64 of text":  base64.StdEncoding.EncodeToString([]byte(log)),
		"base64 of bytes": base64.StdEncoding.EncodeToString(blob),
	}
}

// secretsFor returns a set of n secrets like those in playbooks.
func secretsFor(n int) *Set {
	var s Set
	for i := range n {
		s.Add(fmt.Sprintf("%x-secret of-%d", i*7919, i))
	}
	return &s
}

// oneForm measures the minimum cost of Text: each secret is only searched unencoded and in base64.
func oneForm(s *Set, text string) { s.literal.find(text, func(pattern, int) {}) }

// least returns the shortest duration of f, to exclude the load of the machine.
func least(f func()) time.Duration {
	best := time.Hour
	for range 100 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// BenchmarkText measures how much text is read per second, compared with searching secrets in one form only.
func BenchmarkText(b *testing.B) {
	all := texts()
	sets := map[string]*Set{
		"0 secrets": {}, "10 secrets": secretsFor(10), "1000 secrets": secretsFor(1000),
		"10 and a short one": secretsFor(10), "10 and one not in ASCII": secretsFor(10),
	}
	sets["10 and a short one"].Add("hunt2")
	sets["10 and one not in ASCII"].Add("p\u00e4ssword of it")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, of := range slices.Sorted(maps.Keys(sets)) {
			b.Run(name+"/"+of, func(b *testing.B) {
				s, text := sets[of], all[name]
				b.ReportAllocs()
				for b.Loop() {
					s.Text(text)
				}
				whole := least(func() { s.Text(text) })
				b.ReportMetric(float64(len(text))/1e6/whole.Seconds(), "MB/s")
				if s.literal != nil {
					b.ReportMetric(float64(whole)/float64(least(func() { oneForm(s, text) })), "times-one-form")
				}
			})
		}
	}
}
