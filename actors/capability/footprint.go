package capability

// CompileBytes is what one schema costs while it is compiled, whoever wrote it: up to maxSchemaBytes of text, decoded and made into a
// validator. What is kept of it is paid by the session.
const CompileBytes = 40 << 20

// Compiles is how many are compiled at once in the process. A schema is compiled once for many calls, so who waits waits seldom.
const Compiles = 2

var compileSlots = make(chan struct{}, Compiles)
