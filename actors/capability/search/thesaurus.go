package search

import (
	"slices"
	"strings"
)

// thesaurus has what people and models say for one another when they talk of what programs do: a line is a group of words
// of which each may stand for each. A word may be in several groups. Written by hand, from everyday use; what a
// group says is worth less than the word itself ([kinWeight]).
const thesaurus = `
create add make new insert generate build set-up produce establish
create start begin open initialize init
add append attach include insert put stage
delete remove erase drop destroy discard clear clean purge forget unlink
delete cancel trash archive
list show enumerate all overview display browse
get fetch read retrieve load view show see open obtain inspect
find search look query locate lookup discover seek
query filter select sql
update edit change modify alter adjust patch set rewrite revise replace fix correct
send post write publish tell announce notify submit deliver share
reply answer respond response
write save store persist record put dump
remember store keep memorize save note memory
recall remember memory
rename move name title
move transfer relocate migrate shift
copy duplicate clone fork replicate
download fetch pull get
upload push attach send
run execute invoke perform evaluate eval launch call
start begin launch run trigger
stop end finish halt terminate quit exit close kill abort cancel
close shut dismiss end
pause wait hold delay sleep until
click press tap push hit
type enter fill input write
fill complete enter
choose select pick option
check verify validate test
compare difference diff different change
compress zip gzip archive pack
connect link relate relation join associate
combine merge join integrate
split divide
count number total amount
sum add plus calculate compute addition
repeat echo
undo revert reset restore rollback
restore recover
switch toggle turn enable disable
switch select change activate checkout
enable activate turn-on
disable deactivate turn-off
log history record
explain describe detail analyze insight
analyze analysis profile audit inspect review examine
approve accept review confirm
accept handle confirm dismiss
monitor watch observe track
subscribe watch follow
translate convert transform
schedule plan book
grant permit allow permission access
simulate emulate mimic
drag pull drop
hover mouse pointer
think reason thought thinking reflect
picture image photo screenshot photograph png jpg graphic
screenshot capture snapshot
record capture video screencast recording
page tab window
page website site web webpage url
url link address website web
navigate go open visit browse url
back previous return
reload refresh
form field
button element
field input text property column attribute
dropdown select option menu
popup dialog alert prompt confirmation modal
keyboard key shortcut
javascript js script code
request http network api call ajax
console log message error
html dom element
style css color colour
folder directory path
file document text
content text body contents
info metadata detail information details property properties stats
size large small big resize dimension
tree structure hierarchy nested
disk filesystem storage
local computer machine device
source code program
function method
library package module
documentation docs manual guide
mail email message inbox
message post chat
channel room chat conversation group
thread conversation discussion
emoji reaction react smiley
person user people member contact somebody someone colleague account
user profile account
team workspace organization group company
who author user
myself self me own
comment remark note feedback
issue ticket bug task problem defect
task todo
repository repo project
branch version
commit change revision
tag label mark
release version tag
board project
card task
status state progress condition
environment env variable
setting config configuration option
database table db
table collection sheet grid
row record entry document
column field
schema structure definition
entity node object item thing
fact observation
graph knowledge
connection relation
address location coordinates place
coordinates latitude longitude geocode
location place spot position where
nearby near local around
route direction path directions
distance far
drive travel
altitude elevation height high
restaurant cafe shop business place
time date clock hour
calendar event meeting appointment
weather forecast temperature
news headline article
internet web online
job operation process task
memory heap
performance speed slow fast
average mean
random arbitrary
password secret credential
token key credential
error failure exception fail
server host machine
domain dns
container pod docker
cluster kubernetes
deploy rollout release
price cost
buy purchase order
pay payment
money currency
sound audio voice
video movie clip
paragraph block
template boilerplate
parent below under
many several multiple batch bulk
several both various
entire whole complete all full
recent latest last newest
unused untracked orphan
phone mobile device
app application
weather rain snow sun wind storm forecast
spam junk unwanted
remind reminder alarm
travel trip journey drive commute
distance far trip
today tomorrow yesterday date day
timezone zone utc
duration hour minute second
draft compose prepare
solve resolve close
share access permission
summary summarize digest overview
terminal shell command cli bash
install setup add
uninstall remove delete
process program
login authenticate authorize
pending uncommitted unsaved unfinished modified changed staged
blame author
free available idle
block ban mute
export download save
import upload load
encrypt decrypt cipher
encode decode convert
sort order arrange
crop resize scale
price quote rate
stock share market
flight airline airport
hotel booking reservation room
song music track playlist
read unread
note notebook page
slide presentation deck
cell sheet spreadsheet
contact address-book person
vote poll survey
backup snapshot archive
restart reboot reset
health ping status alive
metric statistic stats usage analytics
test spec suite
lint format style
dependency package module
endpoint route api
webhook callback
cron schedule timer
queue job worker
cache redis memory
bucket blob object storage
invoice bill receipt
customer client buyer
lead prospect deal
refund return chargeback
`

// idioms are words that mean something else together; they are replaced before anything else happens.
var idioms = phrases(`
look up=search
look for=search
looking for=search
get rid of=delete
throw away=delete
set up=create
make a copy=copy
find out=get
fill in=fill
fill out=fill
write down=write note
turn on=enable toggle
turn off=disable toggle
switch on=enable toggle
switch off=disable toggle
log in=login
logged in=login
sign in=login
sign up=signup
log out=logout
drop down=dropdown
pop up=popup
e mail=email
how far=distance
how long=duration time
how many=count
how high=elevation
how big=size
go back=back navigate
step back=back
close to=near
pr=pull request
prs=pull request
mr=merge request
`)

// hints are question words and what their answers are mostly about.
var hints = map[string]string{
	"which": "list", "what": "list", "all": "list", "who": "user", "whom": "user", "whose": "user", "everybody": "user", "everyone": "user",
	"where": "location", "when": "time",
}

// kin has for a stem the stems that may stand for it.
var kin = func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(thesaurus) {
		var group []string
		for word := range strings.FieldsSeq(line) {
			group = append(group, stem(strings.ReplaceAll(word, "-", "")))
		}
		for _, a := range group {
			for _, b := range group {
				if a != b && !slices.Contains(m[a], b) {
					m[a] = append(m[a], b)
				}
			}
		}
	}
	return m
}()

// phrase is an idiom: its words and what is read in their place.
type phrase struct{ words, means []string }

// phrases reads idioms, by their first word, the longer ones first.
func phrases(text string) map[string][]phrase {
	m := map[string][]phrase{}
	for line := range strings.Lines(text) {
		idiom, means, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		p := phrase{strings.Fields(idiom), strings.Fields(means)}
		list := m[p.words[0]]
		at := 0
		for at < len(list) && len(list[at].words) >= len(p.words) {
			at++
		}
		m[p.words[0]] = append(list[:at:at], append([]phrase{p}, list[at:]...)...)
	}
	return m
}
