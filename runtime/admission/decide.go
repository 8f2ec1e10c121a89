package admission

// decide says whether somebody who gives up what is in give may have what is in take: nil, or the first of the claims that has no
// room. It changes nothing. Called with the lock.
func decide(give, take []Claim) (full *Claim) {
	for i := range take {
		c := take[i]
		if c.counts() && c.used()-number(give, c)+number(take[:i+1], c) > c.limit.max {
			return &take[i]
		}
	}
	return nil
}

// number counts how often a claim stands in a list.
func number(list []Claim, c Claim) (n int) {
	for _, one := range list {
		if one == c {
			n++
		}
	}
	return n
}

// book notes that slots are taken. Called with the lock.
func book(take []Claim) {
	for _, c := range take {
		if c.counts() {
			c.limit.by[c.of]++
			c.limit.used++
			c.limit.admitted++
		}
	}
}

// strike notes that slots are free again. Called with the lock.
func strike(give []Claim) {
	for _, c := range give {
		if !c.counts() {
			continue
		}
		if c.limit.by[c.of]--; c.limit.by[c.of] == 0 {
			delete(c.limit.by, c.of)
		}
		c.limit.used--
		c.limit.released++
	}
}
