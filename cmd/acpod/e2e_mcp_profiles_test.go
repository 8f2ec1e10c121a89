package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// profiles are the pages of docs/profiles: all tools of the real server, and those of them that an agent may use.
var profiles = []struct {
	page, server string
	tools        []string
	allowed      []string
	env          []string
}{
	{
		"gmail.md", "gmail",
		[]string{"send_email", "draft_email", "read_email", "search_emails", "modify_email", "delete_email", "list_email_labels", "batch_modify_emails", "batch_delete_emails",
			"create_label", "update_label", "delete_label", "get_or_create_label", "create_filter", "create_filter_from_template", "list_filters", "get_filter", "delete_filter", "download_attachment"},
		[]string{"draft_email", "list_email_labels", "read_email", "search_emails"},
		nil,
	},
	{
		"notion.md", "notion",
		[]string{"API-create-a-comment", "API-create-a-data-source", "API-delete-a-block", "API-get-block-children", "API-get-self", "API-get-user", "API-get-users", "API-list-data-source-templates",
			"API-move-page", "API-patch-block-children", "API-patch-page", "API-post-page", "API-post-search", "API-query-data-source", "API-retrieve-a-block", "API-retrieve-a-comment",
			"API-retrieve-a-data-source", "API-retrieve-a-database", "API-retrieve-a-page", "API-retrieve-a-page-property", "API-retrieve-page-markdown", "API-update-a-block", "API-update-a-data-source", "API-update-page-markdown"},
		[]string{"API-get-block-children", "API-get-self", "API-get-user", "API-get-users", "API-list-data-source-templates", "API-patch-block-children", "API-post-page", "API-post-search",
			"API-query-data-source", "API-retrieve-a-block", "API-retrieve-a-comment", "API-retrieve-a-data-source", "API-retrieve-a-database", "API-retrieve-a-page", "API-retrieve-a-page-property", "API-retrieve-page-markdown"},
		[]string{"NOTION_TOKEN=hidden-notion-token"},
	},
}

// profileJSON is the one block of JSON of a page.
func profileJSON(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "profiles", page))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 1 {
		t.Fatalf("%s has %d blocks of JSON", page, len(blocks))
	}
	return blocks[0][1]
}

// What the profiles leave out is neither found nor executed, and nothing is started for it. The server is ours, with the real one's names; all
// else is the page's.
func TestTheProfilesNeitherSendNorDelete(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		t.Run(profile.server, func(t *testing.T) {
			t.Parallel()
			server := newEvil(t, evilScript{Name: profile.server, Offer: profile.tools})
			var file struct {
				Servers map[string]object `json:"mcpServers"`
			}
			decode(t, profileJSON(t, profile.page), &file)
			entry := file.Servers[profile.server]
			if len(file.Servers) != 1 || entry == nil {
				t.Fatalf("%v", file)
			}
			entry["command"], entry["args"] = server.entry["command"], server.entry["args"]
			entry["env"].(object)[evilVariable] = "1"
			p := startPod(t, providersConfig, mcpText(t, encode(t, file)), func(c *exec.Cmd) { c.Env = append(c.Env, profile.env...) })
			agent := anonymous(t, p)

			for _, tool := range profile.tools {
				if slices.Contains(profile.allowed, tool) {
					continue
				}
				agent.refuses("unknown", profile.server+"."+tool, "{}")
				agent.refuses("unknown", tool, "{}")
			}
			if server.starts() != 0 {
				t.Fatalf("a process was started for a tool that is left out: %v", server.journal(""))
			}
			var names []string
			for _, c := range agent.everything().Capabilities {
				names = append(names, c.Name)
			}
			if !slices.Equal(names, profile.allowed) {
				t.Errorf("found are %v, want %v", names, profile.allowed)
			}
			for _, query := range []string{"send a mail", "delete", "trash", "comment to people"} {
				for _, c := range agent.search(`{"query":"` + query + `"}`).Capabilities {
					if !slices.Contains(profile.allowed, c.Name) {
						t.Errorf("%q finds %s", query, c.Name)
					}
				}
			}
			for _, tool := range profile.tools {
				if !slices.Contains(profile.allowed, tool) {
					agent.refuses("unknown", tool, "{}") // also now that it runs
				}
			}
			agent.says(profile.allowed[0], `{}`, profile.allowed[0]+" {}")
			for _, call := range server.journal("call") {
				if name, _, _ := strings.Cut(call.about, " "); !slices.Contains(profile.allowed, name) {
					t.Errorf("%s reached the server", name)
				}
			}
			noneOf(t, "the log", p.log.String(), "hidden-notion-token")
		})
	}
}

// The text names what it lets through and what it leaves out, and every command in it exists.
func TestTheProfilesSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "profiles", profile.page))
		if err != nil {
			t.Fatal(err)
		}
		table := string(text)[:strings.Index(string(text), "\n## ")]
		before, after, _ := strings.Cut(table, "Left out are")
		for _, tool := range profile.allowed {
			if !strings.Contains(before, "`"+tool+"`") {
				t.Errorf("%s does not say that %s is let through", profile.page, tool)
			}
		}
		for _, tool := range profile.tools {
			if profile.server == "notion" && !slices.Contains(profile.allowed, tool) && !strings.Contains(after, "`"+tool+"`") {
				t.Errorf("%s does not say that %s is left out", profile.page, tool)
			}
		}
		for _, command := range regexp.MustCompile("(?m)^acpod ([a-z ]+)").FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(command[1])
			if code, _, text := run(t, nil, append(words[:2:2], "--help")...); code != 0 {
				t.Errorf("%s: acpod %s: %s", profile.page, command[1], text)
			}
		}
	}
}
