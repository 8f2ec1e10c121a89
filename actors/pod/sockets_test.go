package pod

import "testing"

func TestAnIPv4AddressOpensIPv4Alone(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:80": "tcp4", "127.0.0.1:0": "tcp4", "[::]:80": "tcp", "[::1]:0": "tcp", "localhost:0": "tcp", ":80": "tcp", "nonsense": "tcp",
	} {
		if got := network(listen); got != want {
			t.Errorf("%s: %s, not %s", listen, got, want)
		}
	}
	socket, err := openSocket("0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if got := socket.Addr().String(); got[:8] != "0.0.0.0:" {
		t.Errorf("0.0.0.0 is bound to %s", got)
	}
}
