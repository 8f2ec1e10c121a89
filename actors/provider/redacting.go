package provider

import "strings"

func redactError(s string, secrets []string) string {
	for _, x := range secrets {
		s = strings.ReplaceAll(s, x, "***")
	}
	return s
}
