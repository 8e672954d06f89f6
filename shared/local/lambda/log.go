package lambda

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// tailLines is how much of a function's output an InitError repeats.
const tailLines = 20

// lineWriter writes whole lines behind a prefix and remembers the last ones.
type lineWriter struct {
	to     io.Writer // must accept writes from several goroutines
	prefix string

	mu   sync.Mutex
	part []byte
	last []string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, p...)
	for {
		i := bytes.IndexByte(w.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.line(string(w.part[:i]))
		w.part = w.part[i+1:]
	}
}

func (w *lineWriter) line(text string) {
	io.WriteString(w.to, w.prefix+text+"\n")
	if w.last = append(w.last, text); len(w.last) > tailLines {
		w.last = w.last[1:]
	}
}

// flush writes a last line without an end.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) > 0 {
		w.line(string(w.part))
		w.part = nil
	}
}

func (w *lineWriter) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.last
	if len(w.part) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(w.part))
	}
	return strings.Join(lines, "\n")
}
