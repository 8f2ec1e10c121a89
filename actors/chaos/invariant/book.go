package invariant

import (
	"fmt"
	"sync"
)

// maxText bounds a violation's text in bytes: it may quote what a peer sent.
const maxText = 2000

// Breach is a promise that was broken.
type Breach struct {
	Name  Name
	Text  string
	Words []string // parts of actors' paths and names that it concerns
}

// Book is what was seen of the promises. It may be used from any goroutine.
type Book struct {
	mu    sync.Mutex
	lines map[Name]*line
	first func(Breach)
}

type line struct {
	exercised int64
	broken    int64
	breach    Breach
}

// Verdict is what became of one promise.
type Verdict struct {
	Name       Name   `json:"name"`
	Says       string `json:"says"`
	Held       bool   `json:"held"`
	Exercised  int64  `json:"exercised"`
	Violations int64  `json:"violations,omitzero"`
	Violation  string `json:"violation,omitzero"` // the first one
}

// NewBook makes an empty book; onBreach, which may be nil, is called with the first breach of each promise, on the goroutine that saw it.
func NewBook(onBreach func(Breach)) *Book {
	b := &Book{lines: map[Name]*line{}, first: onBreach}
	for _, p := range Promises() {
		b.lines[p.Name] = &line{}
	}
	return b
}

// Exercise notes that a promise was tested and kept.
func (b *Book) Exercise(name Name) { b.ExerciseN(name, 1) }

// ExerciseN notes it n times.
func (b *Book) ExerciseN(name Name, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at(name).exercised += n
}

// Break notes that a promise was broken. words name the actors that it concerns: parts of paths in the pod's tree.
func (b *Book) Break(name Name, words []string, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	b.mu.Lock()
	l := b.at(name)
	l.exercised++
	l.broken++
	first := l.broken == 1
	if first {
		l.breach = Breach{name, text, words}
	}
	breach := l.breach
	b.mu.Unlock()
	if first && b.first != nil {
		b.first(breach)
	}
}

// Check exercises a promise, or breaks it when why is not empty.
func (b *Book) Check(name Name, words []string, why string) {
	if why == "" {
		b.Exercise(name)
		return
	}
	b.Break(name, words, "%s", why)
}

func (b *Book) at(name Name) *line {
	l, known := b.lines[name]
	if !known {
		panic("there is no promise named " + string(name))
	}
	return l
}

// Verdicts are all promises in the order of reports.
func (b *Book) Verdicts() []Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Verdict
	for _, p := range Promises() {
		l := b.lines[p.Name]
		all = append(all, Verdict{p.Name, p.Says, l.broken == 0, l.exercised, l.broken, l.breach.Text})
	}
	return all
}

// Broken are the promises that were broken.
func (b *Book) Broken() (names []Name) {
	for _, v := range b.Verdicts() {
		if !v.Held {
			names = append(names, v.Name)
		}
	}
	return names
}
