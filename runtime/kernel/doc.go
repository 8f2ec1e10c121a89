// Package kernel runs supervised actors over protoactor-go, with every byte on an account.
package kernel
