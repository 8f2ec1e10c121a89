// Package kerneltest helps to test actors: Start and Probe for tests of one actor, Sim, Monkey and Check for simulations in
// which the schedule and the clock are functions of a seed.
package kerneltest
