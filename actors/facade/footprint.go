package facade

// MostNewcomers is how many connections of callers there are at most beside Config.Connections: those that come faster than others can be
// closed for them.
const MostNewcomers = 128
