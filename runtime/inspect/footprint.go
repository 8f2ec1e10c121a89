package inspect

// Footprint is what an inspector holds at most beside profiles and a flight recording: the last events and those that watchers have
// not read, trees that are being written, and scrapes.
const Footprint = 8 << 20
