package pod

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/runtime/inspect"
)

const (
	treeTimeout = 10 * time.Second // one answer of the debug listener
	treeBytes   = 64 << 20         // of one answer; 20,000 sessions make about half of it
	treePause   = time.Second      // between two drawings
)

// TreeOptions say which pod is asked and how its tree is shown.
type TreeOptions struct {
	Addr    string         // URL of the debug listener; "" = from Config
	KeyFile string         // "" = the key of Config
	Config  *config.Loaded // may be nil when Addr is given
	Watch   bool
	JSON    bool
	Screen  bool // Out is a terminal: a watch draws over itself
	Out     io.Writer
}

// ShowTree asks a running pod for its tree and writes it out, again and again with Watch until ctx ends.
func ShowTree(ctx context.Context, o TreeOptions) error {
	target, err := o.target()
	if err != nil {
		return err
	}
	key, err := o.key()
	if err != nil {
		return err
	}
	for {
		text, err := fetchTree(ctx, target, key)
		select {
		case <-ctx.Done():
			return nil // the watcher has seen enough
		default:
		}
		if err != nil {
			return err
		}
		if err := o.show(text); err != nil {
			return err
		}
		if !o.Watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(treePause):
		}
	}
}

func (o TreeOptions) show(text []byte) error {
	var b bytes.Buffer
	switch {
	case o.JSON:
		b.Write(bytes.TrimSpace(text))
		b.WriteByte('\n')
	default:
		var root inspect.Root
		if err := json.Unmarshal(text, &root); err != nil {
			return fmt.Errorf("the answer is no tree: %w; does --addr name the debug listener of an acpod?", err)
		}
		if o.Watch && o.Screen {
			b.WriteString("\x1b[H\x1b[2J")
		}
		if err := inspect.WriteText(&b, root); err != nil {
			return err
		}
		if o.Watch && !o.Screen {
			b.WriteByte('\n')
		}
	}
	_, err := o.Out.Write(b.Bytes())
	return err
}

// target is the URL of the tree.
func (o TreeOptions) target() (string, error) {
	addr := o.Addr
	if addr == "" {
		if o.Config == nil || o.Config.Debug.Listen == "" {
			return "", errors.New("debug.listen is off in this configuration; name a running pod with --addr http://HOST:PORT")
		}
		host, port, err := net.SplitHostPort(o.Config.Debug.Listen)
		switch {
		case err != nil:
			return "", err
		case port == "0":
			return "", errors.New("debug.listen has port 0; name the port that the pod logged with --addr http://HOST:PORT")
		case host == "" || host == "0.0.0.0" || host == "::":
			host = "127.0.0.1"
		}
		addr = net.JoinHostPort(host, port)
	}
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("--addr %q is no URL of a debug listener; write http://HOST:PORT", o.Addr)
	}
	return u.Scheme + "://" + u.Host + "/debug/tree", nil
}

func (o TreeOptions) key() (string, error) {
	if o.KeyFile != "" {
		text, err := os.ReadFile(o.KeyFile)
		if err != nil {
			return "", fmt.Errorf("--key-file: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	if o.Config != nil {
		return o.Config.Secrets.Debug, nil
	}
	return "", nil
}

func fetchTree(ctx context.Context, target, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, treeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no pod answers at %s: %w; is it running, and is this its debug listener?", target, unwrapURL(err))
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, treeBytes+1))
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return nil, errors.New("the pod asks for its debug.auth_key; name a file with it by --key-file")
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s; does --addr name the debug listener of an acpod?", target, response.Status)
	case err != nil:
		return nil, fmt.Errorf("the answer of %s broke off: %w", target, err)
	case len(text) > treeBytes:
		return nil, fmt.Errorf("the tree is larger than %d bytes; ask for a part of it with curl %s?depth=2", treeBytes, target)
	}
	return text, nil
}

func unwrapURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
