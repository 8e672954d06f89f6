package main

import (
	"fmt"
	"html"
	"strings"
)

// chart draws bars of the programs, a panel for each figure, as SVG.
func (r *results) chart() string {
	panels := []struct {
		title, form string
		of          func(*figures) float64
	}{
		{"Start and first request, wall, share of 128 MB (ms)", "%.1f", func(f *figures) float64 { return f.quota.median() }},
		{"CPU time of start and first request (ms)", "%.1f", func(f *figures) float64 { return f.cold.median() }},
		{"CPU time of a later request, known key (ms)", "%.2f", func(f *figures) float64 { return f.knownCPU.median() }},
		{"Peak memory (MiB)", "%.1f", func(f *figures) float64 { return f.peak.median() }},
	}
	const (
		width, bar, gap, left, right = 720, 20, 6, 110, 80
		title, space                 = 26, 18
	)
	panelHeight := title + len(r.figures)*(bar+gap) + space
	var w strings.Builder
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n", width, len(panels)*panelHeight)
	w.WriteString(`<style>text{fill:#222}.us{fill:#1f6f8b}.peer{fill:#b9c3c9}@media(prefers-color-scheme:dark){text{fill:#ddd}.peer{fill:#5d686f}.us{fill:#4fb3d1}}</style>` + "\n")
	y := 0
	for _, p := range panels {
		most := 0.0
		for _, f := range r.figures {
			most = max(most, p.of(f))
		}
		fmt.Fprintf(&w, `<text x="0" y="%d" font-weight="bold">%s</text>`+"\n", y+16, html.EscapeString(p.title))
		at := y + title
		for _, f := range r.figures {
			class := "peer"
			if f.name == ours {
				class = "us"
			}
			length := p.of(f) / most * (width - left - right)
			fmt.Fprintf(&w, `<text x="%d" y="%d" text-anchor="end">%s</text><rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/><text x="%.1f" y="%d">%s</text>`+"\n",
				left-8, at+15, html.EscapeString(f.name), class, left, at, max(length, 1), bar, left+max(length, 1)+6, at+15, fmt.Sprintf(p.form, p.of(f)))
			at += bar + gap
		}
		y += panelHeight
	}
	w.WriteString("</svg>\n")
	return w.String()
}
