package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds what is read of one answer of the debug listener, in bytes.
const maxAnswer = 256 << 20

// ErrNoDebug says that the pod has no debug listener that we know.
var ErrNoDebug = errors.New("the pod's debug listener is not known")

// Status is an answer other than 200.
type Status struct {
	Path string
	Code int
	Body string
}

func (s *Status) Error() string { return fmt.Sprintf("%s answered %d: %.200s", s.Path, s.Code, s.Body) }

func (p *Pod) request(ctx context.Context, path string) (*http.Request, error) {
	if p.debug == "" {
		return nil, ErrNoDebug
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.debug+path, nil)
	if err != nil {
		return nil, err
	}
	if p.debugKey != "" {
		request.Header.Set("Authorization", "Bearer "+p.debugKey)
	}
	return request, nil
}

func (p *Pod) get(ctx context.Context, path string) ([]byte, error) {
	request, err := p.request(ctx, path)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, &Status{path, response.StatusCode, string(body)}
	}
	return body, nil
}

// Flight is the flight recording of the pod, a *Status with 404 when it keeps none.
func (p *Pod) Flight(ctx context.Context) ([]byte, error) { return p.get(ctx, "/debug/flight") }

// Stacks are the stacks of all goroutines.
func (p *Pod) Stacks(ctx context.Context) ([]byte, error) {
	return p.get(ctx, "/debug/pprof/goroutine?debug=1")
}
