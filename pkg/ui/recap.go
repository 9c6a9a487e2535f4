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
		p.write(p.o.Err, red, "ERROR! "+visible(e.Err))
	}
	if e.Retry != "" {
		p.print("", "\tto retry, use: --limit @"+e.Retry)
	}
	p.banner("PLAY RECAP")
	for _, host := range slices.Sorted(maps.Keys(e.Stats)) {
		p.print("", p.recapLine(host, e.Stats[host]))
	}
	p.print("", "")
	if p.o.Timing {
		p.timings(e)
	}
	p.closing(e)
}

func (p *printer) recapLine(host string, s *event.Stats) string {
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
		{"ok", s.OK, green}, {"changed", s.Changed, yellow}, {"unreachable", s.Unreachable, brightRed}, {"failed", s.Failed, red},
		{"skipped", s.Skipped, cyan}, {"rescued", s.Rescued, green}, {"ignored", s.Ignored, brightPurple},
	}
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = paint(p.o.Color && f.n > 0, f.color, fmt.Sprintf("%s=%-4d", f.name, f.n))
	}
	pad := strings.Repeat(" ", max(0, 26-textWidth(host)))
	return paint(p.o.Color, c, host) + pad + " : " + strings.Join(parts, " ")
}
