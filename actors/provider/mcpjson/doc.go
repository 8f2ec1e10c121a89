// Package mcpjson reads mcp.json: which servers the operator has, how they are reached, and what of them may be used. It starts and
// dials nothing: files and an environment in, values and problems out.
//
// # Layers
//
// [Layers] names the files, [Read] reads them, [Parse] is Read with the texts at hand. By name of a server the later file wins, as a whole;
// roots add up; other settings of the top level count where they are set. A file that cannot be read, or is no JSON, is one [Problem] with line
// and column, and is left out. An entry that is wrong is a problem with its line, and is left out alone: also where an earlier file has a good one
// of that name, since this is not what the operator asked for.
//
// Accepted is JSON with comments and trailing commas, a byte order mark, and any kind of line end. Files are never written.
//
// # Variables
//
// An entry is kept as it was written. [Server.Resolve] puts values in the place of variables when the server is connected, so that one which is
// not set takes away that server alone. No error of this package holds a value: it names the file, the line, the field and the variable.
package mcpjson
