package pod

import (
	"net/http"
	"os"
	"sync"
	"time"
)

// patience is how long something that only has to be written or read may take on a loaded machine.
const patience = 60 * time.Second

// Spec says which pod to start and how.
type Spec struct {
	Binary string   // path of acpod
	TOML   string   // its config; listeners on port 0 are told by the ready file
	Env    []string // NAME=value, beside HOME, PATH and USER
	Dir    string   // made by the caller: the pod's home; config, log and ready file are in it, its working directory is Dir/work
	Args   []string // more arguments of serve
}

// Pod is one running pod.
type Pod struct {
	public, facade, debug string // host:port, "" for none
	key, debugKey         string
	dir                   string

	process *os.Process // nil for one that runs already
	ended   chan struct{}
	state   *os.ProcessState // after ended
	log     *log
	ring    *ring
	client  *http.Client
	stop    sync.Once
}

// Public is the host:port of /acp.
func (p *Pod) Public() string { return p.public }

// ACP is the URL of /acp.
func (p *Pod) ACP() string { return "ws://" + p.public + "/acp" }

// Facade is the host:port of the facade; "" when it is not known: sessions are told its address.
func (p *Pod) Facade() string { return p.facade }

// Debug is the host:port of the debug listener, "" without one.
func (p *Pod) Debug() string { return p.debug }

// Key is what /acp asks for, "" for nothing.
func (p *Pod) Key() string { return p.key }

// PID is the process of a pod that we started, else 0.
func (p *Pod) PID() int {
	if p.process == nil {
		return 0
	}
	return p.process.Pid
}

// Dir is the home of a pod that we started.
func (p *Pod) Dir() string { return p.dir }

// Ended is closed when a pod that we started is gone; it never is for another.
func (p *Pod) Ended() <-chan struct{} { return p.ended }

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute}, Timeout: patience}
}
