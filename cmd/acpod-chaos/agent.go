package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/acpod/acpod/actors/chaos/agent"
)

// newAgent is the simulated agent, for a pod to start. It is not for people.
func newAgent() *cobra.Command {
	var plan, records string
	var grandchild bool
	command := &cobra.Command{
		Use: "agent", Hidden: true, Args: noArguments,
		Short:   "A simulated ACP agent on stdio that misbehaves by plan and by script",
		Example: `  command = ["acpod-chaos", "agent", "--plan", "plan.txt", "--records", "records"]`,
		RunE: func(command *cobra.Command, _ []string) error {
			if grandchild {
				return agent.Linger(records)
			}
			o := agent.Options{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Host: agent.Process{Records: records}, Records: records, Environ: os.Getenv}
			var err error
			if plan == "" {
				o.Plan, err = agent.ParsePlan("")
			} else {
				o.Plan, err = agent.ReadPlan(plan)
			}
			if err != nil {
				return err
			}
			if records != "" {
				if o.Ordinal, err = agent.Enter(records, "agent"); err != nil {
					return err
				}
			}
			return agent.Run(command.Context(), o)
		},
	}
	command.Flags().StringVar(&plan, "plan", "", "file that says what this agent does wrong")
	command.Flags().StringVar(&records, "records", "", "folder where each process and each fault is written down")
	command.Flags().BoolVar(&grandchild, agent.Grandchild[2:], false, "ignore every signal but KILL, and nothing else")
	return command
}
