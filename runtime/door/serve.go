package door

import (
	"context"
	"net/http"
	"time"
)

// Serve runs one generation's server on its view until ctx ends, and then until what is open has been answered, for
// lastWords at most. The socket stays open for the next generation. It returns nil when ctx ended it, else why the server
// ended by itself. It blocks: it is for a goroutine that the caller owns.
func (v *View) Serve(ctx context.Context, srv *http.Server, lastWords time.Duration) error {
	v.watch(srv)
	defer context.AfterFunc(ctx, func() { _ = v.Close() })()
	err := srv.Serve(v)
	_ = v.Close()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if srv.Shutdown(patience) != nil {
		_ = srv.Close()
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
