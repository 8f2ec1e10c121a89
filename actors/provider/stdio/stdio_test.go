package stdio

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

func TestAMessageIsOneLineWhateverStandsBetweenItsTokens(t *testing.T) {
	b := run(t, Options{Command: roleOf(t, "echo")})
	b.wait("it is up", func() bool { return b.pid != 0 })
	lease, err := b.account.Acquire(100)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("{\n\t\"text\":\r\n \"a\\nb <&> \\u003c\", \"n\": 12345678901234567890.0}")
	m := link.Message{Head: []byte(`{"jsonrpc":"2.0","id":"1","method":"x","params":`), Body: body, Tail: []byte("\n}"), Held: lease}
	if err := b.l.Send(m); err != nil {
		t.Fatal(err)
	}
	b.wait("it came back", func() bool { return len(b.told) == 1 })
	want := `{"jsonrpc":"2.0","id":"1","method":"x","params":{ 	"text":   "a\nb <&> \u003c", "n": 12345678901234567890.0} }`
	if got := string(b.told[0].Params); got != want {
		t.Errorf("the child got %s", got)
	}
	if string(body[:3]) != "{\n\t" || string(m.Tail) != "\n}" {
		t.Error("the caller's bytes were changed")
	}
	b.wait("its lease is freed", func() bool { return lease.Size() == 0 })
}

func TestWhatIsNoMessageIsSkippedAndCounted(t *testing.T) {
	b := run(t, Options{Command: roleOf(t, "say", `Welcome!\n\n  \n`, `\x1b[31mred\x1b[0m\n`, `{\"not\":\"jsonrpc\"}\n`, `[1]\n`, `null\n`, `7\n`, `{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n`,
		`{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"text\":\"\xff\xfe\"}}\r\n`, `{\"jsonrpc\":\"2.0\",\"method\":\"last\"}\n`)})
	b.say(`{}`)
	b.wait("the last one came", func() bool { return len(b.told) == 2 })
	if b.refused["junk_line"] != 8 || b.refused["not_utf8"] != 1 || string(b.told[0].Params) != "{\"text\":\"\uFFFD\uFFFD\"}" || b.told[1].Method != "last" {
		t.Errorf("%v %q", b.refused, b.raw)
	}
	if log := b.log.String(); strings.Contains(log, "Welcome") || !strings.Contains(log, "bytes=8") {
		t.Errorf("the log has what it said, and not its size: %s", log)
	}
}

func TestALineThatIsTooLongFailsTheRequestThatItAnswersAndNothingElse(t *testing.T) {
	for _, size := range []int{30 << 10, 300 << 10} {
		b := run(t, Options{Command: roleOf(t, "long", fmt.Sprint(size)), ResultBytes: 20 << 10})
		b.say(`{}`)
		b.wait("the next line came", func() bool { return len(b.told) == 1 })
		var big *link.TooLargeError
		if !errors.As(b.failed[`"7"`], &big) || big.Size < int64(size) || big.Limit != 20<<10 || b.refused["long_line"] != 2 || string(b.told[0].ID.Raw()) != `"8"` {
			t.Errorf("%v %v %v", b.failed, b.refused, b.told)
		}
		b.wait("the child was answered", func() bool {
			return strings.Contains(b.log.String(), `"code":-32603`) || strings.Contains(b.log.String(), `\"code\":-32603`)
		})
	}
}

func TestALineWaitsForRoomAndIsSkippedWhenThereIsNone(t *testing.T) {
	line := `{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"text\":\"` + strings.Repeat("x", 3000) + `\"}}\n`
	b := run(t, Options{Command: roleOf(t, "say", line, strings.ReplaceAll(line, `\"1\"`, `\"2\"`), `{\"jsonrpc\":\"2.0\",\"method\":\"after\"}\n`), RoomWait: 300 * time.Millisecond},
		func(b *bench) { b.account, b.keep = kernel.NewAccount("test", 5000), true })
	b.say(`{}`)
	b.wait("the last one came", func() bool { return len(b.told) == 2 })
	full, ok := errors.AsType[*kernel.Overloaded](b.failed[`"2"`])
	if !ok || full.Scope != "test" || len(b.failed) != 1 || b.told[1].Method != "after" {
		t.Errorf("%v", b.failed)
	}
}

func TestAChildHasTheEnvironmentThatItIsGivenAndNothingElse(t *testing.T) {
	t.Setenv("ACPOD_TEST_SECRET", "of the pod")
	b := run(t, Options{Command: roleOf(t, "env"), Env: []string{"HOME=/nowhere", "TOKEN=a b"}})
	b.wait("it told", func() bool { return len(b.told) == 1 })
	if got := string(b.told[0].Params); got != `["HOME=/nowhere","TOKEN=a b","`+quick+`"]` {
		t.Error(got)
	}
}

