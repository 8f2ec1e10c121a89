package process

import (
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

func TestAnyNameInProcStatIsPassedOver(t *testing.T) {
	rest := " S 2 77 88 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 789 10"
	for _, name := range []string{"sh", "a b", ") R 1 2 3", "))((", "", "a b) S 1 (x", "new\nline"} {
		got, err := parseStat([]byte("42 (" + name + ")" + rest))
		if want := (stat{state: 'S', ppid: 2, pgrp: 77, sid: 88, start: 123456, cpu: 26, rss: 10, threads: 1}); err != nil || got != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh", "42 (sh) S", "42 (sh) S x" + strings.Repeat(" 1", 30), "42 (sh) S -1" + strings.Repeat(" 1", 30), "42 (sh) S 1 2", "42 (sh) S 2 x 88 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 789"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if parent, start, err := Born(os.Getpid()); err != nil || parent != os.Getppid() || start == 0 {
		t.Errorf("our own: %d, %d, %v", parent, start, err)
	}
	own, err := readStat(os.Getpid())
	if err != nil || own.pgrp != syscall.Getpgrp() || own.start == 0 || own.dead() {
		t.Errorf("our own: %+v, %v", own, err)
	}
}

func TestABookTakesWholeLinesOnly(t *testing.T) {
	a, b := Group{PGID: 10, Start: 11, SID: 12}, Group{PGID: 20, Start: 21, SID: 22}
	marked, stray := a, b
	marked.Mark, stray.Stray = [32]byte{31: 0xef}, true
	for _, c := range []struct {
		lines []string
		want  book
	}{
		{[]string{addLine(a), addLine(b)}, book{a: {}, b: {}}},
		{[]string{addLine(a), addLine(a), removeLine(a)}, book{}},
		{[]string{addLine(a), removeLine(b)}, book{a: {}}},
		{[]string{addLine(marked), addLine(a), removeLine(a)}, book{marked: {}}},
		{[]string{addLine(stray), addLine(stray), removeLine(b)}, book{stray: {}}}, // b's number, but no group
		{[]string{addLine(stray), removeLine(stray), "add 10 11 12 abcd", "add 10 11 12 zz", "stray 10 11 12"}, book{}},
		{[]string{addLine(a), "remove 10 99 12"}, book{a: {}}}, // the same number, another group
		{[]string{"", "add", "add 10 11", "add 10 11 12 13", "add x 11 12", "add 10 -1 12", "add 0 1 2", "add 1 1 2", "add -5 1 2", "kill 10 11 12"}, book{}},
	} {
		got := book{}
		for _, line := range c.lines {
			got.apply(strings.TrimSuffix(line, "\n"))
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %v, want %v", c.lines, got, c.want)
		}
	}
}

func TestWhatAChildWroteIsOneLineOfPrintableText(t *testing.T) {
	for in, want := range map[string]string{
		"plain \"quoted\" ü":    `plain "quoted" ü`,
		"a\nb\r\tc":             `a\nb\r\tc`,
		"\x1b[31m\x00\u202e":    `\x1b[31m\x00\u202e`,
		"\xff":                  `\xff`,
		strings.Repeat("x", 65): strings.Repeat("x", 64) + "…",
		strings.Repeat("ü", 40): strings.Repeat("ü", 32) + "…",
	} {
		if got := Escape(in, 64); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\nb\x1b", 10)
	f.Add(`\"`, 1)
	f.Add("ü\xc3", 3)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = 1 + (max%100+100)%100
		got := Escape(s, max)
		if strings.ContainsAny(got, "\n\r\x1b\x00") || !utf8.ValidString(got) || len(got) > max+len("…") {
			t.Errorf("%q, at most %d bytes, became %q", s, max, got)
		}
	})
}

func FuzzBook(f *testing.F) {
	f.Add("add 10 11 12")
	f.Add("remove 10 11 12")
	f.Fuzz(func(t *testing.T, line string) {
		b := book{}
		took := b.apply(line)
		for _, g := range b.groups() {
			if g.PGID <= 1 {
				t.Errorf("%q names the group %d", line, g.PGID)
			}
			again := book{}
			if again.apply(strings.TrimSuffix(addLine(g), "\n")); !reflect.DeepEqual(again, b) {
				t.Errorf("%q does not come back: %v", line, again)
			}
		}
		if !took && len(b) > 0 {
			t.Errorf("%q was refused and taken", line)
		}
	})
}

func TestNobodySignalsEverybody(t *testing.T) {
	for _, pgid := range []int{1, 0, -1} {
		if (Group{PGID: pgid}).ours() {
			t.Errorf("the group %d is ours", pgid)
		}
		signalGroup(pgid, syscall.SIGCONT) // would reach all that we may signal
	}
}
