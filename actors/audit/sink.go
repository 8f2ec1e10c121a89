package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
)

// everything lets a handler write records of any level.
const everything = slog.Level(-1 << 31)

// sink is where records end up. It belongs to one goroutine, the pump of a generation.
type sink struct {
	path string
	log  slog.Handler
	file *os.File
	// torn: the last write of the file ended within a line.
	torn bool
	// failing: a failure was reported and no write has succeeded since.
	failing bool
	buffer  bytes.Buffer
}

// write puts each record into the file, or into the log where there is no file or the file fails.
func (s *sink) write(records []slog.Record) {
	if s.path == "" {
		s.toLog(records)
		return
	}
	whole, err := s.toFile(records)
	switch {
	case err == nil && s.failing:
		s.failing = false
		s.report(slog.LevelInfo, "the audit file takes records again", slog.String("path", s.path))
	case err != nil && !s.failing:
		s.failing = true
		s.report(slog.LevelError, "the audit file cannot be written: make room or give it the right owner; until then its records go to the log",
			slog.String("path", s.path), slog.Any("error", err))
	}
	s.toLog(records[whole:])
}

// toLog hands records to the handler without asking whether their level is enabled.
func (s *sink) toLog(records []slog.Record) {
	for _, r := range records {
		_ = s.log.Handle(context.Background(), r)
	}
}

func (s *sink) report(level slog.Level, text string, attrs ...slog.Attr) {
	r := slog.NewRecord(now(), level, text, 0)
	r.AddAttrs(attrs...)
	s.toLog([]slog.Record{r})
}

// toFile appends the records and returns how many of them stand in the file as whole lines.
func (s *sink) toFile(records []slog.Record) (whole int, err error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	s.buffer.Reset()
	if s.torn {
		s.buffer.WriteByte('\n')
	}
	lead := s.buffer.Len()
	lines := slog.NewJSONHandler(&s.buffer, &slog.HandlerOptions{Level: everything})
	for _, r := range records {
		if err := lines.Handle(context.Background(), r); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(s.buffer.Bytes())
	if n > 0 {
		written := s.buffer.Bytes()[:n]
		s.torn = written[n-1] != '\n'
		whole = bytes.Count(written[min(lead, n):], []byte{'\n'})
	}
	if err != nil {
		_ = s.file.Close()
		s.file = nil
	}
	return whole, err
}

// open makes sure that the file at the path is the one that is open: it is made when it is missing, and opened anew when
// somebody moved the old one away.
func (s *sink) open() error {
	if s.file != nil {
		at, err := os.Stat(s.path)
		have, own := s.file.Stat()
		if err == nil && own == nil && os.SameFile(at, have) {
			return nil
		}
		_ = s.file.Close()
		s.file, s.torn = nil, false
	}
	// O_NONBLOCK: opening a pipe that nobody reads is an error then, and not a wait for ever.
	file, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return bare(err)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("its mode must be 0600: %w", bare(err))
	}
	s.file = file
	return nil
}

func (s *sink) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// bare takes the path out of an error; it stands beside it in the record.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
