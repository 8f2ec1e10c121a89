package search

import (
	"slices"
	"strings"
	"testing"
)

// A household of tools, in the manner of servers that people use, and what a model may ask of them. The evaluation with the tools of real
// servers is .ci/search; this one guards what it found, without a network.

// household: a line is server, name, parameters, description.
const household = `
mailbox|list_mails|folder,limit|Lists the mails of a folder, newest first.
mailbox|read_mail|mail_id|Returns one mail with its text and the names of its attachments.
mailbox|draft_mail|to,subject,text|Writes a draft. It is not sent before somebody confirms it.
mailbox|send_draft|draft_id|Sends a draft that exists.
mailbox|move_mail|mail_id,folder|Files a mail under another folder.
mailbox|search_mails|query,since|Finds mails by words, sender or date.
mailbox|mark_spam|mail_id|Reports a mail as unwanted.
planner|addEvent|title,start,end,guests|Puts an appointment into the calendar and invites guests.
planner|listEvents|from,to|Returns the appointments of a range of days.
planner|cancelEvent|event_id|Takes an appointment off the calendar and tells the guests.
planner|findFreeSlot|people,minutes|Looks for a time at which all people given are free.
planner|remindMe|text,at|Reminds the user at a given time.
drive|file-list|path|Shows what is in a folder.
drive|file-read|path,encoding|Returns the text of a file.
drive|file-write|path,text|Stores text as a file, and replaces what was there.
drive|file-copy|from,to|Duplicates a file.
drive|file-remove|path|Deletes a file for good.
drive|file-find|pattern,path|Searches folders for files whose name fits a pattern.
drive|folder-create|path|Makes a folder, with those above it.
drive|file-share|path,person|Lets another person see a file, and returns a link.
window|goto|url|Loads an address in the current tab.
window|go_back|steps|Shows the page before this one.
window|press_element|selector|Clicks what the selector finds.
window|put_text|selector,text|Types into an input of the page.
window|grab_image|selector,full|Takes a screenshot of the page, or of one element.
window|list_tabs||Names all tabs that are open.
window|close_tab|tab|Closes one tab.
window|run_script|code|Evaluates JavaScript in the page.
window|await_text|text,timeout|Waits until a text is on the page.
window|console|level|Returns what scripts wrote to the console.
forge|openTicket|title,body,labels|Creates an issue in the tracker.
forge|closeTicket|number|Closes an issue, with a reason.
forge|commentTicket|number,text|Adds a comment to an issue.
forge|listTickets|state,label|Lists issues by state and label.
forge|proposeChange|branch,title|Opens a pull request for a branch.
forge|mergeChange|number|Merges a pull request into its base.
forge|showChange|number|Returns the diff of a pull request.
forge|makeBranch|name,from|Starts a branch at a commit.
forge|searchCode|query,language|Finds code in all repositories.
forge|buildStatus|ref|Says whether the checks of a commit passed.
store|run_sql|statement|Runs a read-only SQL statement.
store|list_tables|schema|Lists the tables of a schema.
store|describe_table|table|Returns columns, types and keys of a table.
store|export_rows|statement,path|Writes the result of a statement into a CSV file.
sky|forecast|place,days|Tells the weather of the coming days.
sky|place_to_coordinates|address|Turns an address into latitude and longitude.
sky|travel_time|from,to,mode|Computes how long a trip takes.
`

// wishes: a line is what is asked, and the tools that answer it.
const wishes = `
show my newest messages|list_mails
open the email from Ann|read_mail
compose a message without sending it|draft_mail
deliver the prepared mail|send_draft
put this mail into the archive folder|move_mail
look up emails about the invoice|search_mails
this email is junk|mark_spam
schedule a meeting with Bob|addEvent
which appointments do I have tomorrow|listEvents
call off the meeting|cancelEvent
when does everybody have time|findFreeSlot
do not let me forget to call home|remindMe
what does this directory contain|file-list
view a document|file-read
save this text to a document|file-write
make a copy of a document|file-copy
get rid of a file|file-remove
locate files by name|file-find
new directory|folder-create
give a colleague access to a document|file-share
visit a website|goto
return to the previous page|go_back
tap the login button|press_element
enter my name in the form field|put_text
capture a picture of the site|grab_image
which pages are open|list_tabs
shut this tab|close_tab
execute js|run_script
hold on until the word appears|await_text
error messages of the page's scripts|console
report a bug|openTicket
resolve the issue|closeTicket
reply to an issue|commentTicket
open bugs|listTickets
create a PR|proposeChange
accept the pull request|mergeChange
what was changed in this pull request|showChange
new branch|makeBranch
where is this function used in the repos|searchCode
did the tests pass on CI|buildStatus
query the database|run_sql
which tables does the database have|list_tables
schema of a table|describe_table
download query results as csv|export_rows
will it rain on Sunday|forecast
geocode a street|place_to_coordinates
how far is it to drive there|travel_time
`

func TestAHouseholdsWishesAreAnsweredAmongTheFirstFive(t *testing.T) {
	lists := map[string][]Tool{}
	var servers []string
	for line := range strings.Lines(strings.TrimSpace(household)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		var schema strings.Builder
		schema.WriteString(`{"type":"object","properties":{`)
		for i, name := range strings.Split(parts[2], ",") {
			if i > 0 {
				schema.WriteByte(',')
			}
			schema.WriteString(`"` + name + `":{"type":"string"}`)
		}
		schema.WriteString(`}}`)
		if !slices.Contains(servers, parts[0]) {
			servers = append(servers, parts[0])
		}
		lists[parts[0]] = append(lists[parts[0]], Tool{parts[1], parts[3], []byte(schema.String())})
	}
	var entries []Entry
	var names []string
	for _, server := range servers {
		entries = append(entries, entriesOf(server, NewIndex(lists[server]))...)
		for _, tool := range lists[server] {
			names = append(names, tool.Name)
		}
	}
	var sum figures
	for line := range strings.Lines(strings.TrimSpace(wishes)) {
		wish, answer, _ := strings.Cut(strings.TrimSpace(line), "|")
		if !slices.Contains(names, answer) {
			t.Fatalf("no tool is %q", answer)
		}
		var found []string
		for _, i := range Rank(wish, entries) {
			found = append(found, names[i])
		}
		one := judge(found, []string{answer})
		if sum.add(one); one.at5 < 1 {
			t.Logf("%q wants %s, got %q", wish, answer, found[:min(5, len(found))])
		}
	}
	t.Logf("%d tools, %v", len(entries), sum)
	if n := float64(sum.n); sum.at5/n < 0.85 || sum.at1/n < 0.5 {
		t.Errorf("%v: recall fell below 0.85 among five, or 0.5 at the first place", sum)
	}
}

func TestTheQuestionsOfTheEvaluationAreWellFormed(t *testing.T) {
	count := map[string]int{}
	for _, q := range readQuestions(t) {
		count[q.half]++
		if q.text == "" || slices.ContainsFunc(q.answers, func(a string) bool { return strings.Count(a, "/") != 1 }) {
			t.Errorf("%+v", q)
		}
		for _, answer := range q.answers {
			if server, _, _ := strings.Cut(answer, "/"); !slices.Contains(catalogs[q.catalog], server) {
				t.Errorf("%q: %s is no server of %s", q.text, server, q.catalog)
			}
		}
	}
	for _, half := range []string{tuning, heldout, unseen} {
		if count[half] < 60 {
			t.Errorf("%s has %d questions", half, count[half])
		}
	}
}
