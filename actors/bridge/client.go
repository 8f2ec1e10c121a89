package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// SocketVariable is OpenAB's name for the path of the socket.
const SocketVariable = "OPENAB_BROWSER_SOCKET"

// DefaultPath is where the socket is when nobody says otherwise: ~/.openab/browser.sock. "" when nothing says where home is.
func DefaultPath(environ []string) string {
	home := ""
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, "HOME="); ok {
			home = value
		}
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".openab", "browser.sock")
}

const (
	dialTime  = 10 * time.Second
	copyBytes = 64 << 10
)

// Relay is the other side of the bridge, in a process that an agent starts as an MCP server on stdio: it copies between in and out and the
// socket until either side ends, and holds no more than a buffer for each direction. nil: the agent has ended it. An error is one line.
// It returns while a read of in may still wait; the process is to end then.
func Relay(ctx context.Context, path string, in io.Reader, out io.Writer) error {
	conn, err := dial(ctx, path)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	said := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{in}, make([]byte, copyBytes))
		_ = conn.CloseWrite() // the pod answers what is open, and closes
		said <- err
	}()
	heard := &opening{w: out}
	_, err = io.CopyBuffer(heard, struct{ io.Reader }{conn}, make([]byte, copyBytes))
	if heard.failed != nil {
		return nil // the agent does not read any more
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if text := heard.refusal(); text != "" {
		return fmt.Errorf("the pod refused this relay: %s", text)
	}
	select {
	case inErr := <-said:
		if inErr == nil {
			return nil
		}
	default:
	}
	switch {
	case err != nil && !errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("the pod at %s: %w", path, err)
	}
	return fmt.Errorf("the pod at %s closed the connection: it has stopped, or the agent's session has ended", path)
}

func dial(ctx context.Context, path string) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		return conn.(*net.UnixConn), nil
	}
	why := err
	var system *os.SyscallError
	if errors.As(err, &system) {
		why = system.Err
	}
	return nil, fmt.Errorf("no pod serves %s: %w; start one with `acpod serve`, or name its socket with --socket or %s", path, why, SocketVariable)
}

// opening passes on and remembers the beginning, to tell a refusal from the end of a connection that was served.
type opening struct {
	w      io.Writer
	first  []byte
	more   bool
	failed error
}

// Write implements io.Writer.
func (o *opening) Write(b []byte) (int, error) {
	const most = 1 << 10
	if room := most - len(o.first); room >= len(b) {
		o.first = append(o.first, b...)
	} else {
		o.more = true
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.failed = err
	}
	return n, err
}

// refusal is the text of the one error without an id that was all that came, or "".
func (o *opening) refusal() string {
	line, rest, whole := bytes.Cut(o.first, []byte("\n"))
	if o.more || !whole || len(rest) > 0 {
		return ""
	}
	frame, bad := jsonrpc.Scan(line)
	if bad != nil || frame.Kind != jsonrpc.Response || !frame.ID.IsNull() || frame.Error == nil {
		return ""
	}
	return jsonrpc.Show(jsonrpc.ParseError(frame.Error).Message)
}
