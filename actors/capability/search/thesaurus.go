package search

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
