package delivery

// ByHand is what an operator has to do beside, as far as it is known before the agent has said what it is: sentences, or none.
func (d *Deliverer) ByHand() []string {
	if d.cfg.FacadeURL == "" {
		return nil
	}
	profile := d.Profile(nil)
	mode := choose(d.cfg.Mode, profile, nil)
	if !d.inFiles(mode, profile) || profile.Hand == "" {
		return nil
	}
	return []string{string(mode) + " delivery: " + profile.Hand}
}