func TestTheLastWordsOfAChildAreHeardBeforeItsEndIsTold(t *testing.T) {
	b := run(t, Options{Command: roleOf(t, "lastwords"), Secrets: []string{"swordfish"}})
	b.say(`{}`)
	b.wait("its end is told", func() bool { return b.down != nil })
	if len(b.told) != 1 || string(b.told[0].Result) != `{"last":true}` {
		t.Errorf("%q", b.raw)
	}
	<-b.done
	var exit *link.ExitError
	if !errors.As(b.err, &exit) || exit.How != "exited with code 3" || !strings.Contains(exit.Stderr, "fatal: the password is ") || strings.Contains(exit.Stderr, "swordfish") || strings.Contains(exit.Stderr, "\x1b") {
		t.Errorf("%+v", b.err)
	}
	if log := b.log.String(); !strings.Contains(log, "level=WARN msg=stderr") || strings.Contains(log, "swordfish") {
		t.Errorf("its stderr is logged at warn, escaped: %s", log)
	}
}

func TestADeathIsToldAlthoughOthersOfItsGroupLiveAndTheyAreEnded(t *testing.T) {
	b := run(t, Options{Command: roleOf(t, "parent"), TermGrace: 2 * time.Second, EOFGrace: time.Second})
	b.wait("the other one is there", func() bool { return len(b.told) == 1 })
	b.say(`{}`)
	b.wait("the death is told", func() bool { return b.down != nil })
	b.mu.Lock()
	if b.ended {
		t.Error("it was told only when all of them had ended")
	}
	b.mu.Unlock()
	<-b.done
	var exit *link.ExitError
	if !errors.As(b.err, &exit) || exit.How != "killed by signal 9 (killed)" {
		t.Errorf("%v", b.err)
	}
	if other, err := strconv.Atoi(string(b.told[0].Params)); err != nil || runs(other) || runs(b.pid) {
		t.Errorf("something of the group lives: %d %v", other, err)
	}
}

// runs tells whether a process lives; a zombie does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func TestAChildThatHeedsNothingIsGoneWithTheLink(t *testing.T) {
	b := run(t, Options{Command: roleOf(t, "stubborn")})
	b.wait("it is there", func() bool { return len(b.told) == 1 })
	b.stop()
	if runs(b.pid) || !errors.Is(b.err, kernel.ErrStopped) || b.down != nil {
		t.Errorf("lives: %v, %v, told %v", runs(b.pid), b.err, b.down)
	}
	if err := b.l.Send(link.Message{Head: []byte("{}")}); !errors.Is(err, link.ErrUnsent) {
		t.Errorf("%v", err)
	}
}

func TestAChildThatClosesItsStdoutIsEnded(t *testing.T) {
	b := run(t, Options{Command: roleOf(t, "mute")})
	<-b.done
	if b.err == nil || !strings.Contains(b.err.Error(), "it closed its stdout") {
		t.Errorf("%v", b.err)
	}
}

func TestAChildThatReadsNothingIsToldNoMoreAndThenEnded(t *testing.T) {
	b := run(t, Options{Command: roleOf(t, "deaf"), StdinBytes: 256 << 10, StdinTimeout: 500 * time.Millisecond})
	b.wait("it is there", func() bool { return len(b.told) == 1 })
	var err error
	for range 10 {
		lease, e := b.account.Acquire(100 << 10)
		if e != nil {
			t.Fatal(e)
		}
		if err = b.l.Send(link.Message{Head: slices.Repeat([]byte("x"), 100<<10), Held: lease}); err != nil {
			break
		}
	}
	if full, ok := errors.AsType[*kernel.Overloaded](err); !ok || full.Limit != 256<<10 {
		t.Fatalf("%v", err)
	}
	<-b.done
	if !strings.Contains(b.err.Error(), "did not read its stdin") {
		t.Errorf("%v", b.err)
	}
}

func TestAProgramThatIsNotThereIsSaidToBe(t *testing.T) {
	b := run(t, Options{Command: []string{"no-such-program"}, Env: []string{"PATH=/nowhere"}})
	<-b.done
	var start *process.StartError
	if !errors.As(b.err, &start) || !strings.Contains(b.err.Error(), "/nowhere") || b.pid != 0 {
		t.Errorf("%v", b.err)
	}
	if err := b.l.Send(link.Message{Head: []byte("{}")}); !errors.Is(err, link.ErrUnsent) {
		t.Errorf("%v", err)
	}
}
