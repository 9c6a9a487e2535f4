package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kubekey/pkg/event"
)

func (p *printer) recap(e event.RunEnded) {
	if e.Err != "" {
		p.message(red, "ERROR! "+e.Err)
	}
	if e.Retry != "" {
		p.print("", "\tto retry, use: --limit @"+e.Retry)
	}
	p.banner("PLAY RECAP")
	for _, host := range slices.Sorted(maps.Keys(e.Stats)) {
		p.line(p.out, recapLine(host, e.Stats[host])...)
	}
	p.print("", "")
	if p.o.Timing {
		p.timings(e)
	}
	p.closing(e)
}

func recapLine(host string, s *event.Stats) []span {
	c := green
	switch {
	case s.Failed > 0 || s.Unreachable > 0:
		c = red
	case s.Changed > 0:
		c = yellow
	}
	fields := []struct {
		name  string
		n     int
		color color
	}{
		{"ok", s.OK, green}, {"changed", s.Changed, yellow}, {"unreachable", s.Unreachable, brightRed},
		{"failed", s.Failed, red},
		{"skipped", s.Skipped, cyan}, {"rescued", s.Rescued, green}, {"ignored", s.Ignored, brightPurple},
	}
	pad := strings.Repeat(" ", max(0, 26-textWidth(Inline(host))))
	line := []span{{c, host}, {"", pad + " :"}}
	for _, f := range fields {
		if f.n == 0 {
			f.color = ""
		}
		line = append(line, span{"", " "}, span{f.color, fmt.Sprintf("%s=%-4d", f.name, f.n)})
	}
	return line
}
