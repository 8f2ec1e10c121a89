package pod

import (
	"log/slog"
	"path/filepath"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session/delivery"
)

// deliveryConfig is how agents learn of their tools. state is the state folder, "" = there is none.
func deliveryConfig(l *config.Loaded, o Options, state, facadeURL string) (delivery.Config, error) {
	workdir, err := filepath.Abs(l.Agent.Workdir)
	if err != nil {
		return delivery.Config{}, err
	}
	c := delivery.Config{
		Mode: delivery.Mode(l.Agent.Delivery), Profile: l.Agent.Profile, Command: l.Agent.Command, Workdir: workdir, State: state,
		FacadeURL: facadeURL, AllowDirect: l.Agent.AllowDirect, Log: o.Log,
	}
	if bridged(l) {
		if path, _, err := bridgePath(l.Agent, o.Environ); err == nil {
			c.Bridge = delivery.BridgeCommand{Program: o.Executable, Socket: path}
		}
	}
	return c, nil
}

// bridged tells whether an agent may come by the bridge: because that is the delivery, or because it may take no HTTP.
func bridged(l *config.Loaded) bool {
	switch delivery.Mode(l.Agent.Delivery) {
	case delivery.Auto, delivery.ACP, delivery.Bridge:
		return l.MCP != nil && l.Agent.Driver == "process"
	}
	return false
}

// tellDelivery logs how agents learn of their tools, and what an operator has to do for it by hand.
func tellDelivery(log *slog.Logger, l *config.Loaded, d *delivery.Deliverer) {
	profile := d.Profile(nil)
	log.Info("agents learn of their tools by", "delivery", l.Agent.Delivery, "profile", profile.Name)
	for _, text := range d.ByHand() {
		log.Info(text)
	}
}
