package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/actors/chaos/scale"
)

// newEcho is the server that scale compares the pod with. It is not for people.
func newEcho() *cobra.Command {
	return &cobra.Command{
		Use: "echo", Hidden: true, Args: noArguments,
		Short:   "A bare WebSocket echo server that ends with its standard input",
		Example: "  acpod-chaos echo",
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(command.Context())
			defer cancel()
			go func() {
				defer cancel()
				_, _ = io.Copy(io.Discard, os.Stdin)
			}()
			return scale.ServeEcho(ctx, func(at scale.EchoAt) error {
				text, err := json.Marshal(at)
				if err == nil {
					_, err = fmt.Fprintf(command.OutOrStdout(), "%s\n", text)
				}
				return err
			})
		},
	}
}
